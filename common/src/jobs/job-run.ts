import type { Clock } from '../system/clock.js';
import type { AttemptEnd } from './job-rules.js';
import { attemptsOf } from './job-rules.js';
import type { JobBody, JobRequest } from './jobs.js';

/** A job that runs here. */
export class JobRun {
  private readonly controller = new AbortController();
  private interrupted = false;

  constructor(readonly request: JobRequest) {}

  /** Has it given up, for no fault of its own. */
  interrupt(why: string): void {
    this.interrupted = true;
    this.controller.abort(new Error(why));
  }

  /** Whether it is being given up. */
  get isInterrupted(): boolean {
    return this.interrupted;
  }

  /** Runs the body for the attempt of this number, for `timeoutMs` at most as long as the body heeds its signal. */
  async attempt(body: JobBody, attempt: number, clock: Clock, timeoutMs: number): Promise<AttemptEnd> {
    const { signal } = this.controller;
    const timer = clock.setBackgroundTimer(timeoutMs, () =>
      this.controller.abort(new Error(`it took more than ${timeoutMs} ms`)),
    );
    let failure: unknown;
    try {
      if (this.interrupted) throw signal.reason;
      const isLast = attempt >= attemptsOf(this.request);
      await body(structuredClone(this.request.payload), { attempt, isLast, signal });
    } catch (error) {
      failure = error ?? new Error('it failed without saying why');
    } finally {
      timer.cancel();
    }
    return { failure, wasInterrupted: this.interrupted };
  }
}
