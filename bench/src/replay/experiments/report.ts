import type { Random } from '@gpuwhisk/common/system/random';
import type { Measurement } from '../../bench.js';
import type { Interval } from '../paired.js';
import { bestOther, gainOver, intervalOf, maxOf, type Compared, type Figures, type Gain } from './compare.js';
import { intervalText, markdownTable, policyTable, verdict } from './tables.js';

/** What a part of the bench has found: figures for its result, and text for the document. */
export interface Findings {
  measurements: Measurement[];
  text: string[];
}

/** An interval as a figure of the bench. */
export function figure(name: string, { mean, low, high }: Interval): Measurement {
  return { name, value: mean, spread: [low, high] };
}

const titles: Readonly<Record<Compared, string>> = {
  jctMs: 'JCT lower by',
  makespanMs: 'makespan lower by',
  stp: 'STP, times',
  p99Ms: 'P99 lower by',
  violations: 'violations lower by',
};

/** Ours against the best other by each metric and against one named other, as rows of a table. */
export function gainRows(
  figures: Figures,
  ours: string,
  metrics: readonly Compared[],
  named: string,
  random: Random,
): string[][] {
  return metrics.flatMap((metric) => {
    const than = [...new Set([bestOther(figures, ours, metric), named])];
    return than.map((other, i) => {
      const gain = gainOver(figures, ours, other, metric, random);
      return [titles[metric], `\`${other}\`${i === 0 ? ' (best)' : ''}`, textOf(gain, metric), verdict(gain)];
    });
  });
}

function textOf({ interval }: Gain, metric: Compared): string {
  return intervalText(interval, metric === 'stp');
}

/** A scenario: what all policies came to, and ours against the others. */
export function scenarioText(title: string, figures: Figures, ours: string, gains: readonly string[][]): string[] {
  return [
    `**${title}**`,
    policyTable(figures),
    markdownTable([`\`${ours}\``, 'than', 'mean (95 % interval)', 'verdict'], gains),
  ];
}

/** The figures of ours and of the best other under one prefix. */
export function scenarioMeasurements(prefix: string, figures: Figures, ours: string, random: Random): Measurement[] {
  const ofOurs = (['jctMs', 'makespanMs', 'stp', 'violations', 'p99Ms'] as const).map((metric) =>
    figure(`${prefix}.${metric}`, intervalOf(figures, ours, metric, random)),
  );
  const gains = (['jctMs', 'makespanMs', 'stp'] as const).map((metric) => {
    const { interval } = gainOver(figures, ours, bestOther(figures, ours, metric), metric, random);
    return figure(`${prefix}.${metric === 'stp' ? 'stp' : metric.slice(0, -2)}Gain`, interval);
  });
  const bound = { name: `${prefix}.waitOverBound`, value: maxOf(figures, ours, 'waitOverBound') };
  return [...ofOurs, ...gains, bound];
}
