import { markdownTable } from '@gpuwhisk/bench/documents/markdown';
import type { Interval } from '@gpuwhisk/bench/statistics';
import type { ReplayMetrics } from '@gpuwhisk/bench/replay/metrics';
import { maxOf, meanOf, type Figures, type Gain } from './compare.js';

const columns: readonly [string, keyof ReplayMetrics, (value: number) => string, typeof meanOf?][] = [
  ['JCT, s', 'jctMs', seconds],
  ['makespan, s', 'makespanMs', seconds],
  ['solo over run', 'stp', (value) => value.toFixed(2)],
  ['violations', 'violations', percent],
  ['P50, s', 'p50Ms', seconds],
  ['P95, s', 'p95Ms', seconds],
  ['P99, s', 'p99Ms', seconds],
  ['SMs in use', 'utilisation', percent],
  ['stranded memory', 'fragmentation', percent],
  ['GPU hours', 'gpuHours', (value) => value.toFixed(2)],
  ['longest wait, s', 'longestWaitMs', seconds, maxOf],
  ['over its bound', 'waitOverBound', (value) => value.toFixed(2), maxOf],
];

/** Seconds, with two decimals below a hundred. */
function seconds(ms: number): string {
  return (ms / 1000).toFixed(ms < 100_000 ? 2 : 0);
}

/** Results of each policy in a scenario: means over the seeds, and the maximum of waits. */
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

/** One bar with the ends of its interval. */
interface Bar {
  name: string;
  value: number;
  low: number;
  high: number;
}

const width = 640;
const rowHeight = 24;
const labelWidth = 150;
const valueWidth = 70;
const top = 40;

const escape = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** Bars from left to right with their 95 % intervals, as an SVG document. Values are at least 0. */
export function barChart(title: string, bars: readonly Bar[], format: (value: number) => string): string {
  const greatest = Math.max(...bars.map(({ high }) => high), Number.MIN_VALUE);
  const x = (value: number): string =>
    (labelWidth + (Math.max(0, value) / greatest) * (width - labelWidth - valueWidth)).toFixed(1);
  const rows = bars.map(({ name, value, low, high }, i) => {
    const y = top + i * rowHeight;
    const middle = y + rowHeight / 2;
    return [
      `<text x="${labelWidth - 8}" y="${middle + 4}" text-anchor="end">${escape(name)}</text>`,
      `<rect x="${labelWidth}" y="${y + 4}" width="${(Number(x(value)) - labelWidth).toFixed(1)}" height="${rowHeight - 8}" fill="#5b8fc9"/>`,
      `<path d="M${x(low)} ${middle}H${x(high)}" stroke="#222"/>`,
      `<text x="${Number(x(high)) + 6}" y="${middle + 4}">${escape(format(value))}</text>`,
    ].join('\n');
  });
  const height = top + bars.length * rowHeight + 10;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    `<text x="10" y="22" font-size="14">${escape(title)}</text>`,
    ...rows,
    '</svg>\n',
  ].join('\n');
}
