import { attemptsOf, quietMsOf, reasonOf, verdictOf, JobRun, withResource } from '@gpuwhisk/common/jobs/job-rules';
import type { RetryTimes, LeaseOptions } from '@gpuwhisk/common/jobs/job-rules';
import type { FailedJob, HandlerOptions, JobBody } from '@gpuwhisk/common/jobs/jobs';
import type { Timer } from '@gpuwhisk/common/system/clock';
import type { JobQueue, LockedJob } from './job-queue.js';

export interface BullHandlerOptions extends RetryTimes, LeaseOptions {
  queue: JobQueue;
  options: HandlerOptions;
  body: JobBody;
  holder: string;
  lockMs: number;
  pollMs?: number;
  /** For how long a resource is to be left alone yet, ms; below 0: it is not. */
  quietLeftMs: (resource: string) => number;
  /** Lists a job that will not be tried again. */
  onFailed: (failed: FailedJob) => Promise<void>;
}

const defaultPollMs = 1000;

/** Takes jobs of one kind and runs them here, as many at once as may be. */
export class BullHandler {
  /** By the promise of their end. */
  private readonly running = new Map<Promise<void>, JobRun>();
  private timer: Timer | undefined;
  /** What is being looked for; what came meanwhile is looked for afterwards. */
  private looking: Promise<void> | undefined;
  private lookAgain = false;
  private closed = false;
  private hasFailed = false;

  constructor(private readonly parts: BullHandlerOptions) {}

  open(): void {
    this.lookNow();
  }

  /** There may be a job. */
  lookNow(): void {
    if (this.closed) return;
    if (this.looking !== undefined) {
      this.lookAgain = true;
      return;
    }
    this.timer?.cancel();
    this.lookAgain = false;
    this.looking = this.look()
      .then(
        () => (this.hasFailed = false),
        (error: unknown) => {
          // Once for each time that Redis is away.
          if (!this.hasFailed) this.parts.onWarning?.(error as Error);
          this.hasFailed = true;
        },
      )
      .then(() => {
        this.looking = undefined;
        if (this.closed) return;
        if (this.lookAgain) this.lookNow();
        else this.timer = this.parts.clock.setBackgroundTimer(this.parts.pollMs ?? defaultPollMs, () => this.lookNow());
      });
  }

  interrupt(resource: string): void {
    for (const run of this.running.values()) {
      if (run.request.resource === resource) run.interrupt(`${resource} is wanted for work`);
    }
  }

  /** Takes no more, has what runs given up, and waits until it has ended. */
  async close(why: string): Promise<void> {
    this.closed = true;
    this.timer?.cancel();
    for (const run of this.running.values()) run.interrupt(why);
    await this.looking;
    await Promise.all(this.running.keys());
  }

  private async look(): Promise<void> {
    const { queue, options } = this.parts;
    await queue.sweep();
    while (!this.closed && this.running.size < options.concurrency) {
      const job = await queue.take();
      if (job === undefined) return;
      this.start(job);
    }
  }

  private start(job: LockedJob): void {
    const run = new JobRun(job.kept.request);
    if (this.closed) run.interrupt('the process stops');
    const lock = this.keepLock(job, run);
    const over = this.run(job, run)
      .catch((error: unknown) =>
        // Redis has not been told what became of it: when its lock is over it comes again.
        this.parts.onWarning?.(error as Error),
      )
      .then(() => {
        lock.cancel();
        this.running.delete(over);
        this.lookNow();
      });
    this.running.set(over, run);
  }

  private async run(job: LockedJob, run: JobRun): Promise<void> {
    const { holder, quietLeftMs } = this.parts;
    const { request, number } = job.kept;
    const { resource } = request;
    if (resource === undefined) return this.attempt(job, run);
    const quietMs = quietLeftMs(resource);
    if (quietMs > 0) return job.giveBack(quietMs);
    const isTaken = await withResource(
      this.parts,
      { resource, holder: `${holder}/${number}` },
      () => this.attempt(job, run),
      () => run.interrupt(`${resource} was lost`),
    );
    if (!isTaken) await job.giveBack(quietMsOf(this.parts));
  }

  private async attempt(job: LockedJob, run: JobRun): Promise<void> {
    const { options, body, clock } = this.parts;
    const { kept } = job;
    const { request } = kept;
    if (kept.attempts >= attemptsOf(request)) {
      return this.fail(job, kept.attempts, new Error('the process ended in its last attempt'));
    }
    // Noted before it begins: a job that ends the process is not tried for ever.
    const begun = { ...kept, attempts: kept.attempts + 1 };
    await job.write(begun);
    const end = await run.attempt(body, begun.attempts, clock, options.timeoutMs);
    const verdict = verdictOf(request, begun, end, this.parts);
    if (verdict.type === 'failed') return this.fail(job, begun.attempts, end.failure);
    if (verdict.type === 'done') return job.remove();
    const { attempts, interruptions, laterMs } = verdict;
    if (attempts !== begun.attempts) await job.write({ ...begun, attempts, interruptions });
    await job.giveBack(laterMs);
  }

  private async fail(job: LockedJob, attempts: number, failure: unknown): Promise<void> {
    const { kind, key } = job.kept.request;
    await this.parts.onFailed({ kind, key, attempts, reason: reasonOf(failure), at: this.parts.clock.now() });
    await job.remove();
  }

  /** Extends the lock in time until it is cancelled; where it is lost another process may have the job already. */
  private keepLock(job: LockedJob, run: JobRun): Timer {
    const { clock, lockMs, onWarning } = this.parts;
    let isOver = false;
    let untilMs = clock.monotonicMs() + lockMs;
    let timer: Timer;
    const extend = async (): Promise<void> => {
      const askedMs = clock.monotonicMs();
      try {
        if (await job.extend()) untilMs = askedMs + lockMs;
        else untilMs = 0;
      } catch (error) {
        onWarning?.(error as Error);
      }
      if (isOver) return;
      if (clock.monotonicMs() < untilMs) extendLater();
      else run.interrupt('its lock was lost');
    };
    const extendLater = (): void => {
      timer = clock.setBackgroundTimer(lockMs / 3, () => void extend());
    };
    extendLater();
    return {
      cancel: () => {
        isOver = true;
        timer.cancel();
      },
    };
  }
}
