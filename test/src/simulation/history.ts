import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import { createSimulatedFactory } from '@gpuwhisk/invoker/containers/simulated-factory';
import type { SimulatedFactory } from '@gpuwhisk/invoker/containers/simulated-factory';
import { auditStore } from './audit.js';
import { Callers } from './callers.js';
import { GpuHardware } from './gpu-hardware.js';
import { countsOf } from './history-counts.js';
import type { HistoryCounts } from './history-counts.js';
import { Ledger } from './ledger.js';
import { observedFactory, observedStore } from './observers.js';
import type { PlantedBug } from './planted-bugs.js';
import { choosePlan } from './plan.js';
import { SimulatedClock } from './simulated-clock.js';
import { SimulatedDisk } from './simulated-disk.js';
import type { SimulatedPlatform } from './simulated-platform.js';
import { startPlatform } from './simulated-platform.js';
import type { StoreState } from './troubles.js';
import { steppedClock, troubledStore } from './troubles.js';
import { createActions, kind, simulatedGuest } from './workload.js';

/** Thrown for a broken promise. */
export class BrokenPromiseError extends Error {
  override name = 'BrokenPromiseError';
  constructor(
    readonly violations: readonly string[],
    readonly trace: readonly string[],
  ) {
    super(violations.join('; '));
  }
}

/** Share of the starts that a crash follows within a few steps of the clock, if crashes are among the faults. */
const crashedStartShare = 0.2;
/** Virtual time in which all work must end once the faults have stopped, ms. */
const settleMs = 300_000;

/** Plays the history of one seed: calls and faults at random, then a time without either. Throws BrokenPromiseError. */
export function playHistory(
  seed: number,
  bug: PlantedBug = {},
): Promise<{ counts: HistoryCounts; trace: readonly string[] }> {
  return new History(seed, bug).play();
}

class History {
  private readonly random;
  private readonly plan;
  private readonly base = new SimulatedClock();
  private readonly clock = steppedClock(this.base);
  private readonly ledger = new Ledger(() => this.base.monotonicMs());
  private readonly disk;
  private readonly store;
  private readonly callers;
  private readonly hardware: GpuHardware;
  /** Containers of the present life: promises of a dead process never settle. */
  private containers: SimulatedFactory | undefined;
  private storeState: StoreState = 'well';
  /** 'starting' or 'stopping' while the promise of the start or stop is pending. */
  private platform: SimulatedPlatform | 'down' | 'starting' | 'stopping' = 'down';
  /** Steps of the clock until the process is killed; infinite without a planned crash. */
  private stepsToCrash = Infinity;
  /** Whether faults have stopped. */
  private calm = false;
  private flipped = 0;
  private readonly counts = { crashes: 0, crashedStarts: 0, stops: 0, damage: 0, expired: 0 };

  constructor(
    seed: number,
    private readonly bug: PlantedBug,
  ) {
    const random = (this.random = seededRandom(seed));
    this.plan = choosePlan(random);
    this.disk = new SimulatedDisk(this.base, random, this.plan.diskLatencyMs);
    this.store = simulatedStore({ clock: this.base, random });
    this.hardware = new GpuHardware(this.plan.gpus, this.clock, random, this.ledger);
    this.callers = new Callers(this.store, this.clock, random, this.ledger, this.plan.gpus > 0);
  }

  async play(): Promise<{ counts: HistoryCounts; trace: readonly string[] }> {
    await this.base.runUntil(createActions(this.store, this.random));
    for (let event = 0; event < this.plan.events; event++) {
      await this.advance(this.plan.meanGapMs * 2 * randomFraction(this.random));
      this.act();
      if (this.platform === 'down') await this.rise();
    }
    await this.settle();
    // Work that is still unfinished must end in a second life.
    await this.stop();
    await this.rise();
    await this.settle();
    await this.outliveRecords();
    await this.stop();
    await this.audit();
    this.ledger.checkEnd();
    this.throwIfBroken();
    return { counts: countsOf(this.ledger, this.counts), trace: this.ledger.trace };
  }

  private throwIfBroken(): void {
    const { violations, trace } = this.ledger;
    if (violations.length > 0) throw new BrokenPromiseError(violations, trace);
  }

