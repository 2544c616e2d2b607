import { randomFraction, type Random } from '@gpuwhisk/common/system/random';
import { readTable } from '../data/csv.js';

/** Draws `count` arrival times from 0 on, rising, whose mean distance is 1. */
export type Arrivals = (count: number, random: Random) => number[];

const exponential = (random: Random): number => -Math.log(1 - randomFraction(random));

/** A Poisson process. */
export const poisson: Arrivals = (count, random) => {
  let at = 0;
  return Array.from({ length: count }, () => (at += exponential(random)));
};

/** In a burst the rate is this many times that between bursts; both last for as many arrivals in the mean. */
const burstFactor = 9;
const arrivalsOfAPhase = 10;

/** A Poisson process whose rate changes between two levels (a Markov-modulated one). */
export const bursty: Arrivals = (count, random) => {
  let at = 0;
  let isBurst = randomFraction(random) < 0.5;
  // Phases have as many arrivals, so that the mean distance is that of the two levels.
  const slow = (2 * burstFactor) / (1 + burstFactor);
  return Array.from({ length: count }, () => {
    if (randomFraction(random) < 1 / arrivalsOfAPhase) isBurst = !isBurst;
    return (at += exponential(random) * (isBurst ? slow / burstFactor : slow));
  });
};

/** A piece of a measured trace that starts at a random place, stretched to a mean distance of 1. */
export function fromTrace(times: readonly number[]): Arrivals {
  return (count, random) => {
    if (times.length <= count) throw new RangeError(`the trace has ${times.length} arrivals, not more than ${count}`);
    const first = Math.floor(randomFraction(random) * (times.length - count));
    const piece = times.slice(first, first + count + 1);
    const start = piece[0] as number;
    const mean = ((piece.at(-1) as number) - start) / count;
    if (!(mean > 0)) throw new RangeError('the trace has a piece in which no time passes');
    return piece.slice(1).map((time) => (time - start) / mean);
  };
}

/** Times of the conversations in Azure's LLM trace of 2023. */
export async function readAzureConversations(folder?: string): Promise<number[]> {
  const rows = await readTable('traces/azure_llm2023_conv.csv', { t_s: 'number' }, folder);
  return rows.map((row) => row.t_s);
}
