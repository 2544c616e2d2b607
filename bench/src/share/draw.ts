// Plain functions that are drawn by seed from the stand-in's models, and what pairs of them gain by its truth.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- pairs have as many slowdowns as members */
import { randomFraction, seededRandom, shuffled } from '@gpuwhisk/common/system/random';
import type { LiveEntry } from '../live/catalogue.js';
import { standInSlowdowns } from '../stand-in-model.js';
import type { StandInModel } from '../stand-in-model.js';

/** A function of the bench: a model, and how many inferences or steps one call runs. */
export interface DrawnFunction {
  entry: LiveEntry;
  units: number;
  /** Time of a call alone, ms. */
  soloMs: number;
}

/** Functions that leave room for all ten and a second instance of each on a device. */
const mostMemoryMiB = 3072;
/** Time of a call alone, from and to, ms. */
const [shortestMs, longestMs] = [60, 160];
/** Σ(alone / together) below which a pair does not gain. */
export const leastGain = 1.1;
/** Draws among which one with enough losing pairs is looked for. */
const mostDraws = 2000;

/** Σ(alone / together) of two functions by the stand-in's contention; 1: as turns. */
export function gainOf(model: StandInModel, type: string, one: LiveEntry, other: LiveEntry): number {
  const clients = [one, other].map(({ workload, batch, isTraining }) => ({
    workload,
    batch,
    percent: 100,
    isTraining,
  }));
  return standInSlowdowns(model, type, clients).reduce((sum, slowdown) => sum + 1 / slowdown, 0);
}

/** By function, what it gains beside each. */
export function gainsOf(model: StandInModel, type: string, functions: readonly DrawnFunction[]): number[][] {
  return functions.map((one) => functions.map((other) => gainOf(model, type, one.entry, other.entry)));
}

/** The pairs of different functions that gain too little, as a part of all. */
export function losingPart(gains: readonly (readonly number[])[]): number {
  const all = gains.flatMap((row, one) => row.filter((_, other) => other < one));
  return all.filter((gain) => gain < leastGain).length / all.length;
}

/**
 * Draws `count` functions. With `losing` the first draw of which at least that part of the pairs gains too little. Throws Error if
 * there is none.
 */
export function drawFunctions(
  model: StandInModel,
  type: string,
  catalogue: readonly LiveEntry[],
  { seed, count, losing }: { seed: number; count: number; losing?: number },
): DrawnFunction[] {
  const random = seededRandom(seed);
  const fitting = catalogue.filter(({ memoryMiB }) => memoryMiB <= mostMemoryMiB);
  for (let draw = 0; draw < (losing === undefined ? 1 : mostDraws); draw += 1) {
    const functions = shuffled(fitting, random)
      .slice(0, count)
      .map((entry): DrawnFunction => {
        const wantedMs = shortestMs + randomFraction(random) * (longestMs - shortestMs);
        const units = Math.max(1, Math.round(wantedMs / entry.unitMs));
        return { entry, units, soloMs: units * entry.unitMs };
      });
    if (losing === undefined || losingPart(gainsOf(model, type, functions)) >= losing) return functions;
  }
  throw new Error(`no draw of seed ${seed} has a part of ${losing} of pairs that lose`);
}

/**
 * Work of a GPU in the unit of turns when all functions run in the pairs that do most together (a perfect matching of greatest sum; a
 * pair that loses takes turns), each pair for as long as the others.
 */
export function bestSetsWork(gains: readonly (readonly number[])[]): number {
  const count = gains.length;
  /** By the functions that are left, as bits. */
  const best = new Map<number, number>([[0, 0]]);
  const sumOf = (left: number): number => {
    const known = best.get(left);
    if (known !== undefined) return known;
    const first = 31 - Math.clz32(left);
    let most = -Infinity;
    for (let other = 0; other < first; other += 1) {
      if ((left & (1 << other)) === 0) continue;
      const gain = Math.max(1, gains[first]![other]!);
      most = Math.max(most, gain + sumOf(left & ~(1 << first) & ~(1 << other)));
    }
    // Of an odd number the last one is alone.
    if (most === -Infinity) most = 0.5;
    best.set(left, most);
    return most;
  };
  return sumOf(2 ** count - 1) / (count / 2);
}
