import type { Clock } from '../system/clock.js';
import { sleep } from '../system/clock.js';
import type { Random } from '../system/random.js';
import { randomFraction } from '../system/random.js';
import type { Jobs } from '../jobs/jobs.js';

export interface SimulatedJobsOptions {
  clock: Clock;
  random: Random;
  /** How long taking a job and starting an attempt may take, ms: uniform up to this. */
  delayMs: number;
  /** Part of the attempts whose success is lost on its way, so that the job runs again; those that are the last are not. */
  lostShare: number;
}

/** `inner` as it is where jobs lie elsewhere: later, and more than once. */
export function simulatedJobs(inner: Jobs, { clock, random, delayMs, lostShare }: SimulatedJobsOptions): Jobs {
  const delay = (): Promise<void> => sleep(clock, randomFraction(random) * delayMs);
  return {
    async submit(request) {
      await delay();
      return inner.submit(request);
    },
    handle(kind, options, body) {
      return inner.handle(kind, options, async (payload, attempt) => {
        await delay();
        await body(payload, attempt);
        if (!attempt.isLast && randomFraction(random) < lostShare) throw new Error('its success was lost');
      });
    },
    interrupt: (resource) => inner.interrupt(resource),
    pending: () => inner.pending(),
    failed: () => inner.failed(),
    close: () => inner.close(),
  };
}
