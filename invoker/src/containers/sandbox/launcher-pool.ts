import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { ProvisioningError } from '../container-factory.js';
import type { Cgroups } from './cgroups.js';
import { startLauncher } from './launcher.js';
import type { SandboxProcess } from './launcher.js';

/** Launchers that wait ahead of need: they hide what joining a cgroup and starting a process cost. */
const spareLaunchers = 2;
/** A spare is not started at the same time as the container that used one up, which somebody waits for. */
const spareDelayMs = 20;

/** A container to be: its names, and its launcher if there are launchers. */
export interface Parked {
  id: string;
  slot: number;
  process: SandboxProcess | undefined;
}

interface LauncherPoolOptions {
  /** Path of the launcher; undefined: containers have none. */
  launcherPath: string | undefined;
  /** Shows in the process list. */
  tag: string;
  cgroups: Cgroups;
  slots: Slots;
  clock: Clock;
  random: Random;
}

/** Hands out launchers that wait for their spec. */
export class LauncherPool {
  private readonly spares: Parked[] = [];
  private refilling = false;
  private closed = false;

  constructor(private readonly options: LauncherPoolOptions) {}

  /** A spare one, or a new one. Throws ProvisioningError if there are too many containers or no process starts. */
  take(): Parked {
    return this.spares.shift() ?? this.park();
  }

  /** Starts what spares are missing, soon. */
  refill(): void {
    const { launcherPath, clock } = this.options;
    if (this.closed || this.refilling || launcherPath === undefined || this.spares.length >= spareLaunchers) return;
    this.refilling = true;
    clock.setBackgroundTimer(spareDelayMs, () => {
      this.refilling = false;
      if (this.closed || this.spares.length >= spareLaunchers) return;
      try {
        this.add(this.park());
      } catch (error) {
        // The next create() meets the same trouble and reports it.
        if (!(error instanceof ProvisioningError)) throw error;
        return;
      }
      this.refill();
    });
  }

  /** Ends the spares. */
  async close(): Promise<void> {
    this.closed = true;
    await Promise.all(this.spares.splice(0).map((spare) => this.discard(spare)));
  }

  private park(): Parked {
    const { slots, random, launcherPath, tag, cgroups } = this.options;
    const slot = slots.take();
    if (slot === undefined) throw new ProvisioningError('There are too many containers already.');
    const id = random.hex(8);
    try {
      const process = launcherPath === undefined ? undefined : startLauncher(launcherPath, tag, cgroups.makeWords(id));
      return { id, slot, process };
    } catch (error) {
      slots.release(slot);
      throw new ProvisioningError(`No process could be started: ${(error as Error).message}`);
    }
  }

  private add(spare: Parked): void {
    this.spares.push(spare);
    const child = spare.process?.child;
    child?.unref();
    child?.once('exit', () => {
      const index = this.spares.indexOf(spare);
      if (index < 0) return;
      this.spares.splice(index, 1);
      void this.discard(spare);
    });
  }

  private async discard(spare: Parked): Promise<void> {
    const child = spare.process?.child;
    if (child && child.exitCode === null && child.signalCode === null) {
      const gone = new Promise((done) => child.once('exit', done));
      child.ref();
      child.kill('SIGKILL');
      await gone;
    }
    await this.options.cgroups.remove(spare.id);
    this.options.slots.release(spare.slot);
  }
}

/** Small numbers, each held by one sandbox at a time: its user id and its address come from it. */
export class Slots {
  private readonly free: number[] = [];
  private next: number;

  /** Slots from `first` to `count - 1`. */
  constructor(
    first: number,
    private readonly count: number,
  ) {
    this.next = first;
  }

  /** A free slot; undefined if all are held. Those never used come first, so that a number rests before its reuse. */
  take(): number | undefined {
    return this.next < this.count ? this.next++ : this.free.shift();
  }

  release(slot: number): void {
    this.free.push(slot);
  }
}
