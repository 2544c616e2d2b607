import { openRedisState } from '@gpuwhisk/engines/redis/redis-state';
import { invokePath, smallBody } from '../api.js';
import type { BenchContext, Measurement } from '../bench.js';
import { untilStored, startCluster, type Cluster } from '../cluster/running-cluster.js';
import { offer } from '../load/offered.js';
import { runsOf } from './cluster-recover.js';

const perS = 10;
const beforeMs = 5000;
const afterMs = 12_000;
const quietMs = 60_000;

/** Kills the controller that decides about GPUs: longest time without a placement, and activations placed twice. */
export async function measureHandover(context: BenchContext): Promise<Measurement[]> {
  const cluster = await startCluster(context, 'handover', {
    controllers: 2,
    invokers: 1,
    invokerSet: ['gpus=sim:a100-40'],
  });
  await cluster.api(0).putAction('onGpu', { annotations: [{ key: 'gpu', value: { memoryMiB: 1024 } }] });
  const decider = await deciderOf(cluster);
  const victim = cluster.controllers[decider];
  const survivor = cluster.controllers[1 - decider];
  if (victim === undefined || survivor === undefined) throw new Error(`there is no controller ${decider}`);
  await cluster.api(1 - decider).invoke('onGpu');
  const [invoker] = cluster.invokers;
  if (invoker === undefined) throw new Error('there is no invoker');
  const runsBefore = await runsOf(invoker, 'onGpu');

  const ending = new AbortController();
  const accepted: string[] = [];
  const load = offer({
    baseUrl: survivor.url,
    headers: cluster.headers,
    body: smallBody,
    perS,
    paths: [invokePath('onGpu', false)],
    signal: ending.signal,
    onAccepted: (id) => accepted.push(id),
  });
  await pause(beforeMs);
  const killedAt = Date.now();
  process.kill(victim.pid, 'SIGKILL');
  await pause(afterMs);
  ending.abort();
  await load;
  const { missing, records } = await untilStored(cluster, accepted, quietMs);
  const runs = (await runsOf(invoker, 'onGpu')) - runsBefore;
  await cluster.stop();

  const starts = [...records.values()].map(({ start }) => start).sort((one, other) => one - other);
  const gaps = starts.slice(1).map((start, at) => (start < killedAt ? 0 : start - (starts[at] ?? start)));
  const failed = [...records.values()].filter(({ response }) => response.statusCode !== 0).length;
  return [
    // A placement that is missing after quietMs counts as quietMs, since it may never come.
    { name: 'handoverS', value: (missing.length > 0 ? quietMs : Math.max(0, ...gaps)) / 1000 },
    { name: 'handoverDoubled', value: Math.max(0, runs - records.size) },
    { name: 'handoverLost', value: missing.length / Math.max(1, accepted.length) },
    { name: 'handoverFailed', value: failed / Math.max(1, records.size) },
  ];
}

/** The number of the controller that holds the lease. */
async function deciderOf({ redis }: Cluster): Promise<number> {
  const state = await openRedisState({ url: redis.url, prefix: 'gpuwhisk:', timeoutMs: 5000 });
  try {
    for (let look = 0; look < 300; look += 1) {
      const lease = await state.currentLease('gpu-scheduler');
      if (lease !== undefined) return Number(/\d+$/.exec(lease.holder)?.[0]);
      await pause(100);
    }
  } finally {
    await state.close();
  }
  throw new Error('no controller decides about GPUs');
}

const pause = (durationMs: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, durationMs));
