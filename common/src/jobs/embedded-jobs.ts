// The job engine of a single process, and the journal that keeps its jobs across restarts.
import { openAppendLog } from '../bus/file-log.js';
import type { LogDamage, AppendLog, LogEntry } from '../bus/append-log.js';
import type { Timer } from '../system/clock.js';
import type { Disk } from '../system/disk.js';
import type { Random } from '../system/random.js';
import {
  attemptsOf,
  checkPayload,
  keyOf,
  maxFailedKept,
  quietMsOf,
  reasonOf,
  verdictOf,
  JobRun,
  withResource,
} from './job-rules.js';
import type { RetryTimes, LeaseOptions } from './job-rules.js';
import { JobsClosedError, JobsFullError } from './jobs.js';
import type { FailedJob, HandlerOptions, JobBody, JobHandler, JobRequest, Jobs, PendingJob } from './jobs.js';

interface EmbeddedJobsOptions extends LeaseOptions, RetryTimes {
  disk: Disk;
  /** Absolute path of a folder of its own. */
  folder: string;
  random: Random;
  /** Of this process, among those that share the leases. */
  holder: string;
  /** Jobs that wait and run, at most. Default 1000. */
  maxPending?: number;
  /** How long `close` waits for bodies to end. Default 5 s. */
  closeMs?: number;
}

interface Handler {
  options: HandlerOptions;
  body: JobBody;
  /** By the promise of their end. */
  running: Map<Promise<void>, JobRun>;
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
    for (const job of left) this.byKey.set(keyOf(job.request), { ...job, readyMs: 0 });
    this.nextId = (left.at(-1)?.id ?? 0) + 1;
  }

  /** Those whose last attempt ended with their process. */
  async giveUpSpent(): Promise<void> {
    for (const job of this.byKey.values()) {
      if (job.attempts >= attemptsOf(job.request)) {
        await this.fail(job, new Error('the process ended in its last attempt'));
      }
    }
  }

  async submit(request: JobRequest): Promise<boolean> {
    if (this.closing !== undefined) throw new JobsClosedError('jobs are closed');
    checkPayload(request);
    const key = keyOf(request);
    if (this.byKey.has(key)) return false;
    const maxPending = this.options.maxPending ?? 1000;
    if (this.byKey.size >= maxPending) throw new JobsFullError(`${maxPending} jobs are waiting already`);
    const job: Job = {
      id: this.nextId,
      request: structuredClone(request),
      attempts: 0,
      interruptions: 0,
      readyMs: Infinity,
    };
    this.nextId += 1;
    this.byKey.set(key, job);
    try {
      await this.note(job);
    } catch (error) {
      this.byKey.delete(key);
      throw error;
    }
    job.readyMs = 0;
    this.pump();
    return true;
  }

  handle(kind: string, options: HandlerOptions, body: JobBody): JobHandler {
    if (this.closing !== undefined) throw new JobsClosedError('jobs are closed');
    if (this.handlers.has(kind)) throw new Error(`jobs of kind '${kind}' have a handler already`);
    const handler: Handler = { options, body, running: new Map() };
    this.handlers.set(kind, handler);
    this.pump();
    return {
      close: async () => {
        if (this.handlers.get(kind) === handler) this.handlers.delete(kind);
        for (const run of handler.running.values()) run.interrupt('it is not run here any more');
        await Promise.all(handler.running.keys());
      },
    };
  }

  interrupt(resource: string): void {
    for (const job of this.byKey.values()) {
      if (job.request.resource !== resource) continue;
      if (job.run !== undefined) job.run.interrupt(`${resource} is wanted for work`);
      else job.readyMs = Math.max(job.readyMs, this.options.clock.monotonicMs() + quietMsOf(this.options));
    }
  }

  pending(): Promise<PendingJob[]> {
    return Promise.resolve(
      Array.from(this.byKey.values(), ({ request: { kind, key }, run, attempts }) => ({
        kind,
        key,
        attempts,
        state: run === undefined ? 'waiting' : 'running',
      })),
    );
  }

  failed(): Promise<FailedJob[]> {
    return Promise.resolve([...this.failures]);
  }

  close(): Promise<void> {
    this.closing ??= this.end();
    return this.closing;
  }

  private async end(): Promise<void> {
    this.timer?.cancel();
    for (const job of this.byKey.values()) job.run?.interrupt('the process stops');
    const running = Array.from(this.handlers.values(), (handler) => [...handler.running.keys()]).flat();
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
    for (const { run, request } of this.byKey.values()) {
      if (run !== undefined && request.resource !== undefined) taken.add(request.resource);
    }
    let nextMs = Infinity;
    for (const job of this.byKey.values()) {
      const handler = this.handlers.get(job.request.kind);
      const { resource } = job.request;
      if (job.run !== undefined || handler === undefined) continue;
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
    const run = (job.run = new JobRun(job.request));
    const over = this.run(job, handler, run).catch((error: unknown) => {
      // The journal or the leases failed: what is noted is older than what is true, and the job comes again.
      this.options.onWarning?.(error as Error);
      this.wait(job, quietMsOf(this.options));
    });
    handler.running.set(over, run);
    void over.then(() => {
      handler.running.delete(over);
      this.pump();
    });
  }

  private async run(job: Job, handler: Handler, run: JobRun): Promise<void> {
    const { resource } = job.request;
    if (resource === undefined) return this.attempt(job, handler, run);
    const isTaken = await withResource(
      this.options,
      { resource, holder: `${this.options.holder}/${job.id}` },
      () => this.attempt(job, handler, run),
      () => run.interrupt(`${resource} was lost`),
    );
    if (!isTaken) this.wait(job, quietMsOf(this.options));
  }

  private async attempt(job: Job, { options, body }: Handler, run: JobRun): Promise<void> {
    job.attempts += 1;
    // Noted before it begins: a job that ends the process is not tried for ever.
    await this.note(job);
    const end = await run.attempt(body, job.attempts, this.options.clock, options.timeoutMs);
    const verdict = verdictOf(job.request, job, end, this.options);
    if (verdict.type === 'failed') return this.fail(job, end.failure);
    if (verdict.type === 'done') return this.finish(job);
    const { attempts, interruptions, laterMs } = verdict;
    if (attempts !== job.attempts) {
      Object.assign(job, { attempts, interruptions });
      await this.note(job);
    }
    this.wait(job, laterMs);
  }

  private async fail(job: Job, failure: unknown): Promise<void> {
    const { kind, key } = job.request;
    const { attempts } = job;
    this.failures.push({ kind, key, attempts, reason: reasonOf(failure), at: this.options.clock.now() });
    if (this.failures.length > maxFailedKept) this.failures.shift();
    await this.finish(job);
  }

  private async finish(job: Job): Promise<void> {
    this.byKey.delete(keyOf(job.request));
    await this.journal.end(job.id, () => this.journalled());
  }

  private async note(job: Job): Promise<void> {
    await this.journal.note(journalled(job), () => this.journalled());
  }

  private wait(job: Job, durationMs: number): void {
    delete job.run;
    job.readyMs = this.options.clock.monotonicMs() + durationMs;
  }

  private *journalled(): Iterable<JournalJob> {
    for (const job of this.byKey.values()) yield journalled(job);
  }
}

