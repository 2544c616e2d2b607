import { describe, expect, test } from '@jest/globals';
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openEmbeddedJobs } from '@gpuwhisk/common/jobs/embedded-jobs';
import type { Jobs } from '@gpuwhisk/common/jobs/jobs';
import { simulatedJobs } from '@gpuwhisk/common/testing/simulated-jobs';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { systemDisk } from '@gpuwhisk/common/system/disk';
import { seededRandom, systemRandom } from '@gpuwhisk/common/system/random';
import { until } from '@gpuwhisk/common/testing/until';
import { testJobs } from './jobs.js';
import type { JobsHome } from './jobs.js';

const fast = { maxPending: 10, retryMs: 1, quietMs: 5, closeMs: 200 };

async function openIn(folder: string): Promise<Jobs> {
  const { jobs } = await openEmbeddedJobs({
    disk: systemDisk,
    folder,
    clock: systemClock,
    random: systemRandom,
    leases: embeddedState(systemClock),
    holder: 'controller0',
    ...fast,
  });
  return jobs;
}

async function makeHome(wrap: (jobs: Jobs) => Jobs): Promise<JobsHome> {
  const root = await mkdtemp(join(tmpdir(), 'gpuwhisk-jobs-'));
  const killed: Jobs[] = [];
  let life = 0;
  let current: Jobs | undefined;
  const open = async (): Promise<Jobs> => (current = wrap(await openIn(join(root, `${life}`))));
  return {
    open,
    openAfterCrash: async () => {
      // A copy of the files as they are now is what a killed process would leave.
      await cp(join(root, `${life}`), join(root, `${life + 1}`), { recursive: true });
      life += 1;
      if (current !== undefined) killed.push(current);
      return open();
    },
    close: async () => {
      for (const jobs of killed) await jobs.close();
      await rm(root, { recursive: true });
    },
  };
}

testJobs('the embedded jobs', () => makeHome((jobs) => jobs));

testJobs('the simulated jobs', () => {
  const random = seededRandom(3);
  return makeHome((jobs) => simulatedJobs(jobs, { clock: systemClock, random, delayMs: 4, lostShare: 0.3 }));
});

describe('embedded jobs', () => {
  async function withFolder(run: (folder: string) => Promise<void>): Promise<void> {
    const folder = await mkdtemp(join(tmpdir(), 'gpuwhisk-jobs-'));
    try {
      await run(folder);
    } finally {
      await rm(folder, { recursive: true });
    }
  }

  test('the journal does not grow with what is done, and keeps what waits', () =>
    withFolder(async (folder) => {
      let jobs = await openIn(folder);
      await jobs.submit({ kind: 'rare', key: 'kept', payload: 'kept' });
      let done = 0;
      jobs.handle('frequent', { concurrency: 10, timeoutMs: 20_000 }, () => Promise.resolve(void (done += 1)));
      for (let round = 0; round < 200; round += 1) {
        await Promise.all(
          Array.from({ length: 5 }, (_, at) =>
            jobs.submit({ kind: 'frequent', key: `${at}`, payload: 'x'.repeat(60_000) }),
          ),
        );
        await until(async () => (await jobs.pending()).length === 1);
      }
      expect(done).toBe(1000);
      await jobs.close();
      // Six files are far less than the 200 MB that were written.
      expect((await readdir(folder)).length).toBeLessThanOrEqual(6);
      jobs = await openIn(folder);
      expect(await jobs.pending()).toMatchObject([{ kind: 'rare', key: 'kept' }]);
      await jobs.close();
    }));

  test('a resource that another process has is waited for', () =>
    withFolder(async (folder) => {
      const state = embeddedState(systemClock);
      const lease = await state.acquireLease('jobs/gpu/GPU-1', 'elsewhere', 60_000);
      const { jobs } = await openEmbeddedJobs({
        disk: systemDisk,
        folder,
        clock: systemClock,
        random: systemRandom,
        leases: state,
        holder: 'controller0',
        ...fast,
      });
      let runs = 0;
      jobs.handle('search', { concurrency: 1, timeoutMs: 20_000 }, () => Promise.resolve(void (runs += 1)));
      await jobs.submit({ kind: 'search', key: 'a', payload: null, resource: 'gpu/GPU-1', maxAttempts: 1 });
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect(runs).toBe(0);
      await state.releaseLease(lease!);
      await until(async () => (await jobs.pending()).length === 0);
      expect(runs).toBe(1);
      await jobs.close();
      expect(await state.currentLease('jobs/gpu/GPU-1')).toBeUndefined();
    }));
});
