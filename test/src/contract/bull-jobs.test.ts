import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Jobs } from '@gpuwhisk/common/jobs/jobs';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import { StateUnavailableError } from '@gpuwhisk/common/state/cluster-state';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { until } from '@gpuwhisk/common/testing/until';
import { openBullJobs } from '@gpuwhisk/engines/bull/bull-jobs';
import { testJobs } from './jobs.js';
import { hasRedis, startRedis } from './redis-server.js';
import type { RedisServer } from './redis-server.js';

// The lock lasts longer than pauses of a busy machine.
const fast = { maxPending: 10, retryMs: 1, quietMs: 5, closeMs: 200, pollMs: 5, lockMs: 1000, timeoutMs: 2000 };

/** A proxy between one process and Redis whose connections can be cut. */
interface Way {
  url: string;
  /** Ends all traffic, as the death of the process would. */
  cut(): Promise<void>;
}

async function openWay(port: number): Promise<Way> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const onward = connect(port, '127.0.0.1');
    for (const [socket, other] of [
      [client, onward],
      [onward, client],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async cut() {
      for (const socket of sockets) socket.destroy();
      if (!server.listening) return;
      server.close();
      await once(server, 'close');
    },
  };
}

(hasRedis ? describe : describe.skip).each(['bullmq', 'bull'] as const)('jobs in Redis, by %s', (library) => {
  let server: RedisServer;
  let dir: string;
  let count = 0;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'gpuwhisk-bull-'));
    server = await startRedis({ dir });
  });
  afterAll(async () => {
    await server.stop();
    await rm(dir, { recursive: true });
  });

  const openAt = (url: string, prefix: string, leases: ClusterState, holder: string): Promise<Jobs> =>
    openBullJobs({ ...fast, ...{ library, url, prefix, leases, holder }, clock: systemClock });

  testJobs('the jobs', () => {
    const prefix = `t${(count += 1)}:`;
    const leases = embeddedState(systemClock);
    const dead: Jobs[] = [];
    let life = 0;
    let current: { jobs: Jobs; way: Way } | undefined;
    const open = async (): Promise<Jobs> => {
      const way = await openWay(server.port);
      current = { jobs: await openAt(way.url, prefix, leases, `controller${(life += 1)}`), way };
      return current.jobs;
    };
    return Promise.resolve({
      open,
      openAfterCrash: async () => {
        if (current !== undefined) dead.push(current.jobs);
        await current?.way.cut();
        return open();
      },
      close: async () => {
        for (const jobs of dead) await jobs.close();
        await current?.way.cut();
      },
    });
  });

  describe('of several processes', () => {
    let leases: ClusterState;
    let ways: Way[];
    let all: Jobs[];
    beforeEach(async () => {
      const prefix = `t${(count += 1)}:`;
      leases = embeddedState(systemClock);
      ways = await Promise.all([openWay(server.port), openWay(server.port)]);
      all = await Promise.all(ways.map(({ url }, at) => openAt(url, prefix, leases, `controller${at}`)));
    });
    afterEach(async () => {
      for (const jobs of all) await jobs.close();
      for (const way of ways) await way.cut();
    });
    const options = { concurrency: 10, timeoutMs: 60_000 };
    const at = (index: number): Jobs => all[index] as Jobs;

    /** Registers a handler of kind `search` in process `index`; each of its jobs runs until aborted. */
    function runAt(index: number, begun: [number, number][], aborted: string[]) {
      return at(index).handle('search', options, (_, { attempt, signal }) => {
        begun.push([index, attempt]);
        return new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            aborted.push((signal.reason as Error).message);
            reject(signal.reason as Error);
          });
        });
      });
    }

    test('one of them runs a job, each sees it, and it is one of its key in all of them', async () => {
      const begun: [number, number][] = [];
      for (const index of [0, 1]) runAt(index, begun, []);
      const taken = await Promise.all(
        [0, 1, 0, 1].map((index) => at(index).submit({ kind: 'search', key: 'a', payload: null })),
      );
      expect(taken.filter((isTaken) => isTaken)).toHaveLength(1);
      await until(() => begun.length > 0);
      for (const jobs of all) expect(await jobs.pending()).toMatchObject([{ key: 'a', state: 'running', attempts: 1 }]);
      // After many polls, still only one process runs the job.
      await new Promise((resolve) => setTimeout(resolve, 100));
      expect(begun).toHaveLength(1);
    });

    test('a job of a process that was cut off is aborted there, and run by another one', async () => {
      const begun: [number, number][] = [];
      const aborted: string[] = [];
      runAt(0, begun, aborted);
      await at(0).submit({ kind: 'search', key: 'a', payload: null });
      await until(() => begun.length === 1);
      await ways[0]?.cut();
      runAt(1, begun, []);
      await until(() => begun.length === 2);
      expect(begun).toEqual([
        [0, 1],
        [1, 2],
      ]);
      await until(() => aborted.length === 1);
      expect(aborted).toEqual(['its lock was lost']);
    });

    test('a resource that is wanted is given up by whichever process has it', async () => {
      const begun: [number, number][] = [];
      const aborted: string[] = [];
      runAt(0, begun, aborted);
      await at(1).submit({ kind: 'search', key: 'a', payload: null, resource: 'gpu/GPU-1', maxAttempts: 1 });
      await until(() => begun.length === 1);
      at(1).interrupt('gpu/GPU-1');
      await until(() => begun.length === 2);
      expect(aborted).toEqual(['gpu/GPU-1 is wanted for work']);
      // The interruption did not count as an attempt.
      expect(begun).toEqual([
        [0, 1],
        [0, 1],
      ]);
    });
  });

  test('Redis dies and comes back from its log: jobs are still there, and meanwhile calls fail soon', async () => {
    const own = await mkdtemp(join(tmpdir(), 'gpuwhisk-bull-'));
    const appendOnly = ['--appendonly', 'yes', '--appendfsync', 'always'];
    let redis = await startRedis({ dir: own, args: appendOnly });
    const warnings: string[] = [];
    const jobs = await openBullJobs({
      ...fast,
      ...{
        library,
        url: redis.url,
        prefix: 'a:',
        clock: systemClock,
        leases: embeddedState(systemClock),
        holder: 'controller0',
      },
      onWarning: ({ message }) => warnings.push(message),
    });
    try {
      const done: string[] = [];
      jobs.handle('search', { concurrency: 1, timeoutMs: 20_000 }, (payload) =>
        Promise.resolve(void done.push(String(payload))),
      );
      await jobs.submit({ kind: 'other', key: 'kept', payload: 'kept' });
      const { port } = redis;
      await redis.stop();
      await expect(jobs.submit({ kind: 'search', key: 'a', payload: 'lost' })).rejects.toThrow(StateUnavailableError);
      await until(() => warnings.length > 0);
      redis = await startRedis({ dir: own, port, args: appendOnly });
      await until(() => jobs.submit({ kind: 'search', key: 'b', payload: 'later' }).catch(() => false));
      await until(() => done.length > 0);
      expect(done).toEqual(['later']);
      expect(await jobs.pending()).toMatchObject([{ kind: 'other', key: 'kept', state: 'waiting' }]);
    } finally {
      await jobs.close();
      await redis.stop();
      await rm(own, { recursive: true });
    }
  });
});
