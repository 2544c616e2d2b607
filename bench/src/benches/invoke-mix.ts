import { join } from 'node:path';
import { connectApi, guestHeaders, invokePath, smallBody, type Api, type StartCounts } from '../api.js';
import { medianOf, type BenchContext, type Measurement } from '../bench.js';
import { errorsOf, type LoadRequest } from '../load/load.js';
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

  const ratios: number[] = [];
  const singles: number[] = [];
  const mixes: number[] = [];
  let errors = 0;
  let coldStarts = 0;
  for (let round = 0; round < options.rounds; round += 1) {
    const before = await api.startCounts();
    const mix = await load.run(mixFor(options.seconds, options.seed * 1000 + round));
    coldStarts += startsBetween(before, await api.startCounts());
    const single = await load.run(aloneFor(options.seconds, options.seed));
    errors += errorsOf(mix, 200) + errorsOf(single, 200);
    mixes.push(mix.requestsPerS);
    singles.push(single.requestsPerS);
    ratios.push(mix.requestsPerS / single.requestsPerS);
    say(`  round ${round + 1}: mix ${mix.requestsPerS.toFixed(0)}/s, one action ${single.requestsPerS.toFixed(0)}/s`);
  }
  aloneApi.close();
  await alone.stop();
  return [
    medianOf('mixRatio', ratios),
    { name: 'mixColdStarts', value: coldStarts },
    { name: 'mixErrors', value: errors },
    medianOf('mixRequestsPerS', mixes),
    medianOf('mixSingleRequestsPerS', singles),
  ];
}

/** Runs whose container did not have the code loaded. */
function startsBetween(before: StartCounts, after: StartCounts): number {
  const loadedIn = ({ cold, prewarmed, injected }: StartCounts): number => cold + prewarmed + injected;
  return loadedIn(after) - loadedIn(before);
}
