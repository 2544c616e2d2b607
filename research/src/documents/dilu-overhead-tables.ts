// Tables of experiment `dilu`, part `overhead`.
import { markdownTable } from '@gpuwhisk/bench/documents/markdown';
import type { Metrics } from '@gpuwhisk/bench/documents/markdown';

const unmeasured = 'not measured';

function shown(value: number | undefined, digits: number, factor = 1, unit = ''): string {
  if (value === undefined || Number.isNaN(value)) return unmeasured;
  return `${(factor * value).toFixed(digits).replace(/^-(0(?:\.0+)?)$/, '$1')}${unit}`;
}

const percent = (value: number | undefined, digits = 1): string => shown(value, digits, 100, ' %');

const counts = [100, 200, 400, 800, 1600, 3200];
const clients = [1, 2, 4, 8, 16, 32];

function overhead(metrics: Metrics): string {
  const rows = counts.map((count) => [
    count.toLocaleString('en-US'),
    ...['place', 'scale'].map((stage) => shown(metrics?.[`overhead.${stage}.${count}.us`], 1)),
  ]);
  return markdownTable(['instances', 'a placement, µs', 'a second of scaling for each instance, µs'], rows);
}

function overheadTokens(metrics: Metrics): string {
  const rows = clients.map((count) => [
    String(count),
    shown(metrics?.[`overhead.tokens.${count}.us`], 2),
    percent(metrics?.[`overhead.tokens.${count}.part`], 2),
  ]);
  return markdownTable(['clients of a device', 'a period, µs', 'of the period of 5 ms'], rows);
}

/** The tables by their names. */
export const overheadTables: Readonly<Record<string, (metrics: Metrics) => string>> = {
  overhead,
  'overhead-tokens': overheadTokens,
};
