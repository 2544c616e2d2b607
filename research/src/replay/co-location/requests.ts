// Requests of SMORE's experiments: Azure's minutes played as seconds, scaled to a rate (thesis section 5.1.2).
import { randomFraction, type Random } from '@gpuwhisk/common/system/random';
import type { ReplayJob } from '@gpuwhisk/gpu/simulate/replay';
import { randomItem } from '@gpuwhisk/bench/statistics';
import { functionPrefix } from '@gpuwhisk/bench/replay/jobs';
import type { CatalogueEntry } from '@gpuwhisk/bench/replay/workloads/catalogue';
import { namespace, type Known } from './learned.js';

/** What is asked of the functions in one replay. */
export interface RequestPlan {
  perMinute: number;
  /** As many minutes of the trace are played. */
  seconds: number;
  /** Factor of every function's time; absent: 1. */
  length?: number;
}

/** SLO over the P99 of the time alone: drawn between these (thesis section 5.1.2). */
const leastSlo = 1;
const mostSlo = 4;
/** P99 of a standard normal number. */
const normal99 = 2.326;

/**
 * Requests in a random window of the trace, in order. Each is of any function, all as likely. Functions are loaded already:
 * starts take no time, as a cold start of SMORE's table II (0.6 s or more) is longer than these SLOs.
 */
export function drawRequests(
  { perMinute, seconds, length = 1 }: RequestPlan,
  minutes: readonly number[],
  functions: readonly CatalogueEntry[],
  known: ReadonlyMap<string, Known>,
  noise: number,
  random: Random,
): ReplayJob[] {
  const window = windowOf(minutes, seconds, random);
  const count = Math.round((perMinute * seconds) / 60);
  const times = Array.from({ length: count }, () => 1000 * (drawSecond(window, random) + randomFraction(random)));
  times.sort((one, other) => one - other);
  return times.map((arrivedAt, at): ReplayJob => {
    const entry = randomItem(functions, random);
    const profile = known.get(entry.name);
    if (profile === undefined) throw new RangeError(`nothing is known of '${entry.name}'`);
    const { soloFactor, record } = profile;
    const soloMs = entry.unitMs * length;
    const factor = leastSlo + (mostSlo - leastSlo) * randomFraction(random);
    return {
      workload: entry.name,
      soloMs,
      startMs: 0,
      task: {
        id: `r${at}`,
        function: `${functionPrefix}${entry.name}`,
        version: '0.0.1',
        namespace,
        batch: entry.batch,
        gpus: 1,
        memoryMiB: entry.memoryMiB,
        soloMs: soloMs * soloFactor,
        startMs: 0,
        features: { smUtil: record.smUtil, dramUtil: record['dramUtil'] ?? 0, l2Util: record['l2Util'] ?? 0 },
        featureRecord: record,
        arrivedAt,
        sloMs: factor * soloMs * Math.exp(normal99 * noise),
        class: 'inference',
      },
    };
  });
}

/** The busiest second over the mean one: the thesis's trace has 35 of its 390 requests in one of 20 seconds. */
const mostPeak = 2;

/** Counts of consecutive minutes from a random one on, of which none has more than `mostPeak` times the mean. */
function windowOf(minutes: readonly number[], count: number, random: Random): number[] {
  for (let tries = 0; tries < 1000; tries += 1) {
    const first = Math.floor(randomFraction(random) * (minutes.length - count));
    const window = minutes.slice(first, first + count);
    const sum = window.reduce((total, one) => total + one, 0);
    if (sum > 0 && Math.max(...window) <= (mostPeak * sum) / count) return window;
  }
  throw new RangeError('the trace has no window without a greater peak');
}

/** A second, each as likely as its minute had requests. */
function drawSecond(window: readonly number[], random: Random): number {
  let left = randomFraction(random) * window.reduce((sum, one) => sum + one, 0);
  const found = window.findIndex((one) => (left -= one) < 0);
  return found < 0 ? window.length - 1 : found;
}
