import { openAppendLog } from '../bus/file-log.js';
import type { LogDamage } from '../bus/append-log.js';
import type { Timer } from '../system/clock.js';
import type { Disk } from '../system/disk.js';
import type { Random } from '../system/random.js';
import { interruptJob, journalled, keyOf } from './embedded-job.js';
import type { Job } from './embedded-job.js';
import { JobJournal } from './job-journal.js';
import type { JournalJob } from './job-journal.js';
import { JobsClosedError, JobsFullError } from './jobs.js';
import type { FailedJob, HandlerOptions, JobBody, JobRequest, Jobs, PendingJob } from './jobs.js';
import { withResource } from './resource-lease.js';
import type { LeaseOptions } from './resource-lease.js';

export interface EmbeddedJobsOptions extends LeaseOptions {
  disk: Disk;
  /** Absolute path of a folder of its own. */
  folder: string;
  random: Random;
  /** Of this process, among those that share the leases. */
  holder: string;
  /** Jobs that wait and run, at most. Default 1000. */
  maxPending?: number;
  /** Before the second attempt; doubled before each further one. Default 10 s. */
  retryMs?: number;
  /** Before a job that gave up its resource, or did not get it, is tried again. Default 5 s. */
  quietMs?: number;
  /** How long `close` waits for bodies to end. Default 5 s. */
  closeMs?: number;
}

const maxPayloadBytes = 64 * 1024;
const defaultAttempts = 3;
const maxFailedKept = 100;
const maxRetryMs = 10 * 60_000;
/** A job that was interrupted so often has failed: its resource is never free for as long as it takes. */
const maxInterruptions = 100;

interface Handler {
  options: HandlerOptions;
  body: JobBody;
  running: Set<Promise<void>>;
}

/** Opens the jobs that `folder` keeps. */
export async function openEmbeddedJobs(options: EmbeddedJobsOptions): Promise<{ jobs: Jobs; damage: LogDamage[] }> {
  const journal = new JobJournal();
  const { log, damage } = await openAppendLog({ ...options, onEntry: (entry) => journal.restore(entry) });
  const jobs = new EmbeddedJobs(options, journal, journal.open(log));
  await jobs.giveUpSpent();
  return { jobs, damage };
}

/** Jobs of one process, in a journal on disk. */
class EmbeddedJobs implements Jobs {
  private readonly byKey = new Map<string, Job>();
  private readonly handlers = new Map<string, Handler>();
  private readonly failures: FailedJob[] = [];
  private nextId: number;
  private timer: Timer | undefined;
  private closing: Promise<void> | undefined;

  constructor(
    private readonly options: EmbeddedJobsOptions,
    private readonly journal: JobJournal,
    left: readonly JournalJob[],
  ) {
    for (const job of left)
      this.byKey.set(keyOf(job.request), { ...job, state: 'waiting', readyMs: 0, interrupted: false });
    this.nextId = (left.at(-1)?.id ?? 0) + 1;
  }

  /** Those whose last attempt ended with their process. */
  async giveUpSpent(): Promise<void> {
    for (const job of this.byKey.values()) {
      if (job.attempts >= (job.request.maxAttempts ?? defaultAttempts)) {
        await this.fail(job, new Error('the process ended in its last attempt'));
      }
    }
  }

  async submit(request: JobRequest): Promise<boolean> {
    if (this.closing !== undefined) throw new JobsClosedError('jobs are closed');
    const bytes = Buffer.byteLength(JSON.stringify(request.payload));
    if (bytes > maxPayloadBytes) {
      throw new RangeError(`the payload of a job has ${maxPayloadBytes} bytes at most, this one has ${bytes}`);
    }
    const key = keyOf(request);
    if (this.byKey.has(key)) return false;
    const maxPending = this.options.maxPending ?? 1000;
    if (this.byKey.size >= maxPending) throw new JobsFullError(`${maxPending} jobs are waiting already`);
    const job: Job = {
      id: this.nextId,
      request: structuredClone(request),
      attempts: 0,
      interruptions: 0,
      state: 'waiting',
      readyMs: Infinity,
      interrupted: false,
    };
    this.nextId += 1;
    this.byKey.set(key, job);
    try {
      await this.journal.note(journalled(job), () => this.journalled());
    } catch (error) {
      this.byKey.delete(key);
      throw error;
    }
    job.readyMs = 0;
    this.pump();
    return true;
  }

  handle(kind: string, options: HandlerOptions, body: JobBody): void {
    if (this.closing !== undefined) throw new JobsClosedError('jobs are closed');
    if (this.handlers.has(kind)) throw new Error(`jobs of kind '${kind}' have a handler already`);
    this.handlers.set(kind, { options, body, running: new Set() });
    this.pump();
  }

  interrupt(resource: string): void {
    for (const job of this.byKey.values()) {
      if (job.request.resource !== resource) continue;
      if (job.state === 'running') interruptJob(job, `${resource} is wanted for work`);
      else job.readyMs = Math.max(job.readyMs, this.options.clock.monotonicMs() + this.quietMs);
    }
  }

  pending(): PendingJob[] {
    return Array.from(this.byKey.values(), ({ request, state, attempts }) => ({
      kind: request.kind,
      key: request.key,
      state,
      attempts,
    }));
  }

