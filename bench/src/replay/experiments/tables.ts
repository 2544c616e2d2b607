import type { Interval } from '../paired.js';
import type { ReplayMetrics } from '../metrics.js';
import { maxOf, meanOf, type Figures, type Gain } from './compare.js';

/** A Markdown table. */
export function markdownTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(header), line(header.map(() => '---')), ...rows.map(line)].join('\n');
}

const columns: readonly [string, keyof ReplayMetrics, (value: number) => string, typeof meanOf?][] = [
  ['JCT, s', 'jctMs', (ms) => (ms / 1000).toFixed(0)],
  ['makespan, s', 'makespanMs', (ms) => (ms / 1000).toFixed(0)],
  ['STP', 'stp', (value) => value.toFixed(2)],
  ['violations', 'violations', percent],
  ['P50, s', 'p50Ms', (ms) => (ms / 1000).toFixed(0)],
  ['P95, s', 'p95Ms', (ms) => (ms / 1000).toFixed(0)],
  ['P99, s', 'p99Ms', (ms) => (ms / 1000).toFixed(0)],
  ['SMs in use', 'utilisation', percent],
  ['stranded memory', 'fragmentation', percent],
  ['GPU hours', 'gpuHours', (value) => value.toFixed(2)],
  ['longest wait, s', 'longestWaitMs', (ms) => (ms / 1000).toFixed(0), maxOf],
  ['over its bound', 'waitOverBound', (value) => value.toFixed(2), maxOf],
];

/** What each policy came to in a scenario, the means over the seeds; of waits the greatest. */
export function policyTable(figures: Figures): string {
  return markdownTable(
    ['policy', ...columns.map(([title]) => title)],
    [...figures.keys()].map((name) => [
      `\`${name}\``,
      ...columns.map(([, metric, format, of = meanOf]) => format(of(figures, name, metric))),
    ]),
  );
}

/** A fraction in percent. */
export function percent(value: number): string {
  return `${(value * 100).toFixed(1)} %`;
}

/** `12.3 % (10.1 to 14.5)`. */
export function intervalText({ mean, low, high }: Interval, isRatio = false): string {
  const one = (value: number): string => (isRatio ? value.toFixed(2) : (value * 100).toFixed(1));
  return `${one(mean)}${isRatio ? '' : ' %'} (${one(low)} to ${one(high)})`;
}

/** `better`, `worse` or `neither`, by the interval. */
export function verdict({ isBetter }: Gain): string {
  return isBetter === undefined ? 'neither' : isBetter ? 'better' : 'worse';
}
