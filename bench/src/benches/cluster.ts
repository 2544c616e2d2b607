import { join } from 'node:path';
import { connectApi, guestHeaders, invokePath, smallBody } from '../api.js';
import { medianOf, type BenchContext, type Measurement } from '../bench.js';
import type { Bench } from '../bench.js';
import { clusterCpu, startCluster } from '../cluster/running-cluster.js';
import { errorsOf, type LoadResult } from '../load/load.js';
import { startPlatform } from '../servers.js';
import { median } from '../statistics.js';
import { measureHandover } from './cluster-handover.js';
import { measureLoad } from './cluster-load.js';
import { measureRecover } from './cluster-recover.js';

const parts: Readonly<Record<string, (context: BenchContext) => Promise<Measurement[]>>> = {
  path: measurePath,
  load: measureLoad,
  recover: measureRecover,
  handover: measureHandover,
};

/** Benches of a cluster on this machine, with Kafka, a server of CouchDB's protocol and Redis. */
export const cluster: Bench = {
  summary: 'a cluster on this machine: cost over standalone, sustained load, killed processes',
  parts: Object.keys(parts),
  async run(context) {
    const { options, say } = context;
    const measurements: Measurement[] = [];
    for (const [name, measure] of Object.entries(parts)) {
      if (options.parts.length > 0 && !options.parts.includes(name)) continue;
      say(`Part ${name}`);
      measurements.push(...(await measure(context)));
    }
    return measurements;
  },
};

/** The first load on the cluster's new processes, s. */
const firstS = 10;
const warmUpS = 3;
const path = invokePath('noop', true);
const connectionCounts = [1, 64] as const;

interface Round {
  load: LoadResult;
  /** Processor seconds by process; of the cluster only. */
  cpuS: Record<string, number>;
}

/** Blocking no-ops through one controller and one invoker of a cluster, alternating with standalone. */
async function measurePath(context: BenchContext): Promise<Measurement[]> {
  const { options, load, cleanup, temporaryDir } = context;
  const platform = await startPlatform(cleanup, { dataDir: join(temporaryDir, 'standalone'), stemCells: false });
  const cluster = await startCluster(context, 'path', { controllers: 1, invokers: 1 });
  const standalone = connectApi(platform.url);
  cleanup.add('connection', () => standalone.close());
  await standalone.putAction('noop');
  await cluster.api(0).putAction('noop');

  const servers = {
    standalone: { baseUrl: platform.url, headers: guestHeaders },
    cluster: { baseUrl: cluster.controllers[0]?.url ?? cluster.url, headers: cluster.headers },
  };
  const run = (name: keyof typeof servers, connections: number, seconds: number, countStatuses = false) =>
    load.run({
      ...servers[name],
      paths: [path],
      body: smallBody,
      connections,
      seconds,
      seed: options.seed,
      countStatuses,
    });
  let errors = 0;
  const first = await run('cluster', 64, firstS, true);
  errors += errorsOf(first, 200);
  const names = ['standalone', 'cluster'] as const;
  for (const name of names) {
    for (const connections of connectionCounts) {
      errors += errorsOf(await run(name, connections, warmUpS, true), 200);
    }
  }

  const rounds = new Map<string, Round[]>();
  for (let round = 0; round < options.rounds; round += 1) {
    for (const connections of connectionCounts) {
      for (const name of round % 2 === 0 ? names : names.toReversed()) {
        const before = clusterCpu(cluster);
        const result = await run(name, connections, options.seconds);
        errors += errorsOf(result, 200);
        const after = clusterCpu(cluster);
        const cpuS = Object.fromEntries(Object.entries(after).map(([of, s]) => [of, s - (before[of] ?? 0)]));
        const key = `${name}.c${connections}`;
        rounds.set(key, [...(rounds.get(key) ?? []), { load: result, cpuS }]);
      }
    }
  }
  await platform.stop();
  await cluster.stop();
  const steadyPerS = median((rounds.get('cluster.c64') ?? []).map((round) => round.load.requestsPerS));
  return [
    ...figures(rounds),
    { name: 'clusterFirstTenSecondsRatio', value: first.requestsPerS / steadyPerS },
    { name: 'clusterErrors', value: errors },
  ];
}

function figures(rounds: ReadonlyMap<string, readonly Round[]>): Measurement[] {
  const each = <Value>(key: string, read: (round: Round) => Value): Value[] => (rounds.get(key) ?? []).map(read);
  const pairs = (key: string, read: (load: LoadResult) => number, join: (cluster: number, alone: number) => number) => {
    const alone = each(`standalone.${key}`, (round) => read(round.load));
    return each(`cluster.${key}`, (round) => read(round.load)).map((value, at) => join(value, alone[at] ?? NaN));
  };
  const at64 = rounds.get('cluster.c64') ?? [];
  const processes = Object.keys(at64[0]?.cpuS ?? {});
  return [
    medianOf(
      'clusterAddedP50Ms',
      pairs(
        'c1',
        ({ p50Ms }) => p50Ms,
        (one, alone) => one - alone,
      ),
    ),
    medianOf(
      'clusterRatio64',
      pairs(
        'c64',
        ({ requestsPerS }) => requestsPerS,
        (one, alone) => one / alone,
      ),
    ),
    ...[...rounds.keys()].flatMap((key) => [
      medianOf(
        `${key}.p50Ms`,
        each(key, ({ load }) => load.p50Ms),
      ),
      medianOf(
        `${key}.p99Ms`,
        each(key, ({ load }) => load.p99Ms),
      ),
      medianOf(
        `${key}.perS`,
        each(key, ({ load }) => load.requestsPerS),
      ),
    ]),
    ...processes.map((name) =>
      medianOf(
        `clusterCpuSPer1000.${name}`,
        at64.map(({ load, cpuS }) => ((cpuS[name] ?? 0) * 1000) / load.requests),
      ),
    ),
  ];
}
