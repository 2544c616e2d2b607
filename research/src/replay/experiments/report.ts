import type { Random } from '@gpuwhisk/common/system/random';
import type { Measurement } from '@gpuwhisk/bench/bench';
import type { Interval } from '@gpuwhisk/bench/statistics';
import type { Setting } from '../setting.js';
import { invented } from '@gpuwhisk/bench/replay/workloads/catalogue';
import { bestOther, gainOver, intervalOf, maxOf, type Compared, type Figures } from './compare.js';
import { markdownTable } from '@gpuwhisk/bench/documents/markdown';
import { intervalText, policyTable, verdict } from './tables.js';

/** Findings of a part of the bench: figures for its result, and text for the document. */
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
  p99Ms: 'P99 lower by',
  violations: 'violations lower by',
};

/** Rows of a table that compare our policy with the best other by each metric and with one named other. */
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
      return [titles[metric], `\`${other}\`${i === 0 ? ' (best)' : ''}`, intervalText(gain.interval), verdict(gain)];
    });
  });
}

/** A scenario's text: results of all policies, and ours against the others. */
export function scenarioText(title: string, figures: Figures, ours: string, gains: readonly string[][]): string[] {
  return [
    `**${title}**`,
    policyTable(figures),
    markdownTable([`\`${ours}\``, 'than', 'mean (95 % interval)', 'verdict'], gains),
  ];
}

/** The figures of our policy and of the best other under one prefix. */
export function scenarioMeasurements(prefix: string, figures: Figures, ours: string, random: Random): Measurement[] {
  const ofOurs = (['jctMs', 'makespanMs', 'stp', 'violations', 'p99Ms'] as const).map((metric) =>
    figure(`${prefix}.${metric}`, intervalOf(figures, ours, metric, random)),
  );
  const gains = (['jctMs', 'makespanMs'] as const).map((metric) => {
    const { interval } = gainOver(figures, ours, bestOther(figures, ours, metric), metric, random);
    return figure(`${prefix}.${metric.slice(0, -2)}Gain`, interval);
  });
  const bound = { name: `${prefix}.waitOverBound`, value: maxOf(figures, ours, 'waitOverBound') };
  return [...ofOurs, ...gains, bound];
}

/** The claims of FaaShare's paper against its best baseline, FaST-GShare (section IX). */
export const paperClaims = {
  /** Figure 10(a), and figure 11 at high load: reduction of the mean completion time. */
  jctGain: 0.23,
  /** Figure 10(b). */
  makespanGain: 0.33,
  /** Figure 14(c), at 16 GPUs. */
  violations16: 0.04,
  /** Section IX-G, against time priority and memory priority. */
  jctGainOverOrders: { 'time-priority': 0.41, 'memory-priority': 0.23 },
  makespanGainOverOrders: { 'time-priority': 0.51, 'memory-priority': 0.19 },
} as const;

/** Table of the sources of workloads' figures; workloads with the same sources share a row. */
export function sourcesTable({ catalogue, memoryMiB: given }: Pick<Setting, 'catalogue' | 'memoryMiB'>): string {
  const groups = new Map<string, { names: string[]; cells: string[] }>();
  for (const { name, sources } of catalogue) {
    const { unitMs, memoryMiB, stretch, traffic } = sources;
    const cells = [unitMs, given === undefined ? memoryMiB : invented, stretch, traffic].map((source) =>
      source.replace(name, 'its row'),
    );
    const key = cells.join('\n');
    const known = groups.get(key);
    if (known === undefined) groups.set(key, { names: [name], cells });
    else known.names.push(name);
  }
  return markdownTable(
    ['workloads', 'time alone', 'memory', 'time over share', 'traffic'],
    [...groups.values()].map(({ names, cells }) => [namesText(names), ...cells]),
  );
}

function namesText(names: readonly string[]): string {
  const [first] = names;
  return names.length < 3
    ? names.map((name) => `\`${name}\``).join(', ')
    : `\`${first}\` to \`${names.at(-1)}\`, ${names.length}`;
}