/** A job of one process. */
interface Job extends JournalJob {
  /** Monotonic ms. */
  readyMs: number;
  /** Absent: it waits. */
  run?: JobRun;
}

/** What of a job its journal keeps. */
function journalled({ id, request, attempts, interruptions }: Job): JournalJob {
  return { id, request, attempts, interruptions };
}

/** A job as the journal knows it. */
interface JournalJob {
  /** Of the cluster's life: rises from job to job. */
  id: number;
  request: JobRequest;
  attempts: number;
  /** How often it gave up its resource, or was stopped with its process. */
  interruptions: number;
}

type Entry = { op: 'job'; job: JournalJob } | { op: 'end'; id: number };

const stream = 'jobs';

/** After so many entries what is pending is written again, and what lies before is dropped. */
const entriesPerFile = 1000;

/** Which jobs are pending, in an append log: every change of a job is the whole job again. */
class JobJournal {
  private readonly restored = new Map<number, JournalJob>();
  private log: AppendLog | undefined;
  private entries = 0;

  /** Takes an entry of an earlier process. Throws SyntaxError for one that is none. */
  restore({ payload }: Pick<LogEntry, 'payload'>): void {
    const entry = JSON.parse(Buffer.from(payload).toString('utf8')) as Entry;
    if (entry.op === 'job') this.restored.set(entry.job.id, entry.job);
    else this.restored.delete(entry.id);
  }

  /** Starts writing to the log; gives the jobs that are left, oldest first. */
  open(log: AppendLog): JournalJob[] {
    this.log = log;
    const left = [...this.restored.values()].sort((one, other) => one.id - other.id);
    this.restored.clear();
    return left;
  }

  /** Notes a job as it is now; resolves when the note would survive a power loss. */
  async note(job: JournalJob, pending: () => Iterable<JournalJob>): Promise<void> {
    await this.append({ op: 'job', job }, pending);
  }

  /** Notes that a job is over. */
  async end(id: number, pending: () => Iterable<JournalJob>): Promise<void> {
    await this.append({ op: 'end', id }, pending);
  }

  async close(): Promise<void> {
    await this.log?.close();
  }

  private async append(entry: Entry, pending: () => Iterable<JournalJob>): Promise<void> {
    const log = this.log;
    if (log === undefined) throw new Error('the journal is not open');
    const position = log.append(stream, JSON.stringify(entry));
    this.entries += 1;
    const kept = this.entries >= entriesPerFile ? this.rewrite(log, position, pending()) : undefined;
    await log.synced(position);
    if (kept === undefined) return;
    await log.synced(kept.last);
    log.release(kept.first);
  }

  /** Writes what is pending behind `position`; gives where the first and the last entry that matter are. */
  private rewrite(log: AppendLog, position: number, pending: Iterable<JournalJob>): { first: number; last: number } {
    this.entries = 0;
    const positions = Array.from(pending, (job) =>
      log.append(stream, JSON.stringify({ op: 'job', job } satisfies Entry)),
    );
    return { first: positions[0] ?? position, last: positions.at(-1) ?? position };
  }
}
