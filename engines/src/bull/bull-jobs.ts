import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { checkPayload, maxFailedKept, quietMsOf } from '@gpuwhisk/common/jobs/job-rules';
import type { RetryTimes, LeaseOptions } from '@gpuwhisk/common/jobs/job-rules';
import { JobsClosedError, JobsFullError } from '@gpuwhisk/common/jobs/jobs';
import type {
  FailedJob,
  HandlerOptions,
  JobBody,
  JobHandler,
  JobRequest,
  Jobs,
  PendingJob,
} from '@gpuwhisk/common/jobs/jobs';
import { StateUnavailableError } from '@gpuwhisk/common/state/cluster-state';
import type { ClusterState, StateSubscription } from '@gpuwhisk/common/state/cluster-state';
import { connectRedis, runScript } from '../redis/redis-client.js';
import type { RedisClientOptions } from '../redis/redis-client.js';
import { releaseSubmission } from '../redis/scripts.js';
import { BullHandler } from './bull-handler.js';
import { loadJobQueue } from './job-queue.js';
import type { JobQueue, JobQueueLibrary, JobQueueOptions } from './job-queue.js';

export interface BullJobsOptions extends RedisClientOptions, RetryTimes, LeaseOptions {
  /** Which keeps the queues; default: bull. */
  library?: JobQueueLibrary;
  /** Before every key: clusters that share a Redis have different ones. */
  prefix: string;
  /** Where resources are taken, and interruptions are told to other processes. */
  leases: Pick<ClusterState, 'acquireLease' | 'renewLease' | 'releaseLease' | 'publish' | 'subscribe'>;
  /** Of this process, among those that share the leases. */
  holder: string;
  /** Jobs that wait and run, at most; a few more where several processes submit in the same moment. Default 1000. */
  maxPending?: number;
  /** How long a job stays with a process that tells nothing of it, ms. Default 10 s. */
  lockMs?: number;
  /** How often a process looks for jobs of others, ms. Default 1 s. */
  pollMs?: number;
  /** How long `close` waits for bodies to end. Default 5 s. */
  closeMs?: number;
}

const interruptChannel = 'jobs-interrupt';
/** Longer than its few commands may take. */
const submissionMs = 30_000;
const maxQuiet = 10_000;

/** Connects to the jobs in Redis. Rejects with StateUnavailableError. */
export async function openBullJobs(options: BullJobsOptions): Promise<Jobs> {
  const openQueue = await loadJobQueue(options.library ?? 'bull');
  const redis = await connectRedis(options);
  const jobs = new BullJobs(redis, openQueue, options);
  try {
    await jobs.open();
  } catch (error) {
    redis.disconnect();
    throw error;
  }
  return jobs;
}

/**
 * Jobs of a cluster, in Redis by Bull or BullMQ: it keeps who waits, who runs with whose lock, and gives back what was lost with a
 * process. That there is one of a key at a time, how often one is tried, and what is interrupted is decided here.
 */
class BullJobs implements Jobs {
  private readonly queues = new Map<string, JobQueue>();
  private readonly handlers = new Map<string, BullHandler>();
  /** Until when resources are left alone, monotonic ms. */
  private readonly quiet = new Map<string, number>();
  private news: StateSubscription | undefined;
  private closing: Promise<void> | undefined;
  private readonly prefix: string;

  constructor(
    private readonly redis: Redis,
    private readonly openQueue: (options: JobQueueOptions) => JobQueue,
    private readonly options: BullJobsOptions,
  ) {
    this.prefix = `${options.prefix}jobs`;
  }

  async open(): Promise<void> {
    this.news = await this.options.leases.subscribe(interruptChannel, (resource) => {
      if (typeof resource === 'string') this.giveUp(resource);
    });
  }

  async submit(request: JobRequest): Promise<boolean> {
    this.checkOpen();
    checkPayload(request);
    const { kind, key } = request;
    const lock = `${this.prefix}:submit:${JSON.stringify([kind, key])}`;
    const token = randomUUID();
    return this.ask(async () => {
      // The libraries do not tell whether a job of the id was there.
      if ((await this.redis.set(lock, token, 'PX', submissionMs, 'NX')) === null) return false;
      try {
        const isTaken = await this.add(request);
        if (isTaken) this.handlers.get(kind)?.lookNow();
        return isTaken;
      } finally {
        await runScript(this.redis, releaseSubmission, [lock], [token]);
      }
    });
  }

