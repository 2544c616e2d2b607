import { guestHeaders, invokePath, smallBody } from '../api.js';
import { medianOf, type BenchContext, type Measurement } from '../bench.js';
import { errorsOf, type LoadRequest } from '../load/load.js';
import { readTree } from '../processes.js';
import type { Pair } from './invoke.js';

const actionCount = 100;
const connections = 64;
const warmUpS = 4;
const warmUpsAtMost = 10;

/**
 * 100 actions of 128 MB, chosen uniformly at random, against one of them alone. All are warm before timing; a
 * process that appears below the server while timing is counted as a cold start (or a stem cell that was taken).
 */
export async function measureMix(context: BenchContext, { platform, api }: Pair): Promise<Measurement[]> {
  const { options, load, say } = context;
  const names = Array.from({ length: actionCount }, (_, index) => `mix${index}`);
  for (const name of names) {
    await api.putAction(name, { memoryMiB: 128 });
    await api.invoke(name);
  }
  const paths = names.map((name) => invokePath(name, true));
  const request = (ofPaths: readonly string[], seconds: number, seed: number): LoadRequest => ({
    ...{ baseUrl: platform.url, paths: ofPaths, headers: guestHeaders, body: smallBody, connections, seconds, seed },
  });
  // The path twice, so that the client does for one action what it does for a hundred: choose.
  const one = [paths[0] as string, paths[0] as string];

  // The mix is the last to warm up: what the single action's 64 connections took, it takes back.
  await load.run(request(one, warmUpS, options.seed));
  for (let attempt = 1; ; attempt += 1) {
    const before = processesBelow(platform.pid);
    const warmUp = await load.run({ ...request(paths, warmUpS, options.seed + attempt), countStatuses: true });
    const errors = errorsOf(warmUp, 200);
    if (errors > 0) say(`  warm-up: ${errors} errors`);
    const started = newProcesses(platform.pid, before);
    say(`  warm-up ${attempt}: ${started} new processes`);
    if (started === 0) break;
    if (attempt === warmUpsAtMost) break;
  }

  const ratios: number[] = [];
  const singles: number[] = [];
  const mixes: number[] = [];
  let errors = 0;
  let coldStarts = 0;
  for (let round = 0; round < options.rounds; round += 1) {
    const before = processesBelow(platform.pid);
    const mix = await load.run(request(paths, options.seconds, options.seed * 1000 + round));
    coldStarts += newProcesses(platform.pid, before);
    const single = await load.run(request(one, options.seconds, options.seed));
    errors += errorsOf(mix, 200) + errorsOf(single, 200);
    mixes.push(mix.requestsPerS);
    singles.push(single.requestsPerS);
    ratios.push(mix.requestsPerS / single.requestsPerS);
    say(`  round ${round + 1}: mix ${mix.requestsPerS.toFixed(0)}/s, one action ${single.requestsPerS.toFixed(0)}/s`);
  }
  return [
    medianOf('mixRatio', ratios),
    { name: 'mixColdStarts', value: coldStarts },
    { name: 'mixErrors', value: errors },
    medianOf('mixRequestsPerS', mixes),
    medianOf('mixSingleRequestsPerS', singles),
  ];
}

function processesBelow(pid: number): Set<number> {
  return new Set(readTree(pid).descendants.map((one) => one.pid));
}

function newProcesses(pid: number, before: ReadonlySet<number>): number {
  return [...processesBelow(pid)].filter((one) => !before.has(one)).length;
}
