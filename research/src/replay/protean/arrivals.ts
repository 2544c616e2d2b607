// Arrivals of PROTEAN's experiments: windows of measured traces, and the batches that their requests form.
import { randomFraction, type Random } from '@gpuwhisk/common/system/random';
import { normal } from '@gpuwhisk/gpu/simulate/replay';
import { readTable } from '@gpuwhisk/bench/data/csv';
import type { ServedModel } from './world.js';

/** How long requests come in a replay, s. */
export const lengthS = 240;
/**
 * Only batches that can start from here on count, ms: before, a scheme may learn and cut GPUs. PROTEAN has cut eight GPUs after 120 s: three
 * windows of 20 s, and then two GPUs a window. What waited for larger slices until then is served in the next seconds.
 */
export const countedFromMs = 160_000;

/** A piece of a trace, as rates of each second with a mean of 1. */
export type Window = Float64Array;

/** Ten minutes are one value, and an hour of them is played in `lengthS`. */
const minutesOfValue = 10;
const valuesOfWindow = 6;
/** A window with fewer requests in ten minutes shows its own noise. */
const leastRequests = 300;

/** Hours of World Cup 1998 or NASA 1995 whose greatest ten minutes are at most `peak` times their mean. Throws BenchDataError. */
export async function readHours(trace: 'worldcup98' | 'nasa95', peak: number, folder?: string): Promise<Window[]> {
  const rows = await readTable(`traces/${trace}_minute.csv`, { minute: 'number', requests: 'number' }, folder);
  const values: number[] = [];
  for (let from = 0; from + minutesOfValue <= rows.length; from += minutesOfValue) {
    values.push(rows.slice(from, from + minutesOfValue).reduce((sum, { requests }) => sum + requests, 0));
  }
  return piecesOf(values, valuesOfWindow, (piece) => {
    const mean = meanOf(piece);
    return mean >= leastRequests && Math.max(...piece) <= peak * mean;
  }).map((piece) => relative(played(piece)));
}

/** Pieces of the Twitter trace of `lengthS` seconds whose greatest second is between the bounds times the mean. Throws BenchDataError. */
export async function readTwitter([least, most]: readonly [number, number], folder?: string): Promise<Window[]> {
  const rows = await readTable('traces/twitter2021_day7_1s.csv', { t_s: 'number', tweets: 'number' }, folder);
  const values = rows.map(({ tweets }) => tweets);
  return piecesOf(values, lengthS, (piece) => {
    const ratio = Math.max(...piece) / meanOf(piece);
    return ratio >= least && ratio <= most;
  }).map(relative);
}

function piecesOf(values: readonly number[], length: number, isFit: (piece: readonly number[]) => boolean): number[][] {
  const found: number[][] = [];
  for (let from = 0; from + length <= values.length; from += length) {
    const piece = values.slice(from, from + length);
    if (isFit(piece)) found.push(piece);
  }
  return found;
}

/** Rates of each second, with straight lines between the middles of values. */
function played(values: readonly number[]): number[] {
  const secondsOf = lengthS / values.length;
  return Array.from({ length: lengthS }, (_, second) => {
    const at = Math.min(values.length - 1, Math.max(0, (second + 0.5) / secondsOf - 0.5));
    const [below, above] = [values[Math.floor(at)] as number, values[Math.ceil(at)] as number];
    return below + (above - below) * (at - Math.floor(at));
  });
}

function relative(values: readonly number[]): Window {
  const mean = meanOf(values);
  return Float64Array.from(values, (value) => value / mean);
}

const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** A rate that does not change. */
export const constantWindow: Window = new Float64Array(lengthS).fill(1);

/** Requests of one model that run together. */
export interface Batch {
  id: number;
  model: ServedModel;
  isStrict: boolean;
  /** Its requests came evenly between these, ms; it can start at `readyMs`. */
  firstMs: number;
  lastMs: number;
  readyMs: number;
  count: number;
  /** Time alone on 7g with its noise, ms. */
  soloMs: number;
  /** The SLO of strict requests in multiples of the time alone, as schemes know it; absent: the usual one. */
  sloFactor?: number;
}

