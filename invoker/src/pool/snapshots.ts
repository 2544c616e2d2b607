// Snapshots of loaded functions: which ones there are, within their bound and the pool's memory, and the containers that are copies.
import type { Logger } from '@gpuwhisk/common/logging';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { bareSpec, makingTimes } from '../containers/container-factory.js';
import type {
  Container,
  ContainerFactory,
  ContainerSpec,
  FunctionSnapshot,
  InitRequest,
} from '../containers/container-factory.js';
import type { StoreServices } from './container-store.js';
import type { Measure } from './memory-budget.js';

/** A function that was loaded, and whose next instances are to be copies of its loaded state. */
export interface SnapshotWish {
  /** PoolJob.key of its jobs. */
  key: string;
  /** The function in its namespace, whatever its revision. */
  of: string;
  revision: string;
  /** `/ns/pkg/name`, for operators. */
  action: string;
  namespace: string;
  spec: ContainerSpec;
  /** Time of the load, ms. */
  loadMs: number;
  /** Its init without anything of one activation or one caller. */
  init(): Promise<InitRequest>;
  /** Whether the revision is the function's present one. Never rejects. */
  isCurrent(): Promise<boolean>;
  /** Why it can have no snapshot; absent: it may. */
  unfit?: string;
}

/** A snapshot, or the reason why a function has none. */
export interface ShownSnapshot {
  action: string;
  namespace: string;
  kind: string;
  memoryMiB: number;
  sinceMs: number;
  unfit?: string;
}

/** How a further instance of a function that wants snapshots came to be. */
export const snapshotOutcomes = ['restored', 'none', 'off', 'failed'] as const;

interface Entry {
  wish: SnapshotWish;
  state: 'making' | 'standing' | 'absent';
  snapshot?: FunctionSnapshot;
  /** Memory that it claims, MiB. */
  claimedMiB: number;
  sinceMs: number;
  usedMs: number;
  /** Copies that failed in a row. */
  failures: number;
  offUntilMs: number;
  /** Whether it is to be made once there is memory, and no other one is made. */
  waits: boolean;
  /** The place of its last making among all; 0: none. */
  made: number;
  unfit?: string;
}

/** Functions that are known at most. */
const maxFunctions = 256;
/** After so many failed copies in a row, or when a function is unfit, it has no snapshot for a while. */
const [maxFailures, offMs] = [3, 3_600_000];
/**
 * Time without a further load before a snapshot is made, ms: functions that start together have the machine to themselves.
 * On a server that loads one after the other, snapshots wait for `mostRestMs`.
 */
const [restMs, mostRestMs] = [250, 5000];
/** How often it is looked whether functions were changed or deleted, ms. */
const lookEveryMs = 10_000;

/** The snapshots of a pool. They claim its memory, and are the first to go when memory is short. */
export class Snapshots {
  /** By key. */
  private readonly entries = new Map<string, Entry>();
  private readonly starts = new Map<string, number>(snapshotOutcomes.map((outcome) => [outcome, 0]));
  private savedMs = 0;
  private readonly removals = new Set<Promise<void>>();
  /** One is made at a time: that takes as much memory and processor time as the functions themselves. */
  private isMaking = false;
  private makings = 0;
  /** The last load of a function, monotonic ms. */
  private loadedMs = 0;
  private closing = false;

  constructor(
    private readonly factory: ContainerFactory,
    private readonly clock: Clock,
    /** Memory of all snapshots, at most, MiB. */
    private readonly maxMiB: number,
    private readonly services: StoreServices,
    private readonly logger: Logger,
  ) {
    if (factory.snapshot !== undefined) this.scheduleLook();
  }

  /** Whether the next container of the jobs with this key is a copy. */
  has(key: string): boolean {
    return this.entries.get(key)?.snapshot !== undefined;
  }

  /** Notes that a revision of a function was loaded: snapshots of other ones go. */
  loaded(of: string, revision: string): void {
    this.loadedMs = this.clock.monotonicMs();
    for (const { wish } of this.entries.values()) {
      if (wish.of === of && wish.revision !== revision) this.forget(wish.key);
    }
  }

  /** Has a snapshot made in the background, unless there is one, it is off, or the pool lacks memory. */
  want(wish: SnapshotWish): void {
    if (this.factory.snapshot === undefined || this.closing) return;
    const entry = this.entryOf(wish);
    entry.wish = wish;
    if (entry.state !== 'absent' || entry.offUntilMs > this.clock.monotonicMs()) return;
    if (wish.unfit !== undefined) return this.turnOff(entry, wish.unfit);
    if (this.isMaking || this.services.memory.missingMiB(makingOf(wish)) > 0) return this.wait(entry);
    this.isMaking = true;
    entry.waits = false;
    entry.state = 'making';
    entry.made = this.makings += 1;
    void this.make(entry, wish);
  }

  private wait(entry: Entry): void {
    entry.waits = true;
    if (!this.isMaking) entry.unfit = 'There is no free memory to make it.';
  }

