// Tables of bench `dilu`, part `coscaling`, beside the paper's figures.
import { markdownTable } from '../replay/experiments/tables.js';
import type { Metrics } from './smore-tables.js';

const unmeasured = 'not measured';
const times = (value: number | undefined, digits: number, factor = 1): string =>
  value === undefined ? unmeasured : (factor * value).toFixed(digits).replace(/^-(0(?:\.0+)?)$/, '$1');

/** Ways of scaling: the name in figures, in tables, and in the paper. */
const ways = [
  ['dilu', '`dilu`', 'Dilu'],
  ['diluLiteral', '`dilu`, `surgeSamples` 20', ''],
  ['diluNoVertical', '`dilu` without vertical scaling', ''],
  ['infless', '`infless`', 'INFless+'],
  ['fastGshare', '`reactive` at once', 'FaST-GS+'],
] as const;

/** Table 3 of the paper: cold starts, late requests (%), and GPU time that Dilu saves against it (s). */
const paperTable3: Readonly<Record<string, Readonly<Record<string, readonly [number, number, number?]>>>> = {
  bursty: { dilu: [7, 1.79], infless: [27, 6.28, 433.6], fastGshare: [40, 10.79, 715.4] },
  periodic: { dilu: [11, 9.85], infless: [27, 11.09, 346.8], fastGshare: [41, 19.25, 650.4] },
  sporadic: { dilu: [1, 2.33], infless: [11, 5.17, 216.8], fastGshare: [4, 7.57, 65] },
};

const models = ['resnet152', 'roberta_large'];
const multipliers = [5, 25];
const traces = ['bursty', 'periodic', 'sporadic'];
const variations = ['gamma2', 'gamma4', 'gamma6'];

const groupOf = (trace: string): string => (traces.includes(trace) ? 'coscaling' : 'gamma');

/** A figure of one way on a trace, as the mean over functions and multipliers; undefined if one was not measured. */
function onTrace(metrics: Metrics, way: string, trace: string, figure: string): number | undefined {
  const values = models.flatMap((model) =>
    multipliers.map((by) => metrics?.[`${groupOf(trace)}.${way}.${model}.${trace}.x${by}.${figure}`]),
  );
  let sum = 0;
  for (const value of values) {
    if (value === undefined) return undefined;
    sum += value;
  }
  return sum / values.length;
}

function table3(metrics: Metrics): string {
  const rows = [...traces, ...variations].flatMap((trace) =>
    ways.map(([way, title]) => {
      const of = (figure: string): number | undefined => onTrace(metrics, way, trace, figure);
      const [ours, theirs] = [onTrace(metrics, 'dilu', trace, 'reservedS'), of('reservedS')];
      const saved = ours === undefined || theirs === undefined ? undefined : theirs - ours;
      const [coldStarts, late, paperSaved] = paperTable3[trace]?.[way] ?? [];
      return [
        ...[trace, title, times(of('coldStarts'), 1), times(coldStarts, 0), times(of('svr'), 2, 100), times(late, 2)],
        ...[way === 'dilu' ? '' : times(saved, 1), times(paperSaved, 1), times(of('deviceS'), 0)],
      ].map((cell, at) => ([3, 5, 7].includes(at) && cell === unmeasured ? '' : cell));
    }),
  );
  const titles = ['CSC', 'CSC, paper', 'SVR %', 'SVR %, paper', 'SGT s', 'SGT s, paper', 'device time s'];
  return markdownTable(['trace', 'scaling', ...titles], rows);
}

function loads(metrics: Metrics): string {
  const shown = ways.filter(([, , paper]) => paper !== '');
  const rows = models.flatMap((model) =>
    multipliers.flatMap((by) =>
      [...traces, ...variations].map((trace) => [
        `${model}, ${trace}, times ${by}`,
        ...shown.map(([way]) => {
          const of = (figure: string): number | undefined =>
            metrics?.[`${groupOf(trace)}.${way}.${model}.${trace}.x${by}.${figure}`];
          const figures = [times(of('coldStarts'), 1), times(of('svr'), 2, 100), times(of('reservedS'), 0)];
          return figures.includes(unmeasured) ? unmeasured : figures.join(' / ');
        }),
      ]),
    ),
  );
  return markdownTable(['load', ...shown.map(([, title]) => title)], rows);
}

function saved(metrics: Metrics): string {
  const figures = [
    ['coldStarts', 'cold starts', 1, 1],
    ['svr', 'late requests, percentage points', 2, 100],
    ['sgtS', 'GPU time (share × time), s', 1, 1],
    ['sgtDeviceS', 'device time, s', 1, 1],
  ] as const;
  const starts = [
    ['cold2.', '2 s'],
    ['', '5 s'],
    ['cold10.', '10 s'],
  ] as const;
  const rows = starts.flatMap(([prefix, length]) =>
    (['infless', 'fastGshare'] as const).flatMap((way) =>
      figures.map(([figure, title, digits, factor]) => {
        const of = (kind: string, end = ''): string =>
          times(metrics?.[`${prefix}${kind}.${figure}.${way}${end}`], digits, factor);
        const [mean, low, high] = [of('coscalingSaved'), of('coscalingSaved', 'Low'), of('coscalingSaved', 'High')];
        const interval = mean === unmeasured ? mean : `${mean} (${low} to ${high})`;
        return [length, ways.find(([name]) => name === way)?.[1] ?? way, title, interval, of('coscalingLeast')];
      }),
    ),
  );
  return markdownTable(['start', 'against', 'saved', 'mean', 'on the worst load'], rows);
}

/** Tables by the names of their blocks; figures that were not measured say so. */
export const coScalingTables: Readonly<Record<string, (metrics: Metrics) => string>> = { table3, loads, saved };
