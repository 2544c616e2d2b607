import Bull from 'bull';
import type { Redis } from 'ioredis';
import { idOf } from './job-queue.js';
import type { JobQueue, JobQueueOptions, KeptJob, LockedJob } from './job-queue.js';

/** Methods that Bull has and its types leave out; they are what its own workers call. */
interface ManualQueue {
  moveToActive(): Promise<ManualJob | null | undefined>;
  moveUnlockedJobsToWait(): Promise<unknown>;
  readonly client: Redis & { updateDelaySet(args: (string | number)[]): Promise<unknown> };
  readonly keys: Readonly<Record<string, string>>;
  readonly token: string;
}
type ManualJob = Bull.Job<KeptJob> & { moveToDelayed(timestamp: number): Promise<void> };

/** A job is returned to those that wait whenever its lock is lost: how often it may be begun is counted in it. */
const unlimited = Number.MAX_SAFE_INTEGER;

/**
 * A queue of Bull whose jobs are fetched one by one (what Bull calls processing by hand): no connection of it blocks, and
 * nothing runs that was not asked for.
 */
export function openBullQueue({ redis, prefix, kind, lockMs, now }: JobQueueOptions): JobQueue {
  const queue = new Bull<KeptJob>(kind, {
    prefix,
    createClient: () => redis,
    // One process marks who runs, and half a lock later gives back who has no lock any more.
    settings: { lockDuration: lockMs, stalledInterval: Math.ceil(lockMs / 2), maxStalledCount: unlimited },
    skipVersionCheck: true,
  } as Bull.QueueOptions);
  const manual = queue as unknown as ManualQueue;

  const locked = (job: ManualJob): LockedJob => ({
    kept: job.data,
    extend: async () => (await job.extendLock(lockMs)) === 1,
    async write(kept) {
      // Bull writes without checking the lock's owner.
      if ((await job.extendLock(lockMs)) !== 1) throw new Error(`the lock of job ${kept.request.key} was lost`);
      await job.update(kept);
    },
    giveBack: (delayMs) => job.moveToDelayed(now() + Math.ceil(delayMs)),
    remove: async () => {
      await job.moveToCompleted('', false, true);
    },
  });

  return {
    has: async (key) => (await queue.getJob(idOf(key))) !== null,
    async add(job) {
      await queue.add(job, { jobId: idOf(job.request.key), removeOnComplete: true });
    },
    async take() {
      const job = await manual.moveToActive();
      return job ? locked(job) : undefined;
    },
    async sweep() {
      const { keys, client, token } = manual;
      const names = ['delayed', 'active', 'wait', 'priority', 'paused', 'meta-paused'].map((name) => keys[name] ?? '');
      await client.updateDelaySet([...names, keys[''] ?? '', now(), token]);
      await manual.moveUnlockedJobsToWait();
    },
    async list() {
      const [running, waiting] = await Promise.all([queue.getActive(), queue.getJobs(['waiting', 'delayed'])]);
      const ids = new Set(running.map((job) => job?.id));
      const found = (jobs: Bull.Job<KeptJob>[], isRunning: boolean) =>
        // A job that ended while the list was made is null.
        jobs.filter((job) => job !== null).map((job) => ({ kept: job.data, isRunning }));
      return [
        ...found(running, true),
        ...found(
          waiting.filter((job) => !ids.has(job?.id)),
          false,
        ),
      ];
    },
    async count() {
      const { waiting, active, delayed } = await queue.getJobCounts();
      return waiting + active + delayed;
    },
    close: () => queue.close(),
  };
}
