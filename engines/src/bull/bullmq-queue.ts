import { randomUUID } from 'node:crypto';
import { Queue, Worker } from 'bullmq';
import type { Job } from 'bullmq';
import { idOf } from './job-queue.js';
import type { JobQueue, JobQueueOptions, KeptJob, LockedJob } from './job-queue.js';

/** A job is returned to those that wait whenever its lock is lost: how often it may be begun is counted in it. */
const unlimited = Number.MAX_SAFE_INTEGER;
const jobName = 'job';
/** Keys of Bull begin without it. */
const ownPrefix = 'mq';

/**
 * A queue of BullMQ whose jobs are fetched one by one (what BullMQ calls fetching jobs manually), by methods of its public
 * interface. The first job that is taken opens a worker, which has a second connection to Redis, gives back jobs whose
 * lock is over twice a lock's duration, and runs nothing by itself.
 */
export function openBullmqQueue({ redis, prefix, kind, lockMs, now }: JobQueueOptions): JobQueue {
  const shared = { prefix: `${prefix}:${ownPrefix}`, connection: redis, skipVersionCheck: true };
  const queue = new Queue<KeptJob>(kind, { ...shared, skipMetasUpdate: true });
  // Calls that fail reject, too.
  queue.on('error', () => undefined);
  let opened: Worker<KeptJob> | undefined;

  function worker(): Worker<KeptJob> {
    if (opened) return opened;
    opened = new Worker<KeptJob>(kind, null, {
      ...shared,
      autorun: false,
      lockDuration: lockMs,
      stalledInterval: Math.ceil(lockMs / 2),
      maxStalledCount: unlimited,
    });
    // Of the same server, whose errors the other connection tells.
    opened.on('error', () => undefined);
    void opened.startStalledCheckTimer();
    return opened;
  }

  const locked = (job: Job<KeptJob>, token: string): LockedJob => ({
    kept: job.data,
    extend: async () => (await job.extendLock(token, lockMs)) === 1,
    async write(kept) {
      // BullMQ writes without checking the lock's owner.
      if ((await job.extendLock(token, lockMs)) !== 1) throw new Error(`the lock of job ${kept.request.key} was lost`);
      await job.updateData(kept);
    },
    giveBack: (delayMs) => job.moveToDelayed(now() + Math.ceil(delayMs), token),
    remove: async () => {
      await job.moveToCompleted('', token, false);
    },
  });

  return {
    has: async (key) => (await queue.getJob(idOf(key))) !== undefined,
    async add(job) {
      await queue.add(jobName, job, { jobId: idOf(job.request.key), removeOnComplete: true });
    },
    async take() {
      const token = randomUUID();
      const job = await worker().getNextJob(token, { block: false });
      return job ? locked(job, token) : undefined;
    },
    // Taking a job releases jobs that no longer wait, and the worker gives back jobs without a lock.
    sweep: () => Promise.resolve(),
    async list() {
      const [running, waiting]: [(Job<KeptJob> | undefined)[], (Job<KeptJob> | undefined)[]] = await Promise.all([
        queue.getActive(),
        queue.getJobs(['waiting', 'delayed']),
      ]);
      const ids = new Set(running.map((job) => job?.id));
      const found = (jobs: (Job<KeptJob> | undefined)[], isRunning: boolean) =>
        // A job that ended while the list was made is undefined.
        jobs.filter((job) => job !== undefined).map((job) => ({ kept: job.data, isRunning }));
      return [
        ...found(running, true),
        ...found(
          waiting.filter((job) => !ids.has(job?.id)),
          false,
        ),
      ];
    },
    async count() {
      const { waiting = 0, active = 0, delayed = 0 } = await queue.getJobCounts('waiting', 'active', 'delayed');
      return waiting + active + delayed;
    },
    async close() {
      await opened?.close(true);
      await queue.close();
    },
  };
}
