// Schemes on the same draws, and their figures.
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { Measurement } from '../../bench.js';
import { meanOf, pairedInterval } from '../../statistics.js';
import { countedFromMs, type Batch } from './arrivals.js';
import { compliance, latencies, quantiles, sloFactor, tailBreakdown, utilisation } from './metrics.js';
import { oracle } from './oracle.js';
import { protean } from './protean-scheme.js';
import { baselines } from './schemes.js';
import { deviceCount, serve, type Scheme, type Served, type Totals } from './serving.js';
import { draw, type Drawn, type Inputs, type Setting } from './setting.js';

/** Figures of one scheme on one draw by name. */
export type Figures = Readonly<Record<string, number>>;

/** Percents of the distribution of strict latencies (figure 8). */
export const distributionPercents = [...Array.from({ length: 19 }, (_, at) => 5 * (at + 1)), 99] as const;

/**
 * `met`: fraction of strict requests within their SLO. `p50`, `p99` of strict requests and `q5` to `q99`, in multiples of the time alone.
 * `restP50Ms`, `restP99Ms`: best effort. `waiting`, `alone`, `deficiency`, `interference`: parts of strict tail latency, in multiples of the
 * time alone. `busy`, `memory`: parts of GPU time and of GPU memory in use. `perS`, `strictPerS`: requests a second until the last has
 * ended. A figure without requests is left out.
 */
export function figuresOf(served: readonly Served[], totals: Totals | undefined, factor: number): Figures {
  const strict = latencies(served, true, 'alone');
  const [p50 = NaN, ...distribution] = quantiles(strict, [50, ...distributionPercents]);
  const [restP50Ms = NaN, restP99Ms = NaN] = quantiles(latencies(served, false, 'ms'), [50, 99]);
  const all: Record<string, number> = { met: strict.length === 0 ? NaN : compliance(served, factor), p50 };
  for (const [at, percent] of distributionPercents.entries()) all[`q${percent}`] = distribution[at] ?? NaN;
  Object.assign(all, { p99: all['q99'], restP50Ms, restP99Ms }, tailBreakdown(served));
  if (totals !== undefined) {
    const { time, memory } = utilisation(totals);
    Object.assign(all, { busy: time, memory, cuts: totals.cuts, ...rates(served) });
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => Number.isFinite(value)));
}

/** Requests a second from the first counted one to the last end: all, and strict ones. */
function rates(served: readonly Served[]): { perS: number; strictPerS: number } {
  const perS = (some: readonly Served[]): number => {
    const endMs = some.reduce((last, { endedMs }) => Math.max(last, endedMs), 0);
    return (1000 * some.reduce((sum, { batch }) => sum + batch.count, 0)) / (endMs - countedFromMs);
  };
  return { perS: perS(served), strictPerS: perS(served.filter(({ batch }) => batch.isStrict)) };
}

/** Schemes of the comparison by name, `oracle` apart, which is no scheme. */
export const schemes: Readonly<Record<string, (drawn: Drawn) => Scheme>> = { protean, ...baselines };

/** Baselines and the oracle. */
export const others = [...Object.keys(baselines), 'oracle'];

/** Figures of a scheme, or of the oracle, on a draw. Baselines neither learn nor cut, and begin with the batches that count. */
export function play(name: string, drawn: Drawn, factor: number, count = deviceCount): Figures {
  const { world, batches } = drawn;
  const counted = batches.filter(isCounted);
  if (name === 'oracle') return figuresOf(oracle(world, counted, factor, count), undefined, factor);
  const make = schemes[name];
  if (make === undefined) throw new RangeError(`there is no scheme '${name}'`);
  const { served, totals } = serve(world, name in baselines ? counted : batches, make(drawn), count);
  return figuresOf(
    served.filter(({ batch }) => isCounted(batch)),
    totals,
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
