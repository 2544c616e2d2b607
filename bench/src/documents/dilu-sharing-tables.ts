// Tables of bench `dilu`, parts `endtoend`, `collocation` and `overhead`, beside the paper's figures.
import { markdownTable } from '../replay/experiments/tables.js';
import type { Metrics } from './smore-tables.js';

const unmeasured = 'not measured';

function shown(value: number | undefined, digits: number, factor = 1, unit = ''): string {
  if (value === undefined || Number.isNaN(value)) return unmeasured;
  return `${(factor * value).toFixed(digits).replace(/^-(0(?:\.0+)?)$/, '$1')}${unit}`;
}

const percent = (value: number | undefined, digits = 1): string => shown(value, digits, 100, ' %');

/** Ways to share the cluster: the name in figures and in tables. */
export const sharingWays = [
  ['exclusive', '`exclusive`'],
  ['inflessL', 'INFless-l'],
  ['inflessR', 'INFless-r'],
  ['dilu', '`dilu`'],
  ['withoutRc', '−RC'],
  ['withoutWa', '−WA'],
  ['withoutVs', '−VS'],
] as const;

function endToEnd(metrics: Metrics): string {
  const rows = sharingWays.map(([way, title]) => {
    const of = (figure: string): number | undefined => metrics?.[`endToEnd.${way}.${figure}`];
    const svr = of('svr') === undefined ? unmeasured : `${percent(of('svr'))} ± ${percent(of('svrDeviation'))}`;
    const jct =
      of('jct') === undefined
        ? unmeasured
        : `${shown(of('jct'), 2)} (${shown(of('jctLeast'), 2)} to ${shown(of('jctMost'), 2)})`;
    return [
      ...[
        title,
        shown(of('gpus'), 1),
        shown(of('mostGpus'), 1),
        svr,
        percent(of('svrMost')),
        shown(of('coldStarts'), 1),
      ],
      ...[jct, shown(of('inferenceThroughput'), 2), shown(of('trainingThroughput'), 2)],
    ];
  });
  const titles = ['GPUs', 'most GPUs', 'late', 'late, worst function', 'cold starts', 'JCT over `exclusive`'];
  return markdownTable(['way', ...titles, 'requests / GPU', 'steps / GPU'], rows);
}

function endToEndPaper(metrics: Metrics): string {
  const of = (way: string, figure: string): number => metrics?.[`endToEnd.${way}.${figure}`] ?? NaN;
  const over = (way: string, figure: string): number => of('dilu', figure) / of(way, figure);
  const more = (way: string, figure: string): number => of(way, figure) - of('dilu', figure);
  const throughput = (figure: string, paper: readonly [string, string, string]): string[][] =>
    (['exclusive', 'inflessL', 'inflessR'] as const).map((way, at) => [
      `${figure === 'inferenceThroughput' ? 'requests' : 'steps'} for each GPU, \`dilu\` over ${sharingWays.find(([key]) => key === way)?.[1] ?? way}`,
      shown(over(way, figure), 2),
      `${paper[at] ?? ''} (figure 19)`,
    ]);
  return markdownTable(
    ['figure', 'here', 'paper'],
    [
      ['most GPUs, `exclusive` over `dilu`', shown(1 / over('exclusive', 'mostGpus'), 2), '1.5 (figure 18)'],
      ['most GPUs, INFless-l less `dilu`', shown(more('inflessL', 'mostGpus'), 1), '3 (figure 18)'],
      ['most GPUs, −RC less `dilu`', shown(more('withoutRc', 'mostGpus'), 1), '1 (section 5.4)'],
      ['late requests, −VS above `dilu`', percent(1 / over('withoutVs', 'svr') - 1, 0), '158 % (section 5.4)'],
      ['the same of the worst function', percent(1 / over('withoutVs', 'svrMost') - 1, 0), '203 % (section 5.4)'],
      ...throughput('inferenceThroughput', ['3.8', '2.8', '2.3']),
      ...throughput('trainingThroughput', ['2.5', '2.1', '1.2']),
    ],
  );
}