/** Requests of strict or of best-effort work. */
export interface Stream {
  isStrict: boolean;
  /** Requests a second in each second. */
  rates: Float64Array;
  /** The model of requests at a time, ms. */
  modelAt(ms: number): ServedModel;
}

/**
 * `spread`: requests come independently of each other, and a batch starts when it is full or its first request has waited for as long
 * as it takes alone. `bursts`: all requests of a second come at once, and the last batch of a second may be part of one. The figures of
 * the paper's table 4 point to bursts: of five batches on a GPU, one after the other, three end within three times their time alone.
 */
export type Pattern = 'spread' | 'bursts';

/** A batch that is not full takes this part of its time, and the rest in proportion to its requests. An assumption. */
const fixedPart = 0.2;
const waitPart = 1;

/** The batches of some streams, by the time at which they can start. */
export function batchesOf(streams: readonly Stream[], pattern: Pattern, noise: number, random: Random): Batch[] {
  const found = streams.flatMap((stream) =>
    pattern === 'bursts' ? burstsOf(stream, random) : spreadOf(stream, random),
  );
  const turn = new Map(found.map((one) => [one, randomFraction(random)]));
  found.sort((a, b) => a.readyMs - b.readyMs || (turn.get(a) ?? 0) - (turn.get(b) ?? 0));
  return found.map((one, id) => {
    const part = fixedPart + (1 - fixedPart) * (one.count / one.model.batch);
    return { ...one, id, soloMs: one.model.soloMs * part * Math.exp(noise * normal(random)) };
  });
}

type Formed = Omit<Batch, 'id' | 'soloMs'>;

function burstsOf({ isStrict, rates, modelAt }: Stream, random: Random): Formed[] {
  const found: Formed[] = [];
  for (const [second, rate] of rates.entries()) {
    const at = second * 1000;
    const model = modelAt(at);
    for (let left = poisson(rate, random); left > 0; left -= model.batch) {
      found.push({ model, isStrict, firstMs: at, lastMs: at, readyMs: at, count: Math.min(left, model.batch) });
    }
  }
  return found;
}

function spreadOf({ isStrict, rates, modelAt }: Stream, random: Random): Formed[] {
  const found: Formed[] = [];
  const endMs = rates.length * 1000;
  const perMsAt = (ms: number): number => (rates[Math.min(rates.length - 1, Math.floor(ms / 1000))] ?? 0) / 1000;
  for (let at = 0; ;) {
    const perMs = perMsAt(at);
    if (perMs === 0) {
      at = (Math.floor(at / 1000) + 1) * 1000;
      if (at >= endMs) return found;
      continue;
    }
    const firstMs = at + exponential(random) / perMs;
    if (firstMs >= endMs) return found;
    const model = modelAt(firstMs);
    const filledMs = firstMs + (model.batch > 1 ? gamma(model.batch - 1, random) / perMs : 0);
    const flushMs = firstMs + waitPart * model.soloMs;
    const isFull = filledMs <= flushMs;
    const [readyMs, lastMs] = isFull ? [filledMs, filledMs] : [flushMs, flushMs];
    const more = isFull ? model.batch - 1 : Math.min(model.batch - 2, poisson((flushMs - firstMs) * perMs, random));
    found.push({ model, isStrict, firstMs, lastMs, readyMs, count: 1 + Math.max(0, more) });
    at = readyMs;
  }
}

const exponential = (random: Random): number => -Math.log(1 - randomFraction(random));

/** A Poisson number: exact for small means, rounded from a normal number above 50. */
function poisson(mean: number, random: Random): number {
  if (mean > 50) return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal(random)));
  const bound = Math.exp(-mean);
  let product = randomFraction(random);
  let count = 0;
  while (product > bound) {
    product *= randomFraction(random);
    count += 1;
  }
  return count;
}

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
