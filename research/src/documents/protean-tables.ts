// Tables of docs/protean-measurements.md from the metrics of experiment `protean`, beside the paper's figures.
import { markdownTable } from '@gpuwhisk/bench/documents/markdown';
import { costTables } from './protean-cost-tables.js';
import { paperBestEffort, paperCompliance, schemeNames } from './protean-papers.js';
import type { Metrics } from '@gpuwhisk/bench/documents/markdown';

const unmeasured = 'not measured';
const patterns = ['bursts', 'spread'] as const;

/** A number with so many decimals, times a factor; `end`: its unit. */
export function figure(value: number | undefined, digits: number, factor = 1, end = ''): string {
  if (value === undefined) return unmeasured;
  return `${(factor * value).toFixed(digits).replace(/^-(0(?:\.0+)?)$/, '$1')}${end}`;
}

/** A mean with its interval, times 100. */
export function inPoints(metrics: Metrics, name: string): string {
  const [mean, low, high] = ['', 'Low', 'High'].map((end) => figure(metrics?.[`${name}${end}`], 2, 100));
  return mean === unmeasured ? unmeasured : `${mean} (${low} to ${high})`;
}

const percent = (value: number | undefined, digits = 2): string => figure(value, digits, 100, ' %');

function compliance(metrics: Metrics): string {
  const rows = schemeNames.map(([key, title]) => [
    title,
    ...patterns.flatMap((pattern) => [
      percent(metrics?.[`compliance.${pattern}.${key}.met`]),
      figure(metrics?.[`compliance.${pattern}.${key}.p99`], 2),
    ]),
    paperCompliance['compliance']?.[key] ?? '',
  ]);
  const titles = patterns.flatMap((pattern) => [`within SLO, ${pattern}`, `P99 / alone, ${pattern}`]);
  return markdownTable(['scheme', ...titles, 'within SLO, paper'], rows);
}

function gainTable(metrics: Metrics): string {
  const rows = schemeNames
    .slice(1)
    .map(([key, title]) => [
      title,
      ...patterns.flatMap((pattern) => [
        inPoints(metrics, `compliance.${pattern}.gain.${key}`),
        percent(metrics?.[`compliance.${pattern}.lost.${key}`], 0),
      ]),
    ]);
  const titles = patterns.flatMap((pattern) => [`gain, points, ${pattern}`, `draws lost, ${pattern}`]);
  return markdownTable(['against', ...titles], rows);
}

const causes = ['waiting', 'alone', 'deficiency', 'interference'] as const;

function tail(metrics: Metrics): string {
  const rows = patterns.flatMap((pattern) =>
    schemeNames.map(([key, title]) => [
      pattern,
      title,
      ...causes.map((cause) => figure(metrics?.[`compliance.${pattern}.${key}.${cause}`], 2)),
    ]),
  );
  return markdownTable(['arrivals', 'scheme', 'waiting', 'alone on 7g', 'smaller slice', 'neighbours'], rows);
}

function rest(metrics: Metrics): string {
  const rows = schemeNames.map(([key, title]) => [
    title,
    ...['compliance', 'strict0'].flatMap((study) =>
      (['restP50Ms', 'restP99Ms'] as const).map((name) => figure(metrics?.[`${study}.bursts.${key}.${name}`], 0)),
    ),
    paperBestEffort[key]?.join(', ') ?? '',
  ]);
  const titles = ['P50, half strict', 'P99, half strict', 'P50, none strict', 'P99, none strict'];
  return markdownTable(['scheme', ...titles, 'none strict, paper'], rows);
}

/** Studies of the sensitivity part, with their titles. */
const studies = [
  ['erratic', 'Twitter (figure 11)'],
  ['language', 'language models (figure 12)'],
  ['generative', 'GPT-1 and GPT-2 (figure 13)'],
  ['tight', 'SLO of twice the time alone (figure 15)'],
  ['strict25', '25 % strict (figure 14)'],
  ['strict75', '75 % strict (figure 14)'],
  ['strict100', '100 % strict, ResNet 50 (table 4)'],
] as const;

function sensitivity(metrics: Metrics): string {
  const rows = studies.flatMap(([study, title]) => [
    ...patterns.map((pattern) => [
      title,
      pattern,
      ...schemeNames.map(([key]) => percent(metrics?.[`${study}.${pattern}.${key}.met`])),
    ]),
    [title, 'paper', ...schemeNames.map(([key]) => paperCompliance[study]?.[key] ?? '')],
  ]);
  return markdownTable(['setting', 'arrivals', ...schemeNames.map(([, title]) => title)], rows);
}

function sensitivityGains(metrics: Metrics): string {
  const shown = schemeNames.slice(1);
  const rows = studies.flatMap(([study, title]) =>
    patterns.map((pattern) => [
      title,
      pattern,
      ...shown.map(([key]) => inPoints(metrics, `${study}.${pattern}.gain.${key}`)),
    ]),
  );
  return markdownTable(['setting', 'arrivals', ...shown.map(([, title]) => title)], rows);
}

const tables: Readonly<Record<string, (metrics: Metrics) => string>> = {
  compliance,
  gains: gainTable,
  tail,
  rest,
  sensitivity,
  'sensitivity-gains': sensitivityGains,
  ...costTables,
};

/** A table from the metrics of experiment `protean`. Throws Error for an unknown name. */
export function proteanTable(metrics: Metrics, name: string): string {
  const table = tables[name];
  if (table === undefined) throw new Error(`There is no table '${name}' of experiment protean.`);
  return table(metrics);
}