  /** Lets virtual time pass, checking after every step. */
  private async advance(durationMs: number): Promise<void> {
    const untilMs = this.base.monotonicMs() + durationMs;
    while (await this.base.step(untilMs)) {
      this.afterStep();
      if (--this.stepsToCrash <= 0) await this.crash();
    }
    await this.base.runFor(Math.max(0, untilMs - this.base.monotonicMs()));
  }

  private afterStep(): void {
    this.ledger.checkOverdue();
    if (typeof this.platform === 'object') this.platform.checkBounds();
    if (this.storeState !== 'well') this.ledger.storeTrouble();
    this.throwIfBroken();
  }

  /** Does one thing from outside: a call or a fault. */
  private act(): void {
    const { random, plan } = this;
    if (randomFraction(random) < plan.faultShare) {
      const faults = plan.faults;
      this.fault(faults[random.uint32() % faults.length]);
    }
    if (typeof this.platform !== 'object') return;
    const { dispatcher } = this.platform;
    if (randomFraction(random) < plan.updateShare) this.callers.update();
    const burst = randomFraction(random) < plan.burstShare ? 1 + (random.uint32() % plan.longestBurst) : 1;
    for (let i = 0; i < burst; i++) this.callers.call(dispatcher);
  }

  private fault(name: string | undefined): void {
    const { random, ledger } = this;
    if (name !== undefined) ledger.note(`fault: ${name}`);
    switch (name) {
      case 'crash':
        this.stepsToCrash = 1 + (random.uint32() % 60);
        return;
      case 'stop':
        if (typeof this.platform === 'object') void this.beginStop(random.uint32() % 500);
        return;
      case 'store':
        this.storeState = (['well', 'slow', 'failing'] as const)[random.uint32() % 3] ?? 'well';
        ledger.note(`the store is ${this.storeState}`);
        return;
      case 'disk':
        if (typeof this.platform !== 'object') return;
        this.disk.failLater(random.uint32() % 2 === 0 ? 'sync' : 'append', random.uint32() % 20, 'EIO');
        ledger.diskFails();
        return;
      case 'container': {
        const live = this.containers?.live ?? [];
        const victim = live[random.uint32() % Math.max(1, live.length)];
        if (victim) this.containers?.crash(victim.id);
        return;
      }
      case 'clock':
        this.clock.stepWall((random.uint32() % 7_200_000) - 3_600_000);
        return;
      case 'device':
        this.hardware.deviceFault();
        return;
      case 'lease':
        this.hardware.leaseFault();
        return;
      case 'flip':
        // Bits flip only between lives, and only in files that a start reads.
        this.flipped++;
        return;
      default:
    }
  }

  /** Begins a life; the platform is up or dead when this promise resolves. */
  private async rise(): Promise<void> {
    const { ledger, base } = this;
    await base.runUntil(this.callers.reread());
    this.platform = 'starting';
    if (!this.calm && this.plan.faults.includes('crash') && randomFraction(this.random) < crashedStartShare) {
      this.stepsToCrash = 1 + (this.random.uint32() % 30);
    }
    ledger.startLife();
    const { life } = ledger;
    const observed = observedStore(this.store, ledger);
    const store = troubledStore(observed, { state: () => this.storeState, clock: this.clock, random: this.random });
    const { disk, clock, random, bug } = this;
    const { size, expiry, busFaults, failingStarts } = this.plan;
    this.containers = createSimulatedFactory({
      clock: bug.containerClock?.(clock) ?? clock,
      random,
      guest: simulatedGuest(ledger, random),
      kinds: [kind],
      startMs: [5, 120],
      failing: failingStarts,
    });
    const factory = observedFactory(this.containers, ledger, clock, random);
    const gpus = this.plan.gpus === 0 ? undefined : { hardware: this.hardware, bounds: this.plan.gpuBounds };
    startPlatform({ disk, store, factory, clock, random, ledger, size, expiry, busFaults, gpus, bug }).then(
      (platform) => {
        if (life !== ledger.life) return;
        this.platform = platform;
        this.noteDamage(platform);
      },
      (error: unknown) => ledger.check(false, `the platform does not start: ${String(error)}`),
    );
    while (this.platform === 'starting') await this.advance(1);
  }

