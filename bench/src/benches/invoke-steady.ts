import { guestHeaders, invokePath, noopCode, smallBody, type Family } from '../api.js';
import { medianOf, type BenchContext, type Measurement } from '../bench.js';
import { errorsOf, type LoadRequest, type LoadResult } from '../load/load.js';
import type { Peer } from '../options.js';
import { cpuTime, type CpuTime, memoryOf, readTree, treeMemory } from '../processes.js';
import { startFloor, type Server } from '../servers.js';
import type { Pair } from './invoke.js';

/** One load of a round: server, path and number of connections. */
interface Target {
  key: string;
  on: 'platform' | 'reference' | 'floor' | Peer;
  path: string;
  connections: number;
}

/** One stretch of load and the processor time it took, s per 1,000 requests; undefined where no process is known. */
interface Sample {
  load: LoadResult;
  serverCpuSPer1000: number | undefined;
  sandboxCpuSPer1000: number | undefined;
}

type Samples = ReadonlyMap<string, readonly Sample[]>;
type Servers = Readonly<Record<'platform' | 'reference' | 'floor', Server>>;

const warmUpS = 3;
const plain = invokePath('noop', true);
const concurrent = invokePath('noopConcurrent', true);
const python = invokePath('noopPython', true);

const pythonTargets: readonly Target[] = [1, 64].flatMap((connections): Target[] => [
  { key: `reference.c${connections}`, on: 'reference', path: '/', connections },
  { key: `floor.c${connections}Python`, on: 'floor', path: '/', connections },
  { key: `c${connections}Python`, on: 'platform', path: python, connections },
]);

function targetsBeside(peers: readonly Peer[]): readonly Target[] {
  return [
    ...[1, 4, 64].flatMap((connections): Target[] => [
      { key: `reference.c${connections}`, on: 'reference', path: '/', connections },
      { key: `floor.c${connections}`, on: 'floor', path: '/', connections },
      ...peers.map((peer) => ({ key: `${peer.name}.c${connections}`, on: peer, path: pathOf(peer), connections })),
      { key: `c${connections}`, on: 'platform', path: plain, connections },
    ]),
    { key: 'c64Concurrent', on: 'platform', path: concurrent, connections: 64 },
  ];
}

function pathOf({ url }: Peer): string {
  const { pathname, search } = new URL(url);
  return pathname + search;
}

/** Blocking no-op invocations over 1, 4 and 64 connections, alternating with the bare server and the peers. */
export async function measureSteady(context: BenchContext, pair: Pair): Promise<Measurement[]> {
  const { options } = context;
  const { platform, api } = pair;
  await api.putAction('noop');
  await api.putAction('noopConcurrent', { concurrency: 64 });
  const targets = targetsBeside(options.beside);
  const { samples, errors64 } = await measureRounds(context, pair, targets, 'nodejs');
  const loaded = memoryOf(platform.pid);
  const tree = readTree(platform.pid);
  return [
    ...ratios(samples, options.beside),
    functionTime('functionCpuSPer1000.nodejs', samples.get('c64')),
    ...floorFigures(samples, ''),
    { name: 'errors64', value: errors64 },
    ...targets.flatMap((target) => figuresOf(target, samples.get(target.key) ?? [])),
    { name: 'loadedRssMiB', value: loaded.rssMiB },
    { name: 'loadedAnonMiB', value: loaded.anonMiB },
    { name: 'loadedTreePssMiB', value: treeMemory(tree).pssMiB },
  ];
}

/** The same of a Python action over 1 and 64 connections, on a platform of its own. */
export async function measurePython(context: BenchContext, pair: Pair): Promise<Measurement[]> {
  await pair.api.putAction('noopPython', { kind: 'python:default', code: noopCode.python });
  const { samples, errors64 } = await measureRounds(context, pair, pythonTargets, 'python');
  return [
    medianOf(
      'addedP50PythonMs',
      eachRound(samples, 'c1Python', (ours, bare) => ours.p50Ms - bare.p50Ms, 'reference.c1'),
    ),
    medianOf('ratio64Python', eachRound(samples, 'c64Python', throughput, 'reference.c64')),
    functionTime('functionCpuSPer1000.python', samples.get('c64Python')),
    ...floorFigures(samples, 'Python'),
    { name: 'errors64Python', value: errors64 },
    ...pythonTargets
      .filter(({ on }) => on === 'platform')
      .flatMap((target) => figuresOf(target, samples.get(target.key) ?? [])),
  ];
}

/** What the least server of the platform's shape (bench/floor.mjs) reaches in the same rounds: bounds of our own figures. */
function floorFigures(samples: Samples, suffix: '' | 'Python'): Measurement[] {
  const c64 = samples.get(`floor.c64${suffix}`) ?? [];
  return [
    medianOf(
      `floorAddedP50${suffix}Ms`,
      eachRound(samples, `floor.c1${suffix}`, (floor, bare) => floor.p50Ms - bare.p50Ms, 'reference.c1'),
    ),
    medianOf(`floorRatio64${suffix}`, eachRound(samples, `floor.c64${suffix}`, throughput, 'reference.c64')),
    medianOf(
      `floorServerCpuSPer1000${suffix}`,
      c64.flatMap(({ serverCpuSPer1000 }) => serverCpuSPer1000 ?? []),
    ),
    functionTime(`floorFunctionCpuSPer1000${suffix}`, c64),
  ];
}