  /**
   * Has a snapshot made that has waited for memory, or for another one's end, if there is memory now: of the namespace for which
   * none was made for longest.
   */
  wantWaiting(): void {
    const waiting = [...this.entries.values()].filter(({ waits }) => waits);
    if (this.isMaking || waiting.length === 0) return;
    const last = new Map<string, number>();
    for (const { wish, made } of this.entries.values())
      last.set(wish.namespace, Math.max(made, last.get(wish.namespace) ?? 0));
    const of = ({ wish }: Entry): number => last.get(wish.namespace) ?? 0;
    for (const { wish } of waiting.sort((one, other) => of(one) - of(other))) this.want(wish);
  }

  /**
   * A copy for jobs with this key, whose memory is claimed; undefined if there is no snapshot, or the copy failed. `ahead`: as of
   * ContainerFactory.create.
   */
  async copy(key: string, ahead: boolean): Promise<Container | undefined> {
    const entry = this.entries.get(key);
    if (entry === undefined) return undefined;
    const nowMs = this.clock.monotonicMs();
    const { snapshot } = entry;
    if (snapshot === undefined) {
      this.count(entry.offUntilMs > nowMs ? 'off' : 'none');
      return undefined;
    }
    entry.usedMs = nowMs;
    try {
      const container = await snapshot.copy(ahead);
      container.restoredMs = entry.wish.loadMs;
      entry.failures = 0;
      this.count('restored');
      this.savedMs += entry.wish.loadMs;
      return container;
    } catch (error) {
      this.count('failed');
      this.failed(entry, snapshot, error);
      return undefined;
    }
  }

  /** Memory of the snapshots, MiB; without those that are being made. */
  get standingMiB(): number {
    return this.standing().reduce((sum, { claimedMiB }) => sum + claimedMiB, 0);
  }

  /** Memory that `giveUp` can free, MiB. */
  heldMiB(memoryOf: Measure): number {
    return this.standing().reduce((sum, entry) => sum + memoryOf(claimOf(entry)), 0);
  }

  /** Removes snapshots with a total of `memoryMiB`, the longest unused first; returns their memory, MiB. */
  giveUp(memoryMiB: number, memoryOf: Measure): number {
    let freedMiB = 0;
    for (const entry of this.byUse()) {
      const ownMiB = memoryOf(claimOf(entry));
      if (freedMiB >= memoryMiB || ownMiB === 0) break;
      freedMiB += ownMiB;
      this.drop(entry);
    }
    return freedMiB;
  }

  list(): ShownSnapshot[] {
    return [...this.entries.values()]
      .filter(({ snapshot, unfit }) => snapshot !== undefined || unfit !== undefined)
      .map(({ wish: { action, namespace, spec }, sinceMs, claimedMiB, unfit }) => ({
        action,
        namespace,
        kind: spec.kind,
        memoryMiB: claimedMiB,
        sinceMs,
        ...(unfit !== undefined && { unfit }),
      }));
  }

  /** Containers of functions that want snapshots, by how they came to be, and the seconds of loads that copies saved. */
  figures(): { starts: ReadonlyMap<string, number>; savedSeconds: number; standing: number } {
    return { starts: this.starts, savedSeconds: this.savedMs / 1000, standing: this.standing().length };
  }

  /** Makes no more snapshots, and removes the present ones; resolves when they are gone. The factory's end ends what is made. */
  async close(): Promise<void> {
    this.closing = true;
    for (const entry of this.standing()) this.drop(entry);
    await Promise.all(this.removals);
  }

  private async make(entry: Entry, wish: SnapshotWish): Promise<void> {
    const { spec, namespace } = wish;
    let snapshot: FunctionSnapshot | undefined;
    let init: InitRequest | undefined;
    try {
      // It claims nothing yet: containers come first.
      await this.rest();
      if (!this.isWanted(entry)) return;
      const claim = makingOf(wish);
      if (!this.services.memory.claim(claim)) {
        this.isMaking = false;
        return this.wait(entry);
      }
      entry.claimedMiB = claim.memoryMiB;
      init = await wish.init();
      snapshot = await this.factory.snapshot?.({ spec, namespace, init });
      if (snapshot === undefined) return;
      if (this.isWanted(entry)) this.keep(entry, snapshot);
      else this.discard(snapshot);
    } catch (error) {
      if (snapshot !== undefined) this.discard(snapshot);
      if (!this.closing) this.turnOff(entry, (error as Error).message);
    } finally {
      init?.large?.passed();
      this.isMaking = false;
      if (entry.state === 'making') {
        entry.state = 'absent';
        const claim = claimOf(entry);
        entry.claimedMiB = 0;
        if (claim.memoryMiB > 0) this.services.memory.release(claim);
      }
      this.wantWaiting();
    }
  }