/** Ways to share one device. */
const deviceWays = [
  ['exclusive', '`exclusive`, two GPUs'],
  ['dilu', '`dilu`'],
  ['mpsL', 'MPS-l'],
  ['mpsR', 'MPS-r'],
] as const;
const variations = [1, 2, 4, 6];

function collocation(metrics: Metrics): string {
  const rows = variations.map((cv) => [
    String(cv),
    ...deviceWays.map(([way]) => {
      const of = (figure: string): number | undefined =>
        metrics?.[`collocation.roberta_large.cv${cv}.${way}.${figure}`];
      if (of('p95Ms') === undefined) return unmeasured;
      return `${shown(of('p50Ms'), 1)} / ${shown(of('p95Ms'), 1)} / ${percent(of('svr'))} / ${percent(of('training'))}`;
    }),
  ]);
  return markdownTable(['CV', ...deviceWays.map(([, title]) => title)], rows);
}

function perToken(metrics: Metrics): string {
  const rows = variations.map((cv) => [
    String(cv),
    ...deviceWays.map(([way]) => {
      const of = (figure: string): number | undefined => metrics?.[`collocation.llama2_7b.cv${cv}.${way}.${figure}`];
      if (of('p95Ms') === undefined) return unmeasured;
      return `${shown(of('p50Ms'), 1)} / ${shown(of('p95Ms'), 1)} / ${percent(of('training'))}`;
    }),
  ]);
  return markdownTable(['CV', ...deviceWays.map(([, title]) => title)], rows);
}

function collocationPaper(metrics: Metrics): string {
  const of = (cv: number, way: string, figure: string): number =>
    metrics?.[`collocation.roberta_large.cv${cv}.${way}.${figure}`] ?? NaN;
  const over = (cv: number, figure: string, one: string, other: string): number =>
    of(cv, one, figure) / of(cv, other, figure);
  const excesses = variations.map((cv) => over(cv, 'p95Ms', 'dilu', 'exclusive') - 1);
  const range = Number.isNaN(excesses[0])
    ? unmeasured
    : `${percent(Math.min(...excesses), 0)} to ${percent(Math.max(...excesses), 0)}`;
  return markdownTable(
    ['`roberta_large`', 'here', 'paper (section 5.2)'],
    [
      [
        'P50 beside a training over `exclusive`, CV 1',
        shown(over(1, 'p50Ms', 'dilu', 'exclusive'), 2),
        '1.24, mean of several pairs',
      ],
      ['P95, the same', shown(over(1, 'p95Ms', 'dilu', 'exclusive'), 2), '1.28, mean of several pairs'],
      ['throughput of the training, CV 1', percent(of(1, 'dilu', 'training')), '97.2 %, mean of several pairs'],
      ['P95 above `exclusive`, CV 1 to 6', range, '6 % to 29 %'],
      ['P95 of MPS-l over `dilu`, CV 6', shown(over(6, 'p95Ms', 'mpsL', 'dilu'), 2), '2.08'],
      ['P95 of MPS-r over `dilu`, CV 6', shown(over(6, 'p95Ms', 'mpsR', 'dilu'), 2), '4.76'],
    ],
  );
}

const sizes = [0.25, 0.5, 0.75, 1, 1.5, 2, 4];

function maxTokens(metrics: Metrics): string {
  const models = ['roberta_large', 'llama2_7b'];
  const rows = sizes.map((size) => [
    String(size),
    ...models.map((model) => {
      const of = (figure: string): number | undefined => metrics?.[`maxTokens.${model}.${size}.${figure}`];
      if (of('p95Ms') === undefined) return unmeasured;
      return `${shown(of('p95Ms'), 1)} / ${percent(of('svr'))} / ${percent(of('training'))}`;
    }),
  ]);
  return markdownTable(['MaxTokens over the rate alone', ...models.map((model) => `\`${model}\``)], rows);
}

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
export const sharingTables: Readonly<Record<string, (metrics: Metrics) => string>> = {
  'end-to-end': endToEnd,
  'end-to-end-paper': endToEndPaper,
  collocation,
  'per-token': perToken,
  'collocation-paper': collocationPaper,
  'max-tokens': maxTokens,
  overhead,
  'overhead-tokens': overheadTokens,
};
