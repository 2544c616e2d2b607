// Functions and a day of their calls, by distributions of Azure's trace of 2019.
import { randomFraction, seededRandom, type Random } from '@gpuwhisk/common/system/random';
import { BenchDataError, readTable } from '../data/csv.js';

/** A function of the day. */
export interface DayFunction {
  name: string;
  /** Its set of modules: 0 to the number of sets - 1. */
  set: number;
  durationMs: number;
  /** Its calls, ms from midnight on, in order. */
  callsMs: readonly number[];
}

/** What a day is drawn from. */
export interface AzureData {
  /** Functions of day 7: mean duration, and calls on that day. */
  functions: readonly { durationMs: number; calls: number }[];
  /** Coefficients of variation of the times between calls, over applications, with the part of them that have less. */
  variations: readonly { value: number; part: number }[];
}

export const dayMs = 86_400_000;
const minuteMs = 60_000;

/** Reads what days are drawn from. Throws BenchDataError. */
export async function readAzureData(folder?: string): Promise<AzureData> {
  const functionColumns = { avg_duration_ms: 'number', invocations: 'number' } as const;
  const functions = await readTable('traces/azure2019_functions_day7.csv', functionColumns, folder);
  const file = 'traces/azure2019_cdfs.csv';
  const cdfs = await readTable(file, { quantity: 'text', value: 'number', cdf: 'number' }, folder);
  const variations = cdfs.filter(({ quantity }) => quantity === 'iat_cv');
  if (variations.length === 0) throw new BenchDataError(`'${file}' has no quantity 'iat_cv'.`);
  return {
    functions: functions.map((one) => ({ durationMs: one.avg_duration_ms, calls: one.invocations })),
    variations: variations.map(({ value, cdf }) => ({ value, part: cdf })),
  };
}

/**
 * Draws different functions of the trace, each of any of the sets. A function has the calls and the duration of the trace's,
 * and times between calls of a variation that is drawn by the trace's distribution.
 */
export function drawDay(data: AzureData, count: number, sets: number, seed: number): DayFunction[] {
  const random = seededRandom(seed);
  const left = [...data.functions];
  return Array.from({ length: count }, (_, index) => {
    const [drawn] = left.splice(Math.floor(randomFraction(random) * left.length), 1);
    if (drawn === undefined) throw new RangeError(`the trace has fewer than ${count} functions`);
    const set = Math.floor(randomFraction(random) * sets);
    const variation = drawVariation(data.variations, random);
    return {
      name: `function${index}`,
      set,
      durationMs: drawn.durationMs,
      callsMs: drawCalls(drawn.calls, variation, random),
    };
  });
}

function drawVariation(variations: AzureData['variations'], random: Random): number {
  const part = randomFraction(random);
  return (variations.find((one) => one.part >= part) ?? variations.at(-1))?.value ?? 1;
}

/**
 * So many calls in a day: gaps of a gamma distribution with the coefficient of variation, scaled to fill the day, from a random
 * time on. The trace counts calls by minute, so that a call of an uneven function is anywhere in its minute.
 */
function drawCalls(count: number, variation: number, random: Random): number[] {
  const gaps = gammas(count, variation, random);
  const sum = gaps.reduce((total, gap) => total + gap, 0);
  let atMs = randomFraction(random) * dayMs;
  const calls = gaps.map((gap) => {
    atMs = (atMs + (gap / sum) * dayMs) % dayMs;
    return variation === 0 ? atMs : (Math.floor(atMs / minuteMs) + randomFraction(random)) * minuteMs;
  });
  return calls.sort((one, other) => one - other);
}

/** Values of a gamma distribution up to a common factor, at least one of them not 0. */
function gammas(count: number, variation: number, random: Random): number[] {
  if (variation === 0) return Array<number>(count).fill(1);
  const shape = 1 / variation ** 2;
  // As logarithms: those of a small shape are below the least number.
  const logs = Array.from({ length: count }, () => logGamma(shape, random));
  const largest = logs.reduce((most, one) => Math.max(most, one), -Infinity);
  return logs.map((one) => Math.exp(one - largest));
}

/** The logarithm of a value of a gamma distribution (Marsaglia and Tsang 2000). */
function logGamma(shape: number, random: Random): number {
  if (shape < 1) return logGamma(shape + 1, random) + Math.log(positive(random)) / shape;
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const normal = Math.sqrt(-2 * Math.log(positive(random))) * Math.cos(2 * Math.PI * randomFraction(random));
    const v = (1 + c * normal) ** 3;
    if (v > 0 && Math.log(positive(random)) < normal ** 2 / 2 + d - d * v + d * Math.log(v)) return Math.log(d * v);
  }
}

/** A fraction above 0, up to 1. */
function positive(random: Random): number {
  return 1 - randomFraction(random);
}
