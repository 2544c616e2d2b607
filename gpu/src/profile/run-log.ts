import type { GpuState, ObservedRun, Task } from '../policies/policy.js';

/** A run on one GPU, or on several. */
export interface LoggedRun {
  task: Task;
  gpu: Pick<GpuState, 'id' | 'type' | 'mode'>;
  /** Ids of the other GPUs that it has. */
  alsoOn: readonly string[];
  /** Fraction, 0 < share ≤ 1. */
  share: number;
  /** Epoch ms. */
  startedAt: number;
  /** The same moment, monotonic ms. */
  startMs: number;
  /** It needed neither injection nor a cold start. */
  isWarm: boolean;
  /** Somebody was there of whom this log does not know. */
  hasStrangers: boolean;
}

interface Interval extends LoggedRun {
  endMs: number;
}

/** Runs that are remembered after their end, for those beside them. */
const maxEnded = 1000;
/** Runs that are under way, beyond what one scheduler sends out. */
const maxRunning = 10_000;

/** Who ran beside whom, and for how long. */
export class RunLog {
  private readonly running = new Map<string, LoggedRun>();
  private ended: Interval[] = [];

  /** A run begins. Of too many the oldest is forgotten. */
  began(id: string, run: LoggedRun): void {
    this.running.set(id, run);
    const [oldest] = this.running.keys();
    if (this.running.size > maxRunning && oldest !== undefined) this.running.delete(oldest);
  }

  get(id: string): LoggedRun | undefined {
    return this.running.get(id);
  }

  /** It never came to run. */
  dropped(id: string): void {
    this.running.delete(id);
  }

  /** A run has ended: how long it took, and who ran beside it for which part of its time. Undefined: nothing is known of it. */
  end(id: string, endMs: number): (LoggedRun & ObservedRun) | undefined {
    const run = this.running.get(id);
    if (run === undefined) return undefined;
    this.running.delete(id);
    const ranMs = endMs - run.startMs;
    const others = [...this.ended, ...Array.from(this.running.values(), (other) => ({ ...other, endMs }))];
    const beside = others
      .filter((other) => placesOf(other).some((place) => placesOf(run).includes(place)))
      .map((other) => ({ task: other.task, share: other.share, part: overlapMs(run, endMs, other) / ranMs }))
      .filter(({ part }) => part > 0);
    this.remember({ ...run, endMs });
    return { ...run, ranMs, beside };
  }

  /** Keeps those that somebody who still runs may have been beside. */
  private remember(run: Interval): void {
    let sinceMs = Infinity;
    for (const { startMs } of this.running.values()) sinceMs = Math.min(sinceMs, startMs);
    this.ended = [...this.ended, run].filter(({ endMs }) => endMs > sinceMs).slice(-maxEnded);
  }
}

const placesOf = ({ gpu, alsoOn }: LoggedRun): string[] => [gpu.id, ...alsoOn];

function overlapMs({ startMs }: LoggedRun, endMs: number, other: Interval): number {
  return Math.max(0, Math.min(endMs, other.endMs) - Math.max(startMs, other.startMs));
}
