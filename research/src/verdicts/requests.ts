// Requests of a run: when they come, of which function, and how long each truly takes.
import { randomFraction, type Random } from '@gpuwhisk/common/system/random';
import { normal, type ReplayJob } from '@gpuwhisk/gpu/simulate/replay';
import { bursty, poisson } from '@gpuwhisk/bench/replay/jobs';
import type { RunFunction } from './functions.js';
import type { Scenario } from './scenario.js';

/** The part of the time that a flood takes, and when it begins. */
const flood = { part: 0.1, from: 0.4 } as const;

/**
 * Draws the requests of a scenario at `ratePerMs`, the same for the same random numbers, whatever the policy. Times scale with the
 * rate alone.
 */
export function drawRequests(
  scenario: Scenario,
  functions: readonly RunFunction[],
  ratePerMs: number,
  startMs: number,
  random: Random,
): ReplayJob[] {
  const { requests, arrivals } = scenario;
  const spread = arrivals === 'bursty' ? bursty(requests, random) : poisson(requests, random);
  const endAt = spread.at(-1) ?? 0;
  return spread.map((at, number): ReplayJob => {
    const { candidate, medianMs, spread: own, task } = drawn(functions, random);
    const length = medianMs * Math.exp(own * normal(random));
    const inFlood = (flood.from + flood.part * (at / endAt)) * endAt;
    const units = arrivals === 'closed' ? 0 : arrivals === 'flood' && task.namespace === floodedBy ? inFlood : at;
    const arrivedAt = units / ratePerMs;
    return {
      ...{ workload: candidate.workload, soloMs: length, startMs, isIdempotent: true },
      task: { ...task, id: `r${number}`, startMs, arrivedAt },
    };
  });
}

/** The namespace whose requests are the flood. */
export const floodedBy = 'n0';

function drawn(functions: readonly RunFunction[], random: Random): RunFunction {
  const sum = functions.reduce((total, { weight }) => total + weight, 0);
  let left = randomFraction(random) * sum;
  const found = functions.find(({ weight }) => (left -= weight) < 0) ?? functions.at(-1);
  if (found === undefined) throw new RangeError('a run needs a function');
  return found;
}
