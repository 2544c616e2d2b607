// Figures of a replay of PROTEAN's experiments. Each batch stands for its requests, which came evenly between its first and its last.
import type { Batch } from './arrivals.js';

/** A batch that has run. Times in ms of the replay. */
export interface Served {
  batch: Batch;
  startedMs: number;
  endedMs: number;
  /** Time by its cause: its time alone on 7g, the smaller slice, and neighbours. */
  aloneMs: number;
  deficiencyMs: number;
  interferenceMs: number;
}

/** Points of a batch that stand for its requests in distributions, where these did not come at once. */
const points = [0.25, 0.75] as const;
const onePoint = [0.5] as const;

/** An SLO is so many times the time of a full batch alone on 7g (paper, section 5). */
export const sloFactor = 3;

/** The SLO of a batch's requests, ms: so many times the time of a full batch alone on 7g. */
export const sloMs = ({ batch }: Pick<Served, 'batch'>, factor: number): number => factor * batch.model.soloMs;

/** Fraction of the strict requests that ended within their SLO; 1 if there were none. */
export function compliance(served: readonly Served[], factor: number): number {
  let [all, met] = [0, 0];
  for (const one of served) {
    const { isStrict, count } = one.batch;
    if (!isStrict) continue;
    all += count;
    met += count * metPart(one, factor);
  }
  return all === 0 ? 1 : met / all;
}

/** The part of a batch's requests that ended within the SLO. */
export function metPart(one: Served, factor: number): number {
  const { firstMs, lastMs } = one.batch;
  const earliest = one.endedMs - sloMs(one, factor);
  if (lastMs <= firstMs) return firstMs >= earliest ? 1 : 0;
  return Math.min(1, Math.max(0, (lastMs - earliest) / (lastMs - firstMs)));
}

/** A value, and how many requests have it. */
interface Weighted {
  value: number;
  weight: number;
}

/** Latencies of strict or of best-effort requests, ms, or in multiples of the time alone. */
export function latencies(served: readonly Served[], isStrict: boolean, unit: 'ms' | 'alone'): Weighted[] {
  const found: Weighted[] = [];
  for (const { batch, endedMs } of served) {
    if (batch.isStrict !== isStrict) continue;
    const { firstMs, lastMs, count, model } = batch;
    const by = unit === 'ms' ? 1 : model.soloMs;
    const parts = firstMs === lastMs ? onePoint : points;
    for (const part of parts) {
      const arrived = firstMs + part * (lastMs - firstMs);
      found.push({ value: (endedMs - arrived) / by, weight: count / parts.length });
    }
  }
  return found;
}

/** The values below which the given percents of the requests lie; NaN for no requests. */
export function quantiles(values: readonly Weighted[], percents: readonly number[]): number[] {
  const sorted = [...values].sort((a, b) => a.value - b.value);
  const total = sorted.reduce((sum, { weight }) => sum + weight, 0);
  const ends = new Float64Array(sorted.length);
  let below = 0;
  for (const [at, { weight }] of sorted.entries()) ends[at] = below += weight;
  return percents.map((percent) => {
    const at = ends.findIndex((end) => end >= (percent / 100) * total);
    return (sorted[at] ?? sorted.at(-1))?.value ?? NaN;
  });
}

/** Where the time of tail requests went, in multiples of their time alone on 7g. */
export interface Breakdown {
  /** Until the batch started: formation and queue. */
  waiting: number;
  alone: number;
  deficiency: number;
  interference: number;
}

/** Means over the strict requests between the 98.5th and the 99.5th percentile of latency; undefined for no strict requests. */
export function tailBreakdown(served: readonly Served[]): Breakdown | undefined {
  const strict = served
    .filter(({ batch }) => batch.isStrict)
    .map((one) => {
      const arrived = (one.batch.firstMs + one.batch.lastMs) / 2;
      return { one, arrived, latency: (one.endedMs - arrived) / one.batch.model.soloMs };
    })
    .sort((a, b) => a.latency - b.latency);
  const total = strict.reduce((sum, { one }) => sum + one.batch.count, 0);
  if (total === 0) return undefined;
  const sums = { waiting: 0, alone: 0, deficiency: 0, interference: 0 };
  let [before, weight] = [0, 0];
  for (const { one, arrived } of strict) {
    const after = before + one.batch.count;
    const inside = Math.min(after, 0.995 * total) - Math.max(before, 0.985 * total);
    before = after;
    if (inside <= 0) continue;
    const each = inside / one.batch.model.soloMs;
    sums.waiting += each * (one.startedMs - arrived);
    sums.alone += each * one.aloneMs;
    sums.deficiency += each * one.deficiencyMs;
    sums.interference += each * one.interferenceMs;
    weight += inside;
  }
  return {
    waiting: sums.waiting / weight,
    alone: sums.alone / weight,
    deficiency: sums.deficiency / weight,
    interference: sums.interference / weight,
  };
}