  handle(kind: string, options: HandlerOptions, body: JobBody): JobHandler {
    this.checkOpen();
    if (this.handlers.has(kind)) throw new Error(`jobs of kind '${kind}' have a handler already`);
    const handler = new BullHandler({
      ...this.options,
      queue: this.queue(kind),
      options,
      body,
      lockMs: this.lockMs,
      quietLeftMs: (resource) => (this.quiet.get(resource) ?? 0) - this.options.clock.monotonicMs(),
      onFailed: (failed) => this.list(failed),
    });
    this.handlers.set(kind, handler);
    handler.open();
    return {
      close: async () => {
        if (this.handlers.get(kind) === handler) this.handlers.delete(kind);
        await handler.close('it is not run here any more');
      },
    };
  }

  interrupt(resource: string): void {
    this.giveUp(resource);
    this.options.leases.publish(interruptChannel, resource).catch((error: unknown) => this.warn(error));
  }

  pending(): Promise<PendingJob[]> {
    this.checkOpen();
    return this.ask(async () => {
      const kinds = await this.redis.smembers(this.kindsKey);
      const lists = await Promise.all(kinds.map((kind) => this.queue(kind).list()));
      return lists
        .flat()
        .sort((one, other) => one.kept.number - other.kept.number)
        .map(({ kept: { request, attempts }, isRunning }) => ({
          ...{ kind: request.kind, key: request.key, attempts },
          state: isRunning ? 'running' : 'waiting',
        }));
    });
  }

  failed(): Promise<FailedJob[]> {
    this.checkOpen();
    return this.ask(async () => {
      const texts = await this.redis.lrange(this.failedKey, 0, -1);
      return texts.map((text) => JSON.parse(text) as FailedJob);
    });
  }

  close(): Promise<void> {
    this.closing ??= this.end();
    return this.closing;
  }

  private get lockMs(): number {
    return this.options.lockMs ?? 10_000;
  }

  private get kindsKey(): string {
    return `${this.prefix}:kinds`;
  }

  private get failedKey(): string {
    return `${this.prefix}:failed`;
  }

  private checkOpen(): void {
    if (this.closing !== undefined) throw new JobsClosedError('jobs are closed');
  }

  private async ask<Result>(operation: () => Promise<Result>): Promise<Result> {
    try {
      return await operation();
    } catch (error) {
      if (error instanceof JobsFullError) throw error;
      throw new StateUnavailableError(`Redis: ${(error as Error).message}`, { cause: error });
    }
  }

  private warn(error: unknown): void {
    this.options.onWarning?.(error as Error);
  }

  private queue(kind: string): JobQueue {
    let queue = this.queues.get(kind);
    if (queue === undefined) {
      const { redis, prefix, lockMs } = this;
      queue = this.openQueue({ redis, prefix, kind, lockMs, now: () => this.options.clock.now() });
      this.queues.set(kind, queue);
    }
    return queue;
  }

  private async add(request: JobRequest): Promise<boolean> {
    const queue = this.queue(request.kind);
    if (await queue.has(request.key)) return false;
    await this.redis.sadd(this.kindsKey, request.kind);
    const kinds = await this.redis.smembers(this.kindsKey);
    const counts = await Promise.all(kinds.map((kind) => this.queue(kind).count()));
    const maxPending = this.options.maxPending ?? 1000;
    if (counts.reduce((sum, count) => sum + count, 0) >= maxPending) {
      throw new JobsFullError(`${maxPending} jobs are waiting already`);
    }
    const number = await this.redis.incr(`${this.prefix}:number`);
    await queue.add({ request, number, attempts: 0, interruptions: 0 });
    return true;
  }

  /** A resource is wanted: here no job has it for a while. */
  private giveUp(resource: string): void {
    const nowMs = this.options.clock.monotonicMs();
    for (const [known, untilMs] of this.quiet) if (untilMs <= nowMs) this.quiet.delete(known);
    // Resources are few; where they are not, one more attempt finds its lease taken.
    if (this.quiet.size < maxQuiet) this.quiet.set(resource, nowMs + quietMsOf(this.options));
    for (const handler of this.handlers.values()) handler.interrupt(resource);
  }

  private async list(failed: FailedJob): Promise<void> {
    await this.redis.rpush(this.failedKey, JSON.stringify(failed));
    await this.redis.ltrim(this.failedKey, -maxFailedKept, -1);
  }

  private async end(): Promise<void> {
    const over = Promise.all(Array.from(this.handlers.values(), (handler) => handler.close('the process stops')));
    await new Promise<void>((resolve) => {
      const timer = this.options.clock.setBackgroundTimer(this.options.closeMs ?? 5000, resolve);
      void over.then(() => {
        timer.cancel();
        resolve();
      });
    });
    await this.news?.close().catch((error: unknown) => this.warn(error));
    for (const queue of this.queues.values()) await queue.close();
    this.redis.disconnect();
  }
}
