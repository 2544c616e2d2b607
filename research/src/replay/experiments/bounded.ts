// What can be gained in a scenario at all: an oracle, and a bound that no schedule goes below.
import type { Random } from '@gpuwhisk/common/system/random';
import type { Measurement } from '@gpuwhisk/bench/bench';
import { lowerBounds, type LowerBounds } from '../bounds.js';
import { pairOracle } from '../pair-oracle.js';
import {
  drawOf,
  jobsOf,
  named,
  trueLengths,
  withTruth,
  type Known,
  type PolicyMaker,
  type Scenario,
  type Setting,
} from '../setting.js';
import { bestOther, gainOver, meanOf, runAll, type Figures, type Gain } from './compare.js';
import { figure } from './report.js';
import { markdownTable } from '@gpuwhisk/bench/documents/markdown';
import { intervalText } from './tables.js';

function truthOf(name: string): string {
  return `${name} with the truth`;
}

/** Policies that are given the truth. The best of them in a metric is its oracle. */
const oracles: ReadonlyMap<string, PolicyMaker> = new Map(
  ['faashare', 'time-priority', 'longest-first', 'uncapped'].map((name) => [truthOf(name), withTruth(named(name))]),
);
/** An oracle that gains less than this over the best baseline shows that nothing is to be gained. */
export const leastGain = 0.03;

/** Metrics that are bounded. */
type Bounded = keyof LowerBounds;

/** Oracles where at most two share a GPU. */
const pairOracles: ReadonlyMap<string, PolicyMaker> = new Map([
  ['pairs, longest first, with the truth', pairOracle('longest')],
  ['pairs, shortest first, with the truth', pairOracle('shortest')],
]);

/** What an experiment can gain in one metric. */
export interface Bound {
  metric: Bounded;
  /** Of the best baseline. */
  best: string;
  bestMs: number;
  oursMs: number;
  /** The policy with the truth that is best. */
  oracle: string;
  oracleMs: number;
  /** No schedule goes below it. */
  leastMs: number;
  /** Ours over the best baseline. */
  gain: Gain;
  /** The oracle over the best baseline. */
  oracleGain: Gain;
  /** Ours with the truth over ours: what better predictions of ours, also of their uncertainty, could gain at all. */
  truthGain: Gain;
}

/** The least mean of both metrics over the seeds that any schedule reaches. */
export function leastOf(setting: Setting, known: readonly Known[], scenario: Scenario, seeds: number): LowerBounds {
  const entries = new Map(setting.catalogue.map((entry) => [entry.name, setting.leastWork(entry)]));
  const sum: LowerBounds = { makespanMs: 0, jctMs: 0 };
  for (let seed = 1; seed <= seeds; seed += 1) {
    const { truth, known: learned } = drawOf(setting, known, seed);
    const drawn = jobsOf(setting, learned, scenario, seed);
    const lengths = trueLengths(drawn, truth.noise);
    const bounds = lowerBounds(
      drawn.jobs.map(({ task: { id, arrivedAt }, workload, soloMs }) => {
        const lengthMs = lengths.get(id) ?? soloMs;
        return { arrivedAt, lengthMs, workMs: lengthMs * (entries.get(workload) ?? 0) };
      }),
      scenario.gpus,
    );
    sum.makespanMs += bounds.makespanMs / seeds;
    sum.jctMs += bounds.jctMs / seeds;
  }
  return sum;
}

/** Runs the oracles in a scenario, with the seeds of `figures`, and compares it with the best baseline of these. */
export function boundsOf(
  { setting, known, seeds, random }: { setting: Setting; known: readonly Known[]; seeds: number; random: Random },
  scenario: Scenario,
  figures: Figures,
  ours: string,
  metrics: readonly Bounded[],
): Bound[] {
  const isPairs = setting.maxTotal === 100 && setting.quotaBudget.mostTasks === 2;
  const knowing = isPairs ? new Map([...oracles, ...pairOracles]) : oracles;
  const withOracles = runAll(setting, known, scenario, knowing, seeds);
  const all: Figures = new Map([...figures, ...withOracles]);
  const least = leastOf(setting, known, scenario, seeds);
  return metrics.map((metric) => {
    const best = bestOther(figures, ours, metric);
    const oracle = bestOther(withOracles, '', metric);
    return {
      metric,
      best,
      bestMs: meanOf(all, best, metric),
      oursMs: meanOf(all, ours, metric),
      oracle,
      oracleMs: meanOf(all, oracle, metric),
      leastMs: least[metric],
      gain: gainOver(all, ours, best, metric, random),
      oracleGain: gainOver(all, oracle, best, metric, random),
      truthGain: gainOver(all, truthOf('faashare'), ours, metric, random),
    };
  });
}

/** Bounds of an experiment as figures. */
export function boundMeasurements(prefix: string, bounds: readonly Bound[]): Measurement[] {
  return bounds.flatMap(({ metric, oracleGain, truthGain }) => [
    figure(`${prefix}.${metric.slice(0, -2)}OracleGain`, oracleGain.interval),
    figure(`${prefix}.${metric.slice(0, -2)}TruthGain`, truthGain.interval),
  ]);
}

/** The part of the oracle's gain over the best baseline that ours has; 1 where the oracle gains less than 3 %. */
export function partOfOracle({ gain, oracleGain }: Pick<Bound, 'gain' | 'oracleGain'>): number {
  const whole = oracleGain.interval.mean;
  return whole < leastGain ? 1 : gain.interval.mean / whole;
}

const titles: Readonly<Record<Bounded, string>> = { jctMs: 'JCT', makespanMs: 'makespan' };

/** A table of the bounds of experiments, by the names of these. */
export function boundsTable(experiments: readonly { name: string; bounds: readonly Bound[] }[]): string {
  const seconds = (ms: number): string => (ms / 1000).toPrecision(4);
  return markdownTable(
    [
      'experiment',
      'metric, s',
      'best baseline',
      'ours',
      'oracle',
      'no schedule below',
      'ours lower by',
      'oracle lower by',
      'ours with the truth lower than ours by',
    ],
    experiments.flatMap(({ name, bounds }) =>
      bounds.map(({ metric, best, bestMs, oursMs, oracle, oracleMs, leastMs, gain, oracleGain, truthGain }) => [
        name,
        titles[metric],
        `${seconds(bestMs)} (\`${best}\`)`,
        seconds(oursMs),
        `${seconds(oracleMs)} (${oracle})`,
        seconds(leastMs),
        intervalText(gain.interval),
        `${intervalText(oracleGain.interval)}${oracleGain.interval.mean < leastGain ? ': nothing to gain' : ''}`,
        intervalText(truthGain.interval),
      ]),
    ),
  );
}