  private async rest(): Promise<void> {
    const untilMs = this.clock.monotonicMs() + mostRestMs;
    for (;;) {
      const leftMs = Math.min(this.loadedMs + restMs, untilMs) - this.clock.monotonicMs();
      if (leftMs <= 0) return;
      await sleep(this.clock, leftMs);
    }
  }

  private isWanted(entry: Entry): boolean {
    return this.entries.get(entry.wish.key) === entry && !this.closing;
  }

  /** Throws an Error if the snapshot is larger than all may be. */
  private keep(entry: Entry, snapshot: FunctionSnapshot): void {
    const { memoryMiB } = snapshot;
    if (memoryMiB > this.maxMiB)
      throw new Error(`Its snapshot takes ${memoryMiB} MiB, more than warm.memoryMiB, ${Math.floor(this.maxMiB)}.`);
    for (const other of this.byUse()) {
      if (this.standingMiB + memoryMiB <= this.maxMiB) break;
      this.drop(other);
    }
    this.services.memory.change(entry.claimedMiB, memoryMiB);
    const nowMs = this.clock.monotonicMs();
    delete entry.unfit;
    Object.assign(entry, {
      snapshot,
      state: 'standing',
      claimedMiB: memoryMiB,
      usedMs: nowMs,
      sinceMs: this.clock.now(),
    });
    this.services.added();
  }

  private failed(entry: Entry, snapshot: FunctionSnapshot, error: unknown): void {
    const problem = (error as Error).message;
    this.logger.warn({ action: entry.wish.action, problem }, 'a container could not be restored from a snapshot');
    if (entry.snapshot === snapshot) this.drop(entry);
    entry.failures++;
    if (entry.failures >= maxFailures) this.turnOff(entry, problem);
  }

  private turnOff(entry: Entry, problem: string): void {
    const [unfit = ''] = problem.split('\n');
    entry.failures = 0;
    Object.assign(entry, { unfit, offUntilMs: this.clock.monotonicMs() + offMs, sinceMs: this.clock.now() });
    const { action } = entry.wish;
    this.logger.warn({ action, problem }, 'a function has no snapshot, and is loaded for each of its containers');
  }

  private entryOf(wish: SnapshotWish): Entry {
    const known = this.entries.get(wish.key);
    if (known !== undefined) return known;
    const usedMs = this.clock.monotonicMs();
    const sinceMs = this.clock.now();
    const entry: Entry = {
      wish,
      state: 'absent',
      claimedMiB: 0,
      sinceMs,
      usedMs,
      failures: 0,
      offUntilMs: 0,
      waits: false,
      made: 0,
    };
    this.entries.set(wish.key, entry);
    if (this.entries.size <= maxFunctions) return entry;
    const others = [...this.entries.values()].filter((one) => one !== entry).sort((a, b) => a.usedMs - b.usedMs);
    const first = others.find(({ snapshot }) => snapshot === undefined) ?? others[0];
    if (first !== undefined) this.forget(first.wish.key);
    return entry;
  }

  private forget(key: string): void {
    const entry = this.entries.get(key);
    if (entry === undefined) return;
    this.entries.delete(key);
    if (entry.snapshot !== undefined) this.drop(entry);
  }

  private drop(entry: Entry): void {
    const { snapshot } = entry;
    if (snapshot === undefined) return;
    delete entry.snapshot;
    entry.state = 'absent';
    const claim = claimOf(entry);
    entry.claimedMiB = 0;
    this.services.memory.leaving(claim);
    this.discard(snapshot, () => this.services.memory.left(claim));
  }

  private discard(snapshot: FunctionSnapshot, removed?: () => void): void {
    const removal = snapshot
      .remove()
      .catch((error: unknown) => this.logger.error({ error: String(error) }, 'a snapshot could not be removed'))
      .then(() => {
        this.removals.delete(removal);
        removed?.();
      });
    this.removals.add(removal);
  }

  private count(outcome: (typeof snapshotOutcomes)[number]): void {
    this.starts.set(outcome, (this.starts.get(outcome) ?? 0) + 1);
  }

  private standing(): Entry[] {
    return [...this.entries.values()].filter(({ snapshot }) => snapshot !== undefined);
  }

  private byUse(): Entry[] {
    return this.standing().sort((one, other) => one.usedMs - other.usedMs);
  }

  private scheduleLook(): void {
    this.clock.setBackgroundTimer(lookEveryMs, () => {
      if (!this.closing) void this.look().then(() => this.scheduleLook());
    });
  }

  /** Forgets functions that were changed or deleted. */
  private async look(): Promise<void> {
    for (const [key, { wish }] of [...this.entries]) if (!(await wish.isCurrent())) this.forget(key);
  }
}

/** What the making of a snapshot claims. */
function makingOf({ spec }: SnapshotWish): ContainerSpec {
  return bareSpec(spec.kind, spec.memoryMiB * makingTimes);
}

function claimOf({ wish, claimedMiB }: Entry): ContainerSpec {
  return bareSpec(wish.spec.kind, claimedMiB);
}
