// Schemes on the same draws, and their figures.
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { Measurement } from '@gpuwhisk/bench/bench';
import { meanOf, pairedInterval } from '@gpuwhisk/bench/statistics';
import { countedFromMs, type Batch } from './arrivals.js';
import { compliance, latencies, quantiles, sloFactor, tailBreakdown, type Served } from './metrics.js';
import { schemes, serve } from './run.js';
import { draw, type Drawn, type Inputs, type Setting } from './setting.js';

/** Figures of one scheme on one draw by name. */
export type Figures = Readonly<Record<string, number>>;

/** Percents of the distribution of strict latencies (figure 8). */
export const distributionPercents = [...Array.from({ length: 19 }, (_, at) => 5 * (at + 1)), 99] as const;

/**
 * `met`: fraction of strict requests within their SLO. `p50`, `p99` of strict requests and `q5` to `q99`, in multiples of the time alone.
 * `restP50Ms`, `restP99Ms`: best effort. `waiting`, `alone`, `deficiency`, `interference`: parts of strict tail latency, in multiples of the
 * time alone. A figure without requests is left out.
 */
export function figuresOf(served: readonly Served[], factor: number): Figures {
  const strict = latencies(served, true, 'alone');
  const [p50 = NaN, ...distribution] = quantiles(strict, [50, ...distributionPercents]);
  const [restP50Ms = NaN, restP99Ms = NaN] = quantiles(latencies(served, false, 'ms'), [50, 99]);
  const all: Record<string, number> = { met: strict.length === 0 ? NaN : compliance(served, factor), p50 };
  for (const [at, percent] of distributionPercents.entries()) all[`q${percent}`] = distribution[at] ?? NaN;
  Object.assign(all, { p99: all['q99'], restP50Ms, restP99Ms }, tailBreakdown(served));
  return Object.fromEntries(Object.entries(all).filter(([, value]) => Number.isFinite(value)));
}

/** Figures of a scheme on a draw. Schemes that do not learn begin with the batches that count. */
export function play(name: string, { world, batches }: Drawn, factor: number): Figures {
  const scheme = schemes[name];
  if (scheme === undefined) throw new RangeError(`there is no scheme '${name}'`);
  const { served } = serve(world, scheme.isProfiled === true ? batches : batches.filter(isCounted), scheme);
  return figuresOf(
    served.filter(({ batch }) => isCounted(batch)),
    factor,
  );
}

const isCounted = ({ readyMs }: Pick<Batch, 'readyMs'>): boolean => readyMs >= countedFromMs;

/** Figures by scheme, for each draw in order. */
export type Results = ReadonlyMap<string, readonly Figures[]>;

/** Plays all settings with each of the seeds. */
export function playAll(
  inputs: Inputs,
  settings: readonly Setting[],
  seeds: readonly number[],
  names: readonly string[],
  factor = sloFactor,
): Results {
  const found = new Map<string, Figures[]>(names.map((name) => [name, []]));
  for (const seed of seeds) {
    for (const setting of settings) {
      const drawn = draw(inputs, setting, seed);
      for (const [name, figures] of found) figures.push(play(name, drawn, factor));
    }
  }
  return found;
}

/** Means of every figure over draws, as `PREFIX.SCHEME.FIGURE`, and the number of draws, `PREFIX.draws`. */
export function means(prefix: string, results: Results): Measurement[] {
  const [first = []] = results.values();
  const found = [...results].flatMap(([scheme, draws]) => {
    const names = new Set(draws.flatMap((figures) => Object.keys(figures)));
    return [...names].map((name) => {
      const values = draws.flatMap((figures) => figures[name] ?? []);
      return { name: `${prefix}.${scheme}.${name}`, value: meanOf(values) };
    });
  });
  return [...found, { name: `${prefix}.draws`, value: first.length }];
}

/** A draw is lost to a scheme that has more requests within their SLO by more than this fraction. */
const tie = 0.0005;

/**
 * What PROTEAN gains in `met` over each other scheme, with 95 % intervals over draws: `PREFIX.gain.SCHEME`, `…Low`, `…High`; and the fraction
 * of draws in which it has less: `PREFIX.lost.SCHEME`.
 */
export function gains(prefix: string, results: Results, seed: number): Measurement[] {
  const ours = metOf(results, 'protean');
  return [...results.keys()].flatMap((scheme) => {
    if (scheme === 'protean') return [];
    const theirs = metOf(results, scheme);
    const { mean, low, high } = pairedInterval(ours, theirs, (a, b) => a - b, seededRandom(seed));
    const lost = ours.filter((value, at) => value < (theirs[at] as number) - tie).length;
    return [
      { name: `${prefix}.gain.${scheme}`, value: mean },
      { name: `${prefix}.gain.${scheme}Low`, value: low },
      { name: `${prefix}.gain.${scheme}High`, value: high },
      { name: `${prefix}.lost.${scheme}`, value: lost / ours.length },
    ];
  });
}

const metOf = (results: Results, scheme: string): number[] => (results.get(scheme) ?? []).map(({ met }) => met ?? 1);
