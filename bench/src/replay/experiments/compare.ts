import type { Random } from '@gpuwhisk/common/system/random';
import { own, pairedInterval, ratio, reduction, type Interval } from '../../statistics.js';
import type { ReplayMetrics } from '../metrics.js';
import { runSeed, type Known, type PolicyMaker, type Scenario, type Setting } from '../setting.js';

/** Results of each policy in one scenario, by seed. */
export type Figures = ReadonlyMap<string, readonly ReplayMetrics[]>;

/** Runs every policy with the same seeds, 1 to `seeds`. */
export function runAll(
  setting: Setting,
  known: readonly Known[],
  scenario: Scenario,
  policies: ReadonlyMap<string, PolicyMaker>,
  seeds: number,
): Figures {
  return new Map(
    [...policies].map(([name, make]) => [
      name,
      Array.from({ length: seeds }, (_, i) => runSeed(setting, known, scenario, make, i + 1).metrics),
    ]),
  );
}

/** Comparison of our policy with one other, or with the best of the others. */
export interface Gain {
  /** The policy that it is compared with. */
  than: string;
  interval: Interval;
  /** True if the whole interval lies on the better side, false if on the worse side, undefined otherwise. */
  isBetter: boolean | undefined;
}

/** Metrics that are compared. */
export type Compared = 'jctMs' | 'makespanMs' | 'stp' | 'p99Ms' | 'violations';

/** The mean of a metric over the seeds. Throws RangeError for an unknown policy. */
export function meanOf(figures: Figures, policy: string, metric: keyof ReplayMetrics): number {
  const values = valuesOf(figures, policy, metric);
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The maximum of a metric over the seeds. Throws RangeError for an unknown policy. */
export function maxOf(figures: Figures, policy: string, metric: keyof ReplayMetrics): number {
  return Math.max(...valuesOf(figures, policy, metric));
}

/** The policy other than `ours` whose mean of a metric is best. */
export function bestOther(figures: Figures, ours: string, metric: Compared): string {
  const sign = metric === 'stp' ? -1 : 1;
  const others = [...figures.keys()].filter((name) => name !== ours);
  const [first] = others.sort((a, b) => sign * (meanOf(figures, a, metric) - meanOf(figures, b, metric)));
  if (first === undefined) throw new RangeError('there is no other policy to compare with');
  return first;
}

/** Fraction by which ours is lower than `than` (for `stp`: the ratio), with its interval over the seeds. */
export function gainOver(figures: Figures, ours: string, than: string, metric: Compared, random: Random): Gain {
  const statistic = metric === 'stp' ? ratio : reduction;
  const even = metric === 'stp' ? 1 : 0;
  const interval = pairedInterval(valuesOf(figures, ours, metric), valuesOf(figures, than, metric), statistic, random);
  const isBetter = interval.low > even ? true : interval.high < even ? false : undefined;
  return { than, interval, isBetter };
}

/** A metric of one policy with its interval over the seeds. */
export function intervalOf(figures: Figures, policy: string, metric: keyof ReplayMetrics, random: Random): Interval {
  const values = valuesOf(figures, policy, metric);
  return pairedInterval(values, values, own, random);
}

function valuesOf(figures: Figures, policy: string, metric: keyof ReplayMetrics): number[] {
  const all = figures.get(policy);
  if (!all) throw new RangeError(`policy ${policy} was not run`);
  return all.map((one) => one[metric]);
}
