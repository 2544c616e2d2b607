// Loads of the co-scaling replay: Dilu's traces, generated sporadic ones, and gamma arrivals.
import { randomFraction, type Random } from '@gpuwhisk/common/system/random';
import { readTable } from '../../data/csv.js';
import { normal } from '@gpuwhisk/gpu/simulate/replay';

/** Arrivals of requests, ms from 0, rising; and how long the load lasts, s. */
export interface Load {
  arrivals: Float64Array;
  lengthS: number;
}

/** A trace: mean requests of each second, before its multiplier. */
export type Rates = readonly number[];

/** Dilu's trace of that name, which is played one value a second. Throws BenchDataError. */
export async function readDiluTrace(name: 'bursty' | 'periodic', folder?: string): Promise<Rates> {
  const rows = await readTable(`traces/dilu_${name}.csv`, { step: 'number', rate: 'number' }, folder);
  return rows.map(({ rate }) => rate);
}

/** Of generated sporadic traces: length, mean time without requests, bounds of an active time (s) and of its rate. */
const sporadic = { lengthS: 900, idleS: 45, activeS: [2, 12], rate: [1, 9] } as const;

/** A trace that is silent most of the time: active times of some seconds at one rate each, at exponential distances. */
export function sporadicRates(random: Random): Rates {
  const within = ([least, most]: readonly [number, number]): number => least + (most - least) * randomFraction(random);
  const rates = new Array<number>(sporadic.lengthS).fill(0);
  for (let at = exponential(random) * sporadic.idleS; at < sporadic.lengthS;) {
    const until = at + within(sporadic.activeS);
    const rate = within(sporadic.rate);
    for (let second = Math.floor(at); second < until && second < rates.length; second += 1) rates[second] = rate;
    at = until + exponential(random) * sporadic.idleS;
  }
  return rates;
}

/** Poisson arrivals at `multiplier` times the rate of each second. */
export function poissonLoad(rates: Rates, multiplier: number, random: Random): Load {
  const arrivals: number[] = [];
  for (const [second, rate] of rates.entries()) {
    const perMs = (rate * multiplier) / 1000;
    if (!(perMs > 0)) continue;
    for (let ms = exponential(random) / perMs; ms < 1000; ms += exponential(random) / perMs) {
      arrivals.push(second * 1000 + ms);
    }
  }
  return { arrivals: Float64Array.from(arrivals), lengthS: rates.length };
}

/** Arrivals at gamma-distributed distances with the coefficient of variation `cv` (Dilu, section 5.2). */
export function gammaLoad(perS: number, cv: number, lengthS: number, random: Random): Load {
  const shape = 1 / (cv * cv);
  const scaleMs = 1000 / (perS * shape);
  const arrivals: number[] = [];
  for (let at = gamma(shape, random) * scaleMs; at < lengthS * 1000; at += gamma(shape, random) * scaleMs) {
    arrivals.push(at);
  }
  return { arrivals: Float64Array.from(arrivals), lengthS };
}

const exponential = (random: Random): number => -Math.log(1 - randomFraction(random));

/** Gamma with scale 1 (Marsaglia and Tsang, 2000; below shape 1 by a power of a uniform number). */
export function gamma(shape: number, random: Random): number {
  if (shape < 1) return gamma(shape + 1, random) * (1 - randomFraction(random)) ** (1 / shape);
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const x = normal(random);
    const v = (1 + c * x) ** 3;
    if (v > 0 && Math.log(1 - randomFraction(random)) < (x * x) / 2 + d - d * v + d * Math.log(v)) return d * v;
  }
}
