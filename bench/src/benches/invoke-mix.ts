import { join } from 'node:path';
import { connectApi, guestHeaders, invokePath, smallBody, type Api, type StartCounts } from '../api.js';
import { medianOf, type BenchContext, type Measurement } from '../bench.js';
import { errorsOf, type LoadRequest, type LoadResult } from '../load/load.js';
import { cpuTime, readTree } from '../processes.js';
import { startPlatform } from '../servers.js';
import type { Pair } from './invoke.js';

const actionCount = 100;
const connections = 64;
const warmUpS = 4;
const warmUpsAtMost = 12;
/** If a warm-up beats the best one before it by this factor, another follows: engines are still compiling. */
const stillRising = 1.03;

/**
 * 100 actions of 128 MB, chosen uniformly at random, against one action alone. The one action has a platform of its
 * own, since on a shared one it would take containers from the others. Timing begins when all are warm: the last two
 * warm-ups had no cold start and no higher rate than those before.
 */
export async function measureMix(context: BenchContext, { platform, api }: Pair): Promise<Measurement[]> {
  const { options, load, say } = context;
  const names = Array.from({ length: actionCount }, (_, index) => `mix${index}`);
  for (const name of names) {
    await api.putAction(name, { memoryMiB: 128 });
    await api.invoke(name);
  }
  const alone = await startPlatform(context.cleanup, { dataDir: join(context.temporaryDir, 'alone') });
  const aloneApi = connectApi(alone.url);
  context.cleanup.add('connection', () => aloneApi.close());
  await aloneApi.putAction('alone', { memoryMiB: 128 });

  const request = (baseUrl: string, ofNames: readonly string[], seconds: number, seed: number): LoadRequest => ({
    baseUrl,
    paths: ofNames.map((name) => invokePath(name, true)),
    seconds,
    seed,
    headers: guestHeaders,
    body: smallBody,
    connections,
  });
  // The name occurs twice, so that the client chooses among paths for one action as it does for a hundred.
  const mixFor = (seconds: number, seed: number): LoadRequest => request(platform.url, names, seconds, seed);
  const aloneFor = (seconds: number, seed: number): LoadRequest =>
    request(alone.url, ['alone', 'alone'], seconds, seed);

  const warmUp = async (what: string, ofApi: Api, requestFor: typeof mixFor): Promise<void> => {
    let best = 0;
    let flat = 0;
    for (let attempt = 1; attempt <= warmUpsAtMost && flat < 2; attempt += 1) {
      const before = await ofApi.startCounts();
      const result = await load.run({ ...requestFor(warmUpS, options.seed + attempt), countStatuses: true });
      const started = startsBetween(before, await ofApi.startCounts());
      const perS = result.requestsPerS.toFixed(0);
      say(`  warm-up ${attempt} of ${what}: ${perS}/s, ${started} cold starts, ${errorsOf(result, 200)} errors`);
      flat = started === 0 && result.requestsPerS <= best * stillRising ? flat + 1 : 0;
      best = Math.max(best, result.requestsPerS);
    }
  };
  await warmUp('one action', aloneApi, aloneFor);
  await warmUp('the mix', api, mixFor);

  const mixes: Sample[] = [];
  const singles: Sample[] = [];
  const before = await api.startCounts();
  for (let round = 0; round < options.rounds; round += 1) {
    const runMix = async (): Promise<unknown> =>
      mixes.push(await sample(platform.pid, () => load.run(mixFor(options.seconds, options.seed * 1000 + round))));
    const runSingle = async (): Promise<unknown> =>
      singles.push(await sample(alone.pid, () => load.run(aloneFor(options.seconds, options.seed))));
    // Every other round runs backwards, so that a drift of the machine affects both alike.
    for (const run of round % 2 === 0 ? [runMix, runSingle] : [runSingle, runMix]) await run();
    say(`  round ${round + 1}: mix ${told(mixes[round])}, one action ${told(singles[round])}`);
  }
  const coldStarts = startsBetween(before, await api.startCounts());
  const errors = [...mixes, ...singles].reduce((sum, one) => sum + errorsOf(one.load, 200), 0);
  aloneApi.close();
  await alone.stop();
  return [
    medianOf(
      'mixRatio',
      mixes.map((mix, round) => mix.load.requestsPerS / (singles[round] as Sample).load.requestsPerS),
    ),
    { name: 'mixColdStarts', value: coldStarts },
    { name: 'mixErrors', value: errors },
    ...figuresOf('mix', mixes),
    ...figuresOf('mixSingle', singles),
  ];
}

/** One stretch of load, and the processor time that it took of the platform's process and of its containers. */
interface Sample {
  load: LoadResult;
  serverCpuSPer1000: number;
  sandboxCpuSPer1000: number;
}

async function sample(pid: number, run: () => Promise<LoadResult>): Promise<Sample> {
  const before = cpuTime(readTree(pid));
  const load = await run();
  const after = cpuTime(readTree(pid));
  return {
    load,
    serverCpuSPer1000: ((after.serverS - before.serverS) * 1000) / load.requests,
    sandboxCpuSPer1000: ((after.sandboxesS - before.sandboxesS) * 1000) / load.requests,
  };
}

function told(one: Sample | undefined): string {
  if (one === undefined) return 'nothing';
  const { load, serverCpuSPer1000, sandboxCpuSPer1000 } = one;
  const cpu = [serverCpuSPer1000, sandboxCpuSPer1000].map((seconds) => seconds.toFixed(3)).join(' + ');
  return `${load.requestsPerS.toFixed(0)}/s (${cpu} s of processors per 1,000)`;
}

function figuresOf(prefix: string, samples: readonly Sample[]): Measurement[] {
  const figure = (name: string, of: (one: Sample) => number): Measurement =>
    medianOf(`${prefix}${name}`, samples.map(of));
  return [
    figure('RequestsPerS', ({ load }) => load.requestsPerS),
    figure('ServerCpuSPer1000', ({ serverCpuSPer1000 }) => serverCpuSPer1000),
    figure('SandboxCpuSPer1000', ({ sandboxCpuSPer1000 }) => sandboxCpuSPer1000),
  ];
}

/** Runs whose container did not have the code loaded. */
function startsBetween(before: StartCounts, after: StartCounts): number {
  const loadedIn = ({ cold, prewarmed, injected }: StartCounts): number => cold + prewarmed + injected;
  return loadedIn(after) - loadedIn(before);
}