/** Processor time of all processes of functions, per 1,000 invocations over 64 connections, s. */
function functionTime(name: string, samples: readonly Sample[] = []): Measurement {
  return medianOf(
    name,
    samples.flatMap(({ sandboxCpuSPer1000 }) => sandboxCpuSPer1000 ?? []),
  );
}

/** Warms all targets up, then loads each once a round; `errors64` counts the errors of 64 connections. */
async function measureRounds(
  context: BenchContext,
  { platform, reference }: Pair,
  targets: readonly Target[],
  family: Family,
): Promise<{ samples: Samples; errors64: number }> {
  const { options, say } = context;
  const floor = await startFloor(context.cleanup, family);
  const servers: Servers = { platform, reference, floor };
  const requestFor = ({ on, path, connections }: Target, seconds: number): LoadRequest => {
    const common = { paths: [path], connections, seconds, seed: options.seed };
    if (typeof on === 'string') {
      return { ...common, baseUrl: servers[on].url, headers: guestHeaders, body: smallBody };
    }
    const { url, method, headers, body = smallBody } = on;
    return { ...common, baseUrl: new URL(url).origin, method, headers, body };
  };

  let errors64 = 0;
  for (const target of targets) {
    const warmUp = await context.load.run({ ...requestFor(target, warmUpS), countStatuses: true });
    if (typeof target.on !== 'string') checkPeer(target.on, warmUp);
    else if (target.connections === 64) errors64 += errorsOf(warmUp, 200);
  }

  const samples = new Map<string, Sample[]>(targets.map(({ key }) => [key, []]));
  for (let round = 0; round < options.rounds; round += 1) {
    // Every other round runs backwards, so that a drift of the machine affects both servers alike.
    for (const target of round % 2 === 0 ? targets : targets.toReversed()) {
      const before = processorTime(target, servers);
      const load = await context.load.run(requestFor(target, options.seconds));
      const after = processorTime(target, servers);
      const per1000 = (from: number | undefined, to: number | undefined): number | undefined =>
        from === undefined || to === undefined ? undefined : ((to - from) * 1000) / load.requests;
      samples.get(target.key)?.push({
        load,
        serverCpuSPer1000: per1000(before.serverS, after.serverS),
        sandboxCpuSPer1000: per1000(before.sandboxesS, after.sandboxesS),
      });
      if (typeof target.on !== 'string') checkPeer(target.on, load);
      else if (target.connections === 64) errors64 += errorsOf(load, 200);
      say(`  round ${round + 1} ${target.key}: ${load.requestsPerS.toFixed(0)}/s, p50 ${load.p50Ms.toFixed(3)} ms`);
    }
  }

  await floor.stop();
  return { samples, errors64 };
}

/** Processor time of a target's server and of its functions, s since their start; a peer's only if its processes are given. */
function processorTime({ on }: Target, servers: Servers): Partial<CpuTime> {
  if (on === 'reference') return {};
  if (typeof on === 'string') return cpuTime(readTree(servers[on].pid));
  const whole = (pids: readonly number[] | undefined): number | undefined =>
    pids?.reduce((sum, pid) => {
      const { serverS, sandboxesS } = cpuTime(readTree(pid));
      return sum + serverS + sandboxesS;
    }, 0);
  return { serverS: whole(on.serverPids), sandboxesS: whole(on.functionPids) };
}

/** Throws an Error if a peer answered with errors: their times say nothing. */
function checkPeer({ name }: Peer, load: LoadResult): void {
  const errors = errorsOf(load, 200);
  if (errors > 0)
    throw new Error(`${name} answered ${errors} of ${load.requests} requests with an error or not at all`);
}

const throughput = (ours: LoadResult, bare: LoadResult): number => ours.requestsPerS / bare.requestsPerS;

/** A figure of each round from the loads of a target and of the bare server. */
function eachRound(
  samples: Samples,
  key: string,
  of: (ours: LoadResult, bare: LoadResult) => number,
  bareKey: string,
): number[] {
  return (samples.get(key) ?? []).map(({ load }, round) => of(load, (samples.get(bareKey)?.[round] as Sample).load));
}

function ratios(samples: Samples, peers: readonly Peer[]): Measurement[] {
  return [
    medianOf(
      'addedP50Ms',
      eachRound(samples, 'c1', (ours, bare) => ours.p50Ms - bare.p50Ms, 'reference.c1'),
    ),
    medianOf('ratio64', eachRound(samples, 'c64', throughput, 'reference.c64')),
    medianOf('ratio64Concurrent', eachRound(samples, 'c64Concurrent', throughput, 'reference.c64')),
    ...peers.flatMap(({ name }) => [
      medianOf(
        `addedP50Ms.${name}`,
        eachRound(samples, `${name}.c1`, (theirs, bare) => theirs.p50Ms - bare.p50Ms, 'reference.c1'),
      ),
      medianOf(`ratio64.${name}`, eachRound(samples, `${name}.c64`, throughput, 'reference.c64')),
    ]),
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
    ...processorFigure('serverCpuSPer1000', target, samples),
    ...processorFigure('sandboxCpuSPer1000', target, samples),
  ];
}

function processorFigure(
  name: 'serverCpuSPer1000' | 'sandboxCpuSPer1000',
  { key }: Target,
  samples: readonly Sample[],
): Measurement[] {
  const values = samples.flatMap((sample) => sample[name] ?? []);
  return values.length === 0 ? [] : [medianOf(`${name}.${key}`, values)];
}
