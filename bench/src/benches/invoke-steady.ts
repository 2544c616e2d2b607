import { guestHeaders, invokePath, smallBody } from '../api.js';
import { medianOf, type BenchContext, type Measurement } from '../bench.js';
import { errorsOf, type LoadRequest, type LoadResult } from '../load/load.js';
import { cpuTime, memoryOf, readTree, treeMemory } from '../processes.js';
import type { Pair } from './invoke.js';

/** One load of a round: server, path and number of connections. */
interface Target {
  key: string;
  onReference: boolean;
  path: string;
  connections: number;
}

/** One stretch of load and the processor time it took. */
interface Sample {
  load: LoadResult;
  serverCpuSPer1000: number;
  sandboxCpuSPer1000: number;
}

const warmUpS = 3;
const plain = invokePath('noop', true);
const concurrent = invokePath('noopConcurrent', true);

const targets: readonly Target[] = [
  ...[1, 4, 64].flatMap((connections) => [
    { key: `reference.c${connections}`, onReference: true, path: '/', connections },
    { key: `c${connections}`, onReference: false, path: plain, connections },
  ]),
  { key: 'c64Concurrent', onReference: false, path: concurrent, connections: 64 },
];

/** Blocking no-op invocations over 1, 4 and 64 connections, alternating with the bare server. */
export async function measureSteady(context: BenchContext, pair: Pair): Promise<Measurement[]> {
  const { options, say } = context;
  const { platform, reference, api } = pair;
  await api.putAction('noop');
  await api.putAction('noopConcurrent', { concurrency: 64 });

  const requestFor = (target: Target, seconds: number): LoadRequest => ({
    baseUrl: target.onReference ? reference.url : platform.url,
    paths: [target.path],
    headers: guestHeaders,
    body: smallBody,
    connections: target.connections,
    seconds,
    seed: options.seed,
  });

  let errors64 = 0;
  for (const target of targets) {
    const warmUp = await context.load.run({ ...requestFor(target, warmUpS), countStatuses: true });
    if (target.connections === 64) errors64 += errorsOf(warmUp, 200);
  }

  const samples = new Map<string, Sample[]>(targets.map(({ key }) => [key, []]));
  for (let round = 0; round < options.rounds; round += 1) {
    // Every other round runs backwards, so that a drift of the machine affects both servers alike.
    for (const target of round % 2 === 0 ? targets : targets.toReversed()) {
      const before = cpuTime(readTree(platform.pid));
      const load = await context.load.run(requestFor(target, options.seconds));
      const after = cpuTime(readTree(platform.pid));
      const per1000 = 1000 / load.requests;
      samples.get(target.key)?.push({
        load,
        serverCpuSPer1000: (after.serverS - before.serverS) * per1000,
        sandboxCpuSPer1000: (after.sandboxesS - before.sandboxesS) * per1000,
      });
      if (target.connections === 64) errors64 += errorsOf(load, 200);
      say(`  round ${round + 1} ${target.key}: ${load.requestsPerS.toFixed(0)}/s, p50 ${load.p50Ms.toFixed(3)} ms`);
    }
  }

  const tree = readTree(platform.pid);
  return [
    ...ratios(samples),
    { name: 'errors64', value: errors64 },
    ...targets.flatMap((target) => figuresOf(target, samples.get(target.key) ?? [])),
    { name: 'loadedRssMiB', value: memoryOf(platform.pid).rssMiB },
    { name: 'loadedTreePssMiB', value: treeMemory(tree).pssMiB },
  ];
}

function ratios(samples: ReadonlyMap<string, readonly Sample[]>): Measurement[] {
  const eachRound = (key: string, of: (ours: LoadResult, bare: LoadResult) => number, bareKey: string): number[] =>
    (samples.get(key) ?? []).map(({ load }, round) => of(load, (samples.get(bareKey)?.[round] as Sample).load));
  const throughput = (ours: LoadResult, bare: LoadResult): number => ours.requestsPerS / bare.requestsPerS;
  return [
    medianOf(
      'addedP50Ms',
      eachRound('c1', (ours, bare) => ours.p50Ms - bare.p50Ms, 'reference.c1'),
    ),
    medianOf('ratio64', eachRound('c64', throughput, 'reference.c64')),
    medianOf('ratio64Concurrent', eachRound('c64Concurrent', throughput, 'reference.c64')),
  ];
}

function figuresOf(target: Target, samples: readonly Sample[]): Measurement[] {
  const figure = (name: string, of: (sample: Sample) => number): Measurement =>
    medianOf(`${name}.${target.key}`, samples.map(of));
  return [
    figure('requestsPerS', ({ load }) => load.requestsPerS),
    figure('p50Ms', ({ load }) => load.p50Ms),
    figure('p95Ms', ({ load }) => load.p95Ms),
    figure('p99Ms', ({ load }) => load.p99Ms),
    ...(target.onReference
      ? []
      : [
          figure('serverCpuSPer1000', (sample) => sample.serverCpuSPer1000),
          figure('sandboxCpuSPer1000', (sample) => sample.sandboxCpuSPer1000),
        ]),
  ];
}
