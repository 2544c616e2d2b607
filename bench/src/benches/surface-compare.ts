import { smallBody } from '../api.js';
import type { BenchContext } from '../bench.js';
import { errorsOf, type LoadRequest } from '../load/load.js';

const warmUpS = 3;

/** One way to invoke. */
export interface Target {
  key: string;
  path: string;
  headers: Readonly<Record<string, string>>;
}

/** Median latencies over one connection, ms, a value for each round, by the target's key; answers that were not 200. */
export interface Comparison {
  p50Ms: Readonly<Record<string, number[]>>;
  errors: number;
}

/** Loads each target in turn over one connection, round after round. */
export async function compareTargets(
  { options, load, say }: BenchContext,
  baseUrl: string,
  targets: readonly Target[],
): Promise<Comparison> {
  const requestFor = ({ path, headers }: Target, seconds: number): LoadRequest => ({
    baseUrl,
    paths: [path],
    headers,
    body: smallBody,
    connections: 1,
    seconds,
    seed: options.seed,
  });
  let errors = 0;
  for (const target of targets) {
    const warmUp = await load.run({ ...requestFor(target, warmUpS), countStatuses: true });
    errors += errorsOf(warmUp, 200);
  }
  const p50Ms: Record<string, number[]> = Object.fromEntries(targets.map(({ key }) => [key, []]));
  for (let round = 0; round < options.rounds; round += 1) {
    // Every other round runs backwards: a drift of the machine then weighs on all alike.
    for (const target of round % 2 === 0 ? targets : targets.toReversed()) {
      const result = await load.run(requestFor(target, options.seconds));
      errors += errorsOf(result, 200);
      p50Ms[target.key]?.push(result.p50Ms);
      say(`  round ${round + 1} ${target.key}: p50 ${result.p50Ms.toFixed(3)} ms`);
    }
  }
  return { p50Ms, errors };
}

/** How much longer the second takes than the first, round by round. */
export function ratios(base: readonly number[] = [], other: readonly number[] = []): number[] {
  return other.map((value, round) => value / (base[round] as number));
}
