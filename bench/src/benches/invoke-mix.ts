import { join } from 'node:path';
import { connectApi, guestHeaders, invokePath, smallBody, type StartCounts } from '../api.js';
import { medianOf, type BenchContext, type Measurement } from '../bench.js';
import { errorsOf, type LoadRequest } from '../load/load.js';
import { startPlatform } from '../servers.js';
import type { Pair } from './invoke.js';

const actionCount = 100;
const connections = 64;
const warmUpS = 4;
const warmUpsAtMost = 10;

/**
 * 100 actions of 128 MB, chosen uniformly at random, against one action alone, which runs on a platform of its own:
 * on the same one it would take containers from the others. All are warm before timing.
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
    ...{ baseUrl, paths: ofNames.map((name) => invokePath(name, true)), seconds, seed },
    ...{ headers: guestHeaders, body: smallBody, connections },
  });
  // The name twice, so that the client does for one action what it does for a hundred: choose.
  const mixFor = (seconds: number, seed: number): LoadRequest => request(platform.url, names, seconds, seed);
  const aloneFor = (seconds: number, seed: number): LoadRequest =>
    request(alone.url, ['alone', 'alone'], seconds, seed);

  await load.run(aloneFor(warmUpS, options.seed));
  for (let attempt = 1; attempt <= warmUpsAtMost; attempt += 1) {
    const before = await api.startCounts();
    const warmUp = await load.run({ ...mixFor(warmUpS, options.seed + attempt), countStatuses: true });
    const started = startsBetween(before, await api.startCounts());
    say(`  warm-up ${attempt}: ${started} cold starts, ${errorsOf(warmUp, 200)} errors`);
    if (started === 0) break;
  }

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

/** Runs that did not find their code loaded. */
function startsBetween(before: StartCounts, after: StartCounts): number {
  const loadedIn = ({ cold, prewarmed, injected }: StartCounts): number => cold + prewarmed + injected;
  return loadedIn(after) - loadedIn(before);
}
