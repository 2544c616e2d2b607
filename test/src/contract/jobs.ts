import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { JsonValue } from '@gpuwhisk/common/json';
import { JobsClosedError, JobsFullError } from '@gpuwhisk/common/jobs/jobs';
import type { JobAttempt, Jobs } from '@gpuwhisk/common/jobs/jobs';
import { until } from '@gpuwhisk/common/testing/until';

/** Storage of jobs across starts of a process. Retries and quiet times are some ms; ten jobs may be pending. */
export interface JobsHome {
  /** Opens the jobs in a new process; the process before was closed. */
  open(): Promise<Jobs>;
  /** Opens the jobs as stored at this moment, in a new process; the process before counts as killed. */
  openAfterCrash(): Promise<Jobs>;
  close(): Promise<void>;
}

const options = { concurrency: 4, timeoutMs: 20_000 };

/** A job that rejects once its signal is aborted. */
const endless = ({ signal }: JobAttempt): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    signal.addEventListener('abort', () => reject(signal.reason as Error));
  });

/** Registers the cases that every Jobs must pass. */
export function testJobs(name: string, makeHome: () => Promise<JobsHome>): void {
  describe(name, () => {
    let home: JobsHome;
    let jobs: Jobs;
    beforeEach(async () => {
      home = await makeHome();
      jobs = await home.open();
    });
    afterEach(async () => {
      await jobs.close();
      await home.close();
    });

    test('a job gets its payload, and is gone when it is done', async () => {
      const payloads: JsonValue[] = [];
      jobs.handle('search', options, (payload) => Promise.resolve(void payloads.push(payload)));
      expect(await jobs.submit({ kind: 'search', key: 'a', payload: { shares: [1, 2] } })).toBe(true);
      await until(async () => (await jobs.pending()).length === 0);
      expect(payloads[0]).toEqual({ shares: [1, 2] });
      expect(await jobs.failed()).toEqual([]);
    });

    test('jobs wait for a handler, and what is submitted twice is one job until it is done', async () => {
      expect(await jobs.submit({ kind: 'search', key: 'a', payload: 1 })).toBe(true);
      expect(await jobs.submit({ kind: 'search', key: 'a', payload: 2 })).toBe(false);
      expect(await jobs.submit({ kind: 'train', key: 'a', payload: 3 })).toBe(true);
      expect((await jobs.pending()).map(({ kind, state }) => [kind, state])).toEqual([
        ['search', 'waiting'],
        ['train', 'waiting'],
      ]);
      const seen = new Set<JsonValue>();
      jobs.handle('search', options, (payload) => Promise.resolve(void seen.add(payload)));
      await until(async () => (await jobs.pending()).length === 1);
      expect(await jobs.submit({ kind: 'search', key: 'a', payload: 4 })).toBe(true);
      await until(async () => (await jobs.pending()).length === 1);
      expect([...seen]).toEqual([1, 4]);
      expect(() => jobs.handle('search', options, () => Promise.resolve())).toThrow('have a handler already');
    });

    test('a handler that is closed gives up what runs, at no cost, and the next one runs it', async () => {
      const attempts: number[] = [];
      const first = jobs.handle('search', options, (_, attempt) => endless(attempt));
      await jobs.submit({ kind: 'search', key: 'a', payload: null, maxAttempts: 1 });
      await until(async () => (await jobs.pending())[0]?.state === 'running');
      await first.close();
      expect(await jobs.pending()).toMatchObject([{ key: 'a', state: 'waiting', attempts: 0 }]);
      jobs.handle('search', options, (_, { attempt }) => Promise.resolve(void attempts.push(attempt)));
      await until(async () => (await jobs.pending()).length === 0);
      expect(attempts).toEqual([1]);
      expect(await jobs.failed()).toEqual([]);
    });

    test('as many run at once as the handler allows, and a key never twice', async () => {
      const running = new Set<JsonValue>();
      let most = 0;
      let twice = false;
      jobs.handle('search', { ...options, concurrency: 2 }, async (payload) => {
        twice ||= running.has(payload);
        running.add(payload);
        most = Math.max(most, running.size);
        await until(() => most > 1);
        await new Promise((resolve) => setTimeout(resolve, 10));
        running.delete(payload);
      });
      for (let round = 0; round < 3; round += 1) {
        for (const key of ['a', 'b', 'c', 'd']) await jobs.submit({ kind: 'search', key, payload: key });
      }
      await until(async () => (await jobs.pending()).length === 0);
      expect(most).toBe(2);
      expect(twice).toBe(false);
    });

    test('what fails is tried again, as often as it may be, and then listed', async () => {
      const attempts: number[] = [];
      jobs.handle('search', options, (_, { attempt, isLast }) => {
        attempts.push(attempt);
        return Promise.reject(new Error(isLast ? 'not this time either' : 'not yet'));
      });
      await jobs.submit({ kind: 'search', key: 'a', payload: null, maxAttempts: 4 });
      await until(async () => (await jobs.failed()).length === 1);
      expect(attempts).toEqual([1, 2, 3, 4]);
      expect(await jobs.failed()).toMatchObject([
        { kind: 'search', key: 'a', attempts: 4, reason: 'not this time either' },
      ]);
      expect(await jobs.submit({ kind: 'search', key: 'a', payload: null })).toBe(true);
    });

    test('an attempt that takes too long is aborted and counts', async () => {
      let attempts = 0;
      jobs.handle('search', { concurrency: 1, timeoutMs: 20 }, (_, attempt) => {
        attempts += 1;
        return endless(attempt);
      });
      await jobs.submit({ kind: 'search', key: 'a', payload: null, maxAttempts: 2 });
      await until(async () => (await jobs.failed()).length === 1);
      expect(attempts).toBe(2);
      expect((await jobs.failed())[0]?.reason).toBe('it took more than 20 ms');
    });

    test('more than may be pending, and payloads that are too large, are refused', async () => {
      for (let job = 0; job < 10; job += 1) await jobs.submit({ kind: 'search', key: `${job}`, payload: null });
      await expect(jobs.submit({ kind: 'search', key: 'more', payload: null })).rejects.toThrow(JobsFullError);
      expect(await jobs.submit({ kind: 'search', key: '3', payload: null })).toBe(false);
      jobs.handle('search', options, () => Promise.resolve());
      await until(async () => (await jobs.pending()).length === 0);
      await expect(jobs.submit({ kind: 'search', key: 'more', payload: 'x'.repeat(70_000) })).rejects.toThrow(
        RangeError,
      );
    });

    test('what a job has for itself no other has, and is given up when it is wanted, at no cost', async () => {
      const log: string[] = [];
      const resource = 'gpu/GPU-1';
      jobs.handle('search', options, async (payload, attempt) => {
        log.push(`${String(payload)} begins`);
        if (log.length === 1) await endless(attempt).finally(() => log.push(`${String(payload)} gives up`));
        log.push(`${String(payload)} ends`);
      });
      await jobs.submit({ kind: 'search', key: 'a', payload: 'a', resource, maxAttempts: 1 });
      await jobs.submit({ kind: 'search', key: 'b', payload: 'b', resource, maxAttempts: 1 });
      await until(() => log.length === 1);
      jobs.interrupt('gpu/GPU-2');
      jobs.interrupt(resource);
      await until(async () => (await jobs.pending()).length === 0);
      expect(log.slice(0, 2)).toEqual(['a begins', 'a gives up']);
      // The two jobs run one after the other, in either order, and each is done at its first attempt.
      expect(log.slice(2).map((line) => line.split(' ')[1])).toEqual(['begins', 'ends', 'begins', 'ends']);
      expect(await jobs.failed()).toEqual([]);
    });

    test('after a restart all that was not done is done, and nothing else', async () => {
      const done: JsonValue[] = [];
      jobs.handle('quick', options, (payload) => Promise.resolve(void done.push(payload)));
      jobs.handle('slow', options, (_, attempt) => endless(attempt));
      await jobs.submit({ kind: 'quick', key: 'done', payload: 'done' });
      await until(async () => (await jobs.pending()).length === 0);
      await jobs.submit({ kind: 'slow', key: 'running', payload: 'running', maxAttempts: 1 });
      await jobs.submit({ kind: 'other', key: 'waiting', payload: 'waiting' });
      await until(async () => (await jobs.pending())[0]?.state === 'running');
      await jobs.close();
      await expect(jobs.submit({ kind: 'quick', key: 'late', payload: null })).rejects.toThrow(JobsClosedError);
      jobs = await home.open();
      const after = new Set<JsonValue>();
      for (const kind of ['quick', 'slow', 'other']) {
        jobs.handle(kind, options, (payload) => Promise.resolve(void after.add(payload)));
      }
      await until(async () => (await jobs.pending()).length === 0);
      expect([...after].sort()).toEqual(['running', 'waiting']);
      expect(await jobs.failed()).toEqual([]);
    });

    test('a job that ends its process each time is not tried for ever', async () => {
      await jobs.submit({ kind: 'deadly', key: 'a', payload: null, maxAttempts: 3 });
      const attempts: number[] = [];
      for (let life = 0; life < 3; life += 1) {
        jobs.handle('deadly', options, (_, attempt) => {
          attempts.push(attempt.attempt);
          return endless(attempt);
        });
        await until(() => attempts.length === life + 1);
        jobs = await home.openAfterCrash();
      }
      jobs.handle('deadly', options, (_, { attempt }) => Promise.resolve(void attempts.push(attempt)));
      await until(async () => (await jobs.pending()).length === 0);
      expect(attempts).toEqual([1, 2, 3]);
      expect(await jobs.failed()).toMatchObject([{ kind: 'deadly', key: 'a', attempts: 3 }]);
    });
  });
}
