import type { Random } from '@gpuwhisk/common/system/random';
import { own, pairedInterval, ratio, reduction, type Interval } from '@gpuwhisk/bench/statistics';
import type { ReplayMetrics } from '@gpuwhisk/bench/replay/metrics';
import { runSeed, type Known, type PolicyMaker, type Scenario, type Setting } from '../setting.js';

/** Results of each policy in one scenario, by seed. */
export type Figures = ReadonlyMap<string, readonly ReplayMetrics[]>;

/** Runs every policy with the same seeds, 1 to `seeds`, in one scenario or in that which `scenario` gives its name. */
export function runAll(
  setting: Setting,
  known: readonly Known[],
  scenario: Scenario | ((policy: string) => Scenario),
  policies: ReadonlyMap<string, PolicyMaker>,
  seeds: number,
): Figures {
  const scenarioOf = typeof scenario === 'function' ? scenario : (): Scenario => scenario;
  return new Map(
    [...policies].map(([name, make]) => [
      name,
      Array.from({ length: seeds }, (_, i) => runSeed(setting, known, scenarioOf(name), make, i + 1).metrics),
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
export type Compared = 'jctMs' | 'makespanMs' | 'p99Ms' | 'violations';

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
  const others = [...figures.keys()].filter((name) => name !== ours);
  const [first] = others.sort((a, b) => meanOf(figures, a, metric) - meanOf(figures, b, metric));
  if (first === undefined) throw new RangeError('there is no other policy to compare with');
  return first;
}

/** Fraction by which ours is lower than `than`, with its interval over the seeds. */
export function gainOver(figures: Figures, ours: string, than: string, metric: Compared, random: Random): Gain {
  const interval = pairedInterval(valuesOf(figures, ours, metric), valuesOf(figures, than, metric), reduction, random);
  const isBetter = interval.low > 0 ? true : interval.high < 0 ? false : undefined;
  return { than, interval, isBetter };
}

/** Ours over that of `than` in a metric, with its interval over the seeds. */
export function ratioOver(figures: Figures, ours: string, than: string, metric: Compared, random: Random): Interval {
  return pairedInterval(valuesOf(figures, ours, metric), valuesOf(figures, than, metric), ratio, random);
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