  failed(): FailedJob[] {
    return [...this.failures];
  }

  close(): Promise<void> {
    this.closing ??= this.end();
    return this.closing;
  }

  private get quietMs(): number {
    return this.options.quietMs ?? 5000;
  }

  private async end(): Promise<void> {
    this.timer?.cancel();
    for (const job of this.byKey.values()) {
      if (job.state === 'running') interruptJob(job, 'the process stops');
    }
    const running = Array.from(this.handlers.values(), (handler) => [...handler.running]).flat();
    await new Promise<void>((resolve) => {
      const timer = this.options.clock.setBackgroundTimer(this.options.closeMs ?? 5000, resolve);
      void Promise.all(running).then(() => {
        timer.cancel();
        resolve();
      });
    });
    await this.journal.close();
  }

  /** Starts what can start, and sets a timer for what can later. */
  private pump(): void {
    if (this.closing !== undefined) return;
    const nowMs = this.options.clock.monotonicMs();
    const taken = new Set<string>();
    for (const { state, request } of this.byKey.values()) {
      if (state === 'running' && request.resource !== undefined) taken.add(request.resource);
    }
    let nextMs = Infinity;
    for (const job of this.byKey.values()) {
      const handler = this.handlers.get(job.request.kind);
      const { resource } = job.request;
      if (job.state === 'running' || handler === undefined) continue;
      if (job.readyMs > nowMs) {
        nextMs = Math.min(nextMs, job.readyMs);
      } else if (
        handler.running.size < handler.options.concurrency &&
        (resource === undefined || !taken.has(resource))
      ) {
        if (resource !== undefined) taken.add(resource);
        this.start(job, handler);
      }
    }
    this.timer?.cancel();
    this.timer =
      nextMs < Infinity ? this.options.clock.setBackgroundTimer(nextMs - nowMs, () => this.pump()) : undefined;
  }

  private start(job: Job, handler: Handler): void {
    job.state = 'running';
    job.interrupted = false;
    job.abort = new AbortController();
    const run = this.run(job, handler, job.abort).catch((error: unknown) => {
      // The journal or the leases failed: what is noted is older than what is true, and the job comes again.
      this.options.onWarning?.(error as Error);
      this.wait(job, this.quietMs);
    });
    handler.running.add(run);
    void run.then(() => {
      handler.running.delete(run);
      this.pump();
    });
  }

  private async run(job: Job, handler: Handler, abort: AbortController): Promise<void> {
    const { resource } = job.request;
    if (resource === undefined) return this.attempt(job, handler, abort);
    const isTaken = await withResource(
      this.options,
      { resource, holder: `${this.options.holder}/${job.id}` },
      () => this.attempt(job, handler, abort),
      () => interruptJob(job, `${resource} was lost`),
    );
    if (!isTaken) this.wait(job, this.quietMs);
  }

  private async attempt(job: Job, handler: Handler, abort: AbortController): Promise<void> {
    const { clock } = this.options;
    job.attempts += 1;
    // Noted before it begins: a job that ends the process is not tried for ever.
    await this.journal.note(journalled(job), () => this.journalled());
    const { timeoutMs } = handler.options;
    const timer = clock.setBackgroundTimer(timeoutMs, () =>
      abort.abort(new Error(`it took more than ${timeoutMs} ms`)),
    );
    let failure: unknown;
    try {
      if (job.interrupted) throw abort.signal.reason;
      const { payload, maxAttempts = defaultAttempts } = job.request;
      const isLast = job.attempts >= maxAttempts;
      await handler.body(structuredClone(payload), { attempt: job.attempts, isLast, signal: abort.signal });
    } catch (error) {
      failure = error ?? new Error('it failed without saying why');
    } finally {
      timer.cancel();
    }
    await this.conclude(job, failure);
  }

  private async conclude(job: Job, failure: unknown): Promise<void> {
    const { maxAttempts = defaultAttempts } = job.request;
    if (failure !== undefined && job.interrupted && job.interruptions < maxInterruptions) {
      job.attempts -= 1;
      job.interruptions += 1;
      await this.journal.note(journalled(job), () => this.journalled());
      return this.wait(job, this.quietMs);
    }
    if (failure !== undefined && !job.interrupted && job.attempts < maxAttempts) {
      return this.wait(job, Math.min(maxRetryMs, (this.options.retryMs ?? 10_000) * 2 ** (job.attempts - 1)));
    }
    if (failure !== undefined) return this.fail(job, failure);
    await this.finish(job);
  }

  private async fail(job: Job, failure: unknown): Promise<void> {
    const { kind, key } = job.request;
    const reason = failure instanceof Error ? failure.message : String(failure);
    this.failures.push({ kind, key, attempts: job.attempts, reason, at: this.options.clock.now() });
    if (this.failures.length > maxFailedKept) this.failures.shift();
    await this.finish(job);
  }

  private async finish(job: Job): Promise<void> {
    this.byKey.delete(keyOf(job.request));
    await this.journal.end(job.id, () => this.journalled());
  }

  private wait(job: Job, durationMs: number): void {
    job.state = 'waiting';
    job.readyMs = this.options.clock.monotonicMs() + durationMs;
  }

  private *journalled(): Iterable<JournalJob> {
    for (const job of this.byKey.values()) yield journalled(job);
  }
}
