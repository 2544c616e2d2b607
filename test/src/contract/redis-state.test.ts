import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openRedisState } from '@gpuwhisk/engines/redis/redis-state';
import { StateUnavailableError } from '@gpuwhisk/common/state/cluster-state';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import type { JsonValue } from '@gpuwhisk/common/json';
import { until } from '@gpuwhisk/common/testing/until';
import { testClusterState } from './cluster-state.js';
import { hasRedis, startClockedRedis, startRedis } from './redis-server.js';
import { startSilentRelay } from './silent-relay.js';
import type { ClockedRedis, RedisServer } from './redis-server.js';

const timeoutMs = 5000;

/** Resolves once all earlier messages and row changes have reached `state`. */
async function newsHaveCome(state: ClusterState): Promise<void> {
  let isHere = false;
  const marker = await state.subscribe('marker', () => (isHere = true));
  await state.publish('marker', null);
  await until(() => isHere);
  await marker.close();
}

(hasRedis ? describe : describe.skip)('Redis', () => {
  let server: ClockedRedis;
  let count = 0;

  beforeAll(async () => {
    const started = await startClockedRedis();
    if (started === undefined) throw new Error('there is no C compiler');
    server = started;
  });
  afterAll(() => server.stop());

  const open = (prefix: string): Promise<ClusterState> => openRedisState({ url: server.url, prefix, timeoutMs });

  /** Opens a state that is old enough to grant leases. */
  async function openAged(prefix: string): Promise<ClusterState> {
    const state = await open(prefix);
    await state.acquireLease('first of all', 'nobody', 1);
    await server.moveClock(120_000);
    return state;
  }

  testClusterState('the Redis state', async () => {
    const prefix = `t${++count}:`;
    const one = await openAged(prefix);
    const other = await open(prefix);
    return {
      one,
      other,
      run: async (work) => work(),
      pass: async (durationMs) => {
        await server.moveClock(durationMs);
        await newsHaveCome(one);
        await newsHaveCome(other);
      },
      now: () => server.now(),
      close: async () => {
        await one.close();
        await other.close();
      },
    };
  });

  test('clusters that share a Redis do not see each other', async () => {
    const one = await openAged('a:');
    const other = await openAged('b:');
    await one.setRow('nodes', 'n', 1);
    expect((await other.rows('nodes')).size).toBe(0);
    expect(await one.acquireLease('leader', 'x', 1000)).toBeDefined();
    expect(await other.acquireLease('leader', 'y', 1000)).toBeDefined();
    await one.close();
    await other.close();
  });

  test('a step of the clock back does not keep a lease alive', async () => {
    const state = await openAged('step:');
    expect(await state.acquireLease('leader', 'dead', 10_000)).toBeDefined();
    await server.moveClock(-3_600_000);
    expect(await state.acquireLease('leader', 'b', 10_000)).toBeUndefined();
    await server.moveClock(11_000);
    // After the clock went back, Redis cannot tell how long it has run: the state waits again before it grants a lease.
    await state.acquireLease('leader', 'b', 10_000);
    await server.moveClock(11_000);
    expect(await state.acquireLease('leader', 'b', 10_000)).toMatchObject({ holder: 'b' });
    await state.close();
  });
});

