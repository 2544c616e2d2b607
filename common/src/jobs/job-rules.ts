// Rules that every job engine follows: attempts, delays, one attempt of a body, and the lease of its resource.
import type { JobRequest, JobBody } from './jobs.js';
import type { Clock, Timer } from '../system/clock.js';
import type { ClusterState, Lease } from '../state/cluster-state.js';

/** What is counted of a job. */
interface JobCounts {
  /** Begun so far, those cut short by a crash included. */
  attempts: number;
  /** How often it gave up its resource, or was stopped with its process. */
  interruptions: number;
}

/** How an attempt ended. */
interface AttemptEnd {
  /** What it was rejected with; undefined: it is done. */
  failure: unknown;
  /** It was aborted for no fault of its own. */
  wasInterrupted: boolean;
}

/** What becomes of a job after an attempt: it is over, or comes again after `laterMs` with these counts. */
type Verdict = { type: 'done' } | { type: 'failed' } | ({ type: 'again'; laterMs: number } & JobCounts);

/** Times between attempts, ms. */
export interface RetryTimes {
  /** Before the second attempt; doubled before each further one. Default 10 s. */
  retryMs?: number;
  /** Before a job that gave up its resource, or did not get it, is tried again. Default 5 s. */
  quietMs?: number;
}

const maxPayloadBytes = 64 * 1024;
const defaultAttempts = 3;
const defaultRetryMs = 10_000;
const defaultQuietMs = 5000;
const maxRetryMs = 10 * 60_000;
/** A job that was interrupted so often has failed: its resource is never free for as long as it takes. */
const maxInterruptions = 100;

/** Failures that are listed. */
export const maxFailedKept = 100;

/** What there is one job of at a time. */
export function keyOf({ kind, key }: Pick<JobRequest, 'kind' | 'key'>): string {
  return JSON.stringify([kind, key]);
}

/** Attempts that a job has. */
export function attemptsOf({ maxAttempts = defaultAttempts }: Pick<JobRequest, 'maxAttempts'>): number {
  return maxAttempts;
}

/** Throws RangeError for a payload that is too large. */
export function checkPayload({ payload }: Pick<JobRequest, 'payload'>): void {
  const bytes = Buffer.byteLength(JSON.stringify(payload));
  if (bytes <= maxPayloadBytes) return;
  throw new RangeError(`the payload of a job has ${maxPayloadBytes} bytes at most, this one has ${bytes}`);
}

/** How long a job waits that did not get what it needs for itself, ms. */
export function quietMsOf({ quietMs = defaultQuietMs }: RetryTimes): number {
  return quietMs;
}

/** What becomes of a job whose attempt has ended; `counts` are those with that attempt. */
export function verdictOf(
  request: JobRequest,
  { attempts, interruptions }: JobCounts,
  { failure, wasInterrupted }: AttemptEnd,
  times: RetryTimes,
): Verdict {
  if (failure === undefined) return { type: 'done' };
  if (wasInterrupted) {
    if (interruptions >= maxInterruptions) return { type: 'failed' };
    return { type: 'again', laterMs: quietMsOf(times), attempts: attempts - 1, interruptions: interruptions + 1 };
  }
  if (attempts >= attemptsOf(request)) return { type: 'failed' };
  const laterMs = Math.min(maxRetryMs, (times.retryMs ?? defaultRetryMs) * 2 ** (attempts - 1));
  return { type: 'again', laterMs, attempts, interruptions };
}

/** Why a job failed, in words. */
export function reasonOf(failure: unknown): string {
  return failure instanceof Error ? failure.message : String(failure);
}

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

  /** Runs the body for the attempt of this number, for `timeoutMs` at most if the body obeys its signal. */
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

/** What resources are taken with. */
export interface LeaseOptions {
  clock: Clock;
  /** Where resources are taken. */
  leases: Pick<ClusterState, 'acquireLease' | 'renewLease' | 'releaseLease'>;
  /** Told of what did not work and is tried again. */
  onWarning?: (warning: Error) => void;
}

const leaseTtlMs = 10_000;

/**
 * Does `work` while `holder` has the resource for itself, and calls `onLost` where it loses it meanwhile. False, and
 * nothing was done, where another one has it.
 */
export async function withResource(
  options: LeaseOptions,
  { resource, holder }: { resource: string; holder: string },
  work: () => Promise<void>,
  onLost: () => void,
): Promise<boolean> {
  const lease = await options.leases.acquireLease(`jobs/${resource}`, holder, leaseTtlMs);
  if (lease === undefined) return false;
  const renewal = keep(options, lease, onLost);
  try {
    await work();
  } finally {
    renewal.cancel();
    await options.leases.releaseLease(lease);
  }
  return true;
}

/** Renews a lease in time, until it is cancelled or the lease is lost. */
function keep({ clock, leases, onWarning }: LeaseOptions, lease: Lease, onLost: () => void): Timer {
  let isOver = false;
  let timer: Timer;
  const renewLater = (): void => {
    timer = clock.setBackgroundTimer(leaseTtlMs / 3, () => void renew());
  };
  const renew = async (): Promise<void> => {
    const isRenewed = await leases.renewLease(lease, leaseTtlMs).catch((error: unknown) => {
      onWarning?.(error as Error);
      return false;
    });
    if (isOver) return;
    if (isRenewed) renewLater();
    else onLost();
  };
  renewLater();
  return {
    cancel: () => {
      isOver = true;
      timer.cancel();
    },
  };
}
