// A cluster whose Redis is killed, hangs, or cannot be reached while connections stay open.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startRedis } from '../contract/redis-server.js';
import type { RedisServer } from '../contract/redis-server.js';
import { startSilentRelay } from '../contract/silent-relay.js';
import type { SilentRelay } from '../contract/silent-relay.js';
import { eventually, missing, startCluster } from '../distributed/running-cluster.js';
import { ApiClient } from '../support/api-client.js';

const startMs = 240_000;
const testMs = 180_000;
const waitMs = 60_000;
const program = fileURLToPath(new URL('../../../server/dist/cluster/main.js', import.meta.url));

(missing.length === 0 ? describe : describe.skip)('a cluster whose Redis', () => {
  let cluster: Awaited<ReturnType<typeof startCluster>>;
  let dir: string;
  let relay: SilentRelay;
  /** The Redis that replaced the cluster's own. */
  let redis: RedisServer | undefined;
  let callers: ApiClient[];
  let anyone: ApiClient;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'gpuwhisk-redis-'));
    cluster = await startCluster(2, 1, {
      wayToRedis: async (port) => {
        relay = await startSilentRelay(port);
        return relay.port;
      },
    });
    callers = cluster.controllers.map(({ url }) => new ApiClient(url, cluster.auth));
    anyone = new ApiClient(cluster.url, cluster.auth);
    await anyone.putAction('load', 'function main({ n }) { return { n }; }');
    await anyone.putAction('onGpu', 'function main({ n }) { return { n }; }', {
      annotations: { gpu: { memoryMiB: 1024 } },
    });
    await allServe();
  }, startMs);

  afterAll(async () => {
    await cluster.stop();
    await redis?.stop();
    await relay.stop();
    await rm(dir, { recursive: true });
  }, startMs);

  /**
   * Waits until each controller runs actions. GPU actions run only if the leader receives the row of the node and the
   * ends of runs.
   */
  async function allServe(): Promise<void> {
    for (const [at, caller] of callers.entries()) {
      for (const action of ['load', 'onGpu']) {
        await eventually(`controller ${at} has ${action} run`, async () => {
          const { status } = await caller.invoke(action, { n: at });
          return status === 200 ? true : undefined;
        });
      }
    }
  }

  const memoryMiB = (): Promise<number[]> =>
    Promise.all(
      [...cluster.controllers, ...cluster.invokers].map(async ({ pid }) => {
        const status = await readFile(`/proc/${pid}/status`, 'utf8');
        return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
      }),
    );
  const pids = (): number[] => [...cluster.controllers, ...cluster.invokers].map(({ pid }) => pid);

  /** Submits activations one after the other until ended; returns those that were accepted. */
  function traffic() {
    const accepted: string[] = [];
    let isOver = false;
    const ended = (async () => {
      while (!isOver) {
        const answer = await anyone
          .request<{ activationId: string }>('POST', '_/actions/load', { n: 1 })
          .catch(() => undefined);
        if (answer?.status === 202) accepted.push(answer.body.activationId);
        else await new Promise((resolve) => setTimeout(resolve, 50));
      }
    })();
    const more = async (count: number): Promise<void> => {
      const enough = accepted.length + count;
      await eventually('more are accepted', () => Promise.resolve(accepted.length >= enough ? true : undefined));
    };
    const end = async (): Promise<string[]> => {
      isOver = true;
      await ended;
      return accepted;
    };
    return { more, end };
  }

  const pidOfRedis = (): number => redis?.pid ?? cluster.redis.pid;

  test.each<[string, () => unknown, () => unknown]>([
    [
      'is killed and comes back with nothing',
      () => process.kill(pidOfRedis(), 'SIGKILL'),
      async () => (redis = await startRedis({ dir, port: cluster.redis.port })),
    ],
    ['hangs', () => process.kill(pidOfRedis(), 'SIGSTOP'), () => process.kill(pidOfRedis(), 'SIGCONT')],
    ['is cut off without a word', () => relay.silence(), () => relay.heal()],
  ])(
    '%s goes on taking activations, loses none, and is whole again by itself',
    async (_, breakIt, mend) => {
      const processes = pids();
      const invokers = await (await fetch(`${cluster.url}/invokers`)).json();
      const before = await memoryMiB();
      const load = traffic();
      await load.more(10);
      await breakIt();
      await load.more(30);
      await mend();
      await allServe();
      await load.more(10);
      const accepted = await load.end();
      for (const id of accepted) await anyone.record(id, waitMs);
      expect(await (await fetch(`${cluster.url}/invokers`)).json()).toEqual(invokers);
      // No process ended because of the outage, and none kept its unsent messages in memory.
      expect(pids()).toEqual(processes);
      const after = await memoryMiB();
      for (const [at, usedMiB] of after.entries()) expect(usedMiB - (before[at] ?? 0)).toBeLessThan(150);
    },
    testMs,
  );

  test(
    'is there refuses a second process of one name, and the first goes on',
    async () => {
      const [first] = cluster.controllers;
      if (first === undefined) throw new Error('no controller');
      const args = [...first.args];
      args[args.indexOf('--data') + 1] = join(dir, 'second');
      args[args.indexOf('--port') + 1] = '0';
      const second = spawn(process.execPath, [program, 'controller', '--name', first.name, ...args], {
        env: { ...process.env, NODE_OPTIONS: '' },
      });
      let printed = '';
      second.stderr.on('data', (data) => (printed += String(data)));
      const late = setTimeout(() => second.kill('SIGKILL'), waitMs);
      const [code] = await once(second, 'exit');
      clearTimeout(late);
      expect([code, printed]).toEqual([
        1,
        `'${first.name}' is the name of another process of the controllers, which runs\n`,
      ]);
      await allServe();
    },
    testMs,
  );
});