(hasRedis ? describe : describe.skip)('a Redis that is lost', () => {
  let dir: string;
  let server: RedisServer;
  let state: ClusterState;

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'gpuwhisk-redis-'));
    server = await startRedis({ dir });
    state = await openRedisState({ url: server.url, prefix: 'lost:', timeoutMs: 500 });
  });
  afterEach(async () => {
    await state.close();
    await server.stop();
    await rm(dir, { recursive: true });
  });

  const unavailable = { name: 'StateUnavailableError' };

  /** Calls `ask` until its result is defined, and returns the result. Ignores StateUnavailableError. */
  async function eventually<Result>(ask: () => Promise<Result | undefined>): Promise<Result> {
    for (let tries = 0; tries < 1000; tries++) {
      const found = await ask().catch((error: unknown) => {
        if (!(error instanceof StateUnavailableError)) throw error;
        return undefined;
      });
      if (found !== undefined) return found;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error('it did not come');
  }
  const untilItAnswers = (): Promise<unknown> => eventually(() => state.rows('any'));

  test('fails every operation while it is away, and comes back by itself with its subscriptions', async () => {
    const heard: JsonValue[] = [];
    await state.subscribe('news', (message) => heard.push(message));
    await state.publish('news', 'before');
    await until(() => heard.length === 1);
    await server.stop();
    await expect(state.rows('nodes')).rejects.toMatchObject(unavailable);
    await expect(state.holds('inFlight').hold('ns', 't', 1000)).rejects.toMatchObject(unavailable);
    await expect(state.windowCounters('fires', 1000).add('ns')).rejects.toMatchObject(unavailable);
    await expect(state.publish('news', 'lost')).rejects.toMatchObject(unavailable);
    await expect(state.subscribe('more', () => undefined)).rejects.toMatchObject(unavailable);
    server = await startRedis({ dir, port: server.port });
    await untilItAnswers();
    // The two connections reconnect independently.
    await until(() => {
      void state.publish('news', 'after').catch(() => undefined);
      return heard.includes('after');
    });
    expect(heard).not.toContain('lost');
  });

  test('has no second holder of a lease that it forgot before that is over, and goes on with greater epochs', async () => {
    const lease = await eventually(() => state.acquireLease('leader', 'a', 1000));
    await server.stop();
    server = await startRedis({ dir, port: server.port });
    await untilItAnswers();
    expect(await state.acquireLease('leader', 'b', 60_000)).toBeUndefined();
    expect(await state.acquireLease('leader', 'a', 60_000)).toBeUndefined();
    const next = await eventually(() => state.acquireLease('leader', 'b', 1000));
    expect(next.epoch).toBeGreaterThan(lease.epoch);
  });

  test('whose connections fall silent is connected to anew, also by those who only listen', async () => {
    const relay = await startSilentRelay(server.port);
    const warnings: string[] = [];
    const far = await openRedisState({
      url: `redis://127.0.0.1:${relay.port}`,
      prefix: 'lost:',
      timeoutMs: 500,
      onWarning: ({ message }) => warnings.push(message),
    });
    try {
      const heard: JsonValue[] = [];
      await far.subscribe('news', (message) => heard.push(message));
      await state.publish('news', 'before');
      await until(() => heard.length === 1);
      relay.silence();
      await expect(far.rows('nodes')).rejects.toMatchObject(unavailable);
      relay.heal();
      await eventually(() => far.rows('nodes'));
      await until(() => {
        void state.publish('news', 'after').catch(() => undefined);
        return heard.includes('after');
      });
      expect(warnings.filter((text) => text.includes('was given up'))).not.toEqual([]);
    } finally {
      await far.close();
      await relay.stop();
    }
  });

  test('whose connections break again before it has confirmed who listens is listened to in the end', async () => {
    const relay = await startSilentRelay(server.port);
    const far = await openRedisState({ url: `redis://127.0.0.1:${relay.port}`, prefix: 'lost:', timeoutMs: 500 });
    try {
      const heard: JsonValue[] = [];
      await far.subscribe('news', (message) => heard.push(message));
      relay.breakAt('subscribe', 3);
      await eventually(() => far.rows('nodes'));
      await until(() => {
        void state.publish('news', 'after').catch(() => undefined);
        return heard.includes('after');
      });
    } finally {
      await far.close();
      await relay.stop();
    }
  });

  test('that hangs fails what is asked, in time', async () => {
    process.kill(server.pid, 'SIGSTOP');
    try {
      await expect(state.rows('nodes')).rejects.toMatchObject(unavailable);
    } finally {
      process.kill(server.pid, 'SIGCONT');
    }
    await untilItAnswers();
  });
});

test('a Redis that is not there is refused by name, without its password', async () => {
  const url = 'redis://whisk:secret@127.0.0.1:9';
  const opened = openRedisState({ url, prefix: 'x:', timeoutMs });
  await expect(opened).rejects.toMatchObject({ name: 'StateUnavailableError' });
  await expect(opened).rejects.toThrow(/^Redis at redis:\/\/127\.0\.0\.1:9 cannot be used: (?!.*secret)/);
});