  private noteDamage({ damage }: SimulatedPlatform): void {
    this.counts.damage += damage.length;
    for (const each of damage) this.ledger.note(`damage: ${JSON.stringify(each)}`);
  }

  /** Cuts the power. */
  private async crash(): Promise<void> {
    if (this.platform === 'down') return;
    if (this.platform === 'starting') this.counts.crashedStarts++;
    this.counts.crashes++;
    this.stepsToCrash = Infinity;
    this.base.dropAll();
    this.hardware.dead();
    this.containers = undefined;
    this.disk.crash();
    this.flipBits();
    this.store.crash();
    this.ledger.endLife('crash');
    this.platform = 'down';
    await this.audit();
    if (this.plan.downMs > 0) await this.base.runFor(this.plan.downMs);
  }

  private flipBits(): void {
    for (; this.flipped > 0; this.flipped--) {
      const paths = this.disk.paths();
      const path = paths[this.random.uint32() % Math.max(1, paths.length)];
      if (path === undefined) continue;
      this.disk.flipBit(path, randomFraction(this.random));
      this.ledger.excusedLosses++;
      this.ledger.note(`a bit of ${path} flips`);
    }
  }

  /** Closes the platform in good order, as SIGTERM does. */
  private async beginStop(drainMs: number): Promise<void> {
    if (typeof this.platform !== 'object') return;
    const { life } = this.ledger;
    const { platform } = this;
    this.platform = 'stopping';
    await platform.close(drainMs).catch((error: unknown) => {
      // A failed log cannot be closed in good order.
      this.ledger.check(this.ledger.lives[life]?.diskFailed === true, `the platform does not close: ${String(error)}`);
    });
    if (life !== this.ledger.life) return;
    this.ledger.check(this.ledger.waitingCalls === 0, 'callers are left without an answer by the end of the platform');
    this.ledger.endLife('closed');
    this.counts.stops++;
    // The process exits and its unfinished work ends.
    this.base.dropAll();
    this.hardware.dead();
    this.containers = undefined;
    this.disk.crash();
    this.store.crash();
    this.platform = 'down';
  }

  private async stop(): Promise<void> {
    void this.beginStop(10_000);
    for (let waitedMs = 0; this.platform === 'stopping' && waitedMs < settleMs; waitedMs += 100)
      await this.advance(100);
    this.ledger.check(this.platform === 'down', 'the platform does not stop');
    this.throwIfBroken();
  }

  /** Ends all faults and waits until no work is left. */
  private async settle(): Promise<void> {
    this.calm = true;
    this.stepsToCrash = Infinity;
    this.storeState = 'well';
    this.flipped = 0;
    await this.hardware.heal();
    // A process dies between two steps: work that it has begun must not continue in the next process's time.
    await this.advance(1);
    if (this.ledger.lives[this.ledger.life]?.diskFailed === true && this.platform !== 'down') await this.crash();
    for (let waitedMs = 0; ; waitedMs += 100) {
      await this.advance(100);
      if (this.platform === 'down') await this.rise();
      if (typeof this.platform === 'object' && this.platform.isIdle() && this.ledger.waitingCalls === 0) return;
      this.ledger.check(waitedMs < settleMs, `something hangs: not settled after ${settleMs} ms`);
      this.throwIfBroken();
    }
  }

  /** Waits until every record has expired. */
  private async outliveRecords(): Promise<void> {
    const { expiry } = this.plan;
    if (expiry === undefined) return;
    await this.advance(expiry.ttlMs / 2);
    await this.audit();
    await this.advance(expiry.ttlMs / 2 + expiry.firstMs + 2 * expiry.everyMs);
    const left = await this.audit();
    this.ledger.check(left.length === 0, `${left.length} records do not expire`);
    this.counts.expired = this.ledger.records.size;
    this.throwIfBroken();
  }

  /** The ids of the stored records. */
  private async audit(): Promise<string[]> {
    const found = await this.base.runUntil(auditStore(this.store, this.ledger, this.plan.expiry?.ttlMs));
    this.throwIfBroken();
    return found;
  }
}
