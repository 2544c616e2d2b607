// Tables of docs/world.md from the metrics of experiment `world`.
import { markdownTable } from '@gpuwhisk/bench/documents/markdown';
import type { Metrics } from '@gpuwhisk/bench/documents/markdown';

const unmeasured = 'not measured';

const decimals = (value: number | undefined, digits = 2): string => value?.toFixed(digits) ?? '';
const percent = (value: number | undefined): string => (value === undefined ? '' : `${(100 * value).toFixed(1)} %`);

const sources: Readonly<Record<string, string>> = {
  gavel: 'Gavel, training',
  kace: 'KACE, training and inference',
  igniter: 'iGniter, inference',
  lucid: 'Lucid, training',
  tally: 'Tally, mostly training',
  abacus: 'Abacus, whole inferences',
  parvagpu: 'ParvaGPU, one model in a slice',
  miso: 'MISO, training',
  migperf: 'MIGPerf, inference and training',
  dilu: 'Dilu, inference',
};
const gpus: Readonly<Record<string, string>> = {
  v100: 'V100',
  p100: 'P100',
  rtx3090: 'RTX 3090',
  'a100-40': 'A100 40 GB',
  'a100-80': 'A100 80 GB',
  tally: 'not named',
};
const modes: Readonly<Record<string, string>> = {
  mps: 'MPS',
  timeslice: 'time slices',
  mig: 'MIG',
  unstated: 'not stated',
};

/** Data set, GPU and mode of a part `source.gpu.mode`, as cells. */
function partCells(part: string): string[] {
  const [source = '', gpu = '', mode = ''] = part.split('.');
  return [sources[source] ?? source, gpus[gpu] ?? gpu, modes[mode] ?? mode];
}
const partTitles = ['data set', 'GPU', 'mode'];

/** The first groups of all metrics whose names match, each once. */
function namesOf(metrics: Readonly<Record<string, number>>, pattern: RegExp): string[][] {
  const found = Object.keys(metrics).flatMap((name) => {
    const match = pattern.exec(name);
    return match === null ? [] : [match.slice(1)];
  });
  return [...new Map(found.map((groups) => [groups.join('\n'), groups])).values()];
}

const kinds: Readonly<Record<string, string>> = { whole: ', 100 % each', disjoint: ', disjoint quotas' };
const kindTitle = (kind: string): string => `${kind.slice(0, 1)}${kinds[kind.slice(1)] ?? ''}`;

function data(metrics: Readonly<Record<string, number>>): string {
  const parts = [...new Set(namesOf(metrics, /^sets\.(.+)\.\d$/).map(([part]) => part as string))];
  return markdownTable(
    [...partTitles, 'alone', 'pairs', 'triples', 'quads'],
    parts.map((part) => [
      ...partCells(part),
      ...[1, 2, 3, 4].map((size) => decimals(metrics[`sets.${part}.${size}`], 0)),
    ]),
  );
}

function errors(metrics: Readonly<Record<string, number>>, split: string): string {
  const rows = namesOf(metrics, new RegExp(`^log\\.T1\\.(.+)\\.${split}\\.(\\d[a-z]*)$`));
  const cell = (key: string): string =>
    metrics[`log.${key}`] === undefined
      ? ''
      : `${percent(metrics[`log.${key}`])} (${percent(metrics[`logP90.${key}`])})`;
  return markdownTable(
    [...partTitles, 'processes', 'sides', 'T1', 'T2', 'constant', 'repeated'],
    rows.map(([part = '', kind = '']) => [
      ...partCells(part),
      kindTitle(kind),
      decimals(metrics[`sides.${part}.${split}.${kind}`], 0),
      ...['T1', 'T2', 'constant'].map((predictor) => cell(`${predictor}.${part}.${split}.${kind}`)),
      metrics[`repeatMedian.${part}.${kind}`] === undefined
        ? ''
        : `${percent(metrics[`repeatMedian.${part}.${kind}`])} (${percent(metrics[`repeatP90.${part}.${kind}`])})`,
    ]),
  );
}

/** Triples and quads by pairs: the truths, multiplied and added measured pairs on the sides all of whose pairs were measured. */
function larger(metrics: Readonly<Record<string, number>>): string {
  const rows = namesOf(metrics, /^maeVsMultiplied\.T1\.(.+)\.(models|larger)\.([34][a-z]*)$/);
  const titles: Readonly<Record<string, string>> = {
    models: 'the model',
    larger: 'sets of three and more with the model',
  };
  return markdownTable(
    [
      ...[...partTitles, 'processes', 'left out', 'sides'],
      ...['T1', 'T2', 'multiplied', 'added', 'T1 / multiplied', 'T2 / multiplied', 'the same of logarithms'],
    ],
    rows.map(([part = '', split = '', kind = '']) => {
      const key = `${part}.${split}.${kind}`;
      const all = `${kind}.paired`;
      return [
        ...partCells(part),
        kindTitle(kind),
        titles[split] ?? split,
        decimals(metrics[`sides.${part}.${split}.${all}`], 0),
        ...['T1', 'T2', 'multiplied', 'added'].map((one) => decimals(metrics[`mae.${one}.${part}.${split}.${all}`])),
        ...['T1', 'T2'].map((one) => decimals(metrics[`maeVsMultiplied.${one}.${key}`])),
        ['T1', 'T2'].map((one) => decimals(metrics[`logVsMultiplied.${one}.${key}`])).join(', '),
      ];
    }),
  );
}

/** The same by pairs that the truths predict without the model. */
function blind(metrics: Readonly<Record<string, number>>): string {
  const rows = namesOf(metrics, /^mae\.T1Multiplied\.(.+)\.models\.([34][a-z]*)$/);
  return markdownTable(
    [...partTitles, 'processes', 'sides', 'T1', 'T1, pairs multiplied', 'T2', 'T2, pairs multiplied'],
    rows.map(([part = '', kind = '']) => [
      ...partCells(part),
      kindTitle(kind),
      decimals(metrics[`sides.${part}.models.${kind}`], 0),
      ...['T1', 'T1Multiplied', 'T2', 'T2Multiplied'].map((one) =>
        decimals(metrics[`mae.${one}.${part}.models.${kind}`]),
      ),
    ]),
  );
}

function alone(metrics: Readonly<Record<string, number>>): string {
  return markdownTable(
    [...partTitles, 'points', 'mean error', '90th percentile'],
    namesOf(metrics, /^alone\.(.+)\.sides$/).map(([part = '']) => [
      ...partCells(part),
      decimals(metrics[`alone.${part}.sides`], 0),
      percent(metrics[`alone.${part}.log`]),
      percent(metrics[`alone.${part}.logP90`]),
    ]),
  );
}

const distributionTitles = ['sets', 'p10', 'median', 'p90', 'below 1'];
const distributionCells = (metrics: Readonly<Record<string, number>>, key: string): string[] => [
  decimals(metrics[`${key}.count`], 0),
  ...['p10', 'median', 'p90'].map((figure) => decimals(metrics[`${key}.${figure}`])),
  percent(metrics[`${key}.below`]),
];

function sized(metrics: Readonly<Record<string, number>>, figure: string): string {
  return markdownTable(
    [...partTitles, 'processes', ...distributionTitles],
    namesOf(metrics, new RegExp(`^${figure}\\.(.+)\\.(\\d)\\.median$`)).map(([part = '', size = '']) => [
      ...partCells(part),
      size,
      ...distributionCells(metrics, `${figure}.${part}.${size}`),
    ]),
  );
}

function partners(metrics: Readonly<Record<string, number>>): string {
  return markdownTable(
    [...partTitles, 'best over random partners'],
    namesOf(metrics, /^partner\.(.+)$/).map(([part = '']) => [...partCells(part), percent(metrics[`partner.${part}`])]),
  );
}

function quotas(metrics: Readonly<Record<string, number>>): string {
  const titles = {
    'quota.work': 'work, best quotas',
    'quota.halves': 'work, 50 % each',
    'quota.worseHit': 'slowdown of the worse-hit one, best quotas',
  };
  const parts = namesOf(metrics, /^quota\.work\.(.+)\.median$/);
  return markdownTable(
    [...partTitles, 'over 100 % each', ...distributionTitles],
    parts.flatMap(([part = '']) =>
      Object.entries(titles).map(([figure, title]) => [
        ...partCells(part),
        title,
        ...distributionCells(metrics, `${figure}.${part}`),
      ]),
    ),
  );
}

function slices(metrics: Readonly<Record<string, number>>): string {
  return markdownTable(
    [...partTitles, ...distributionTitles],
    namesOf(metrics, /^slices\.(.+)\.median$/).map(([part = '']) => [
      ...partCells(part),
      ...distributionCells(metrics, `slices.${part}`),
    ]),
  );
}

function brackets(metrics: Readonly<Record<string, number>>): string {
  return markdownTable(
    [...partTitles, 'truth', 'p10', 'median', 'p90'],
    namesOf(metrics, /^bracket\.(T\d)\.(.+)\.p50$/).map(([form = '', part = '']) => [
      ...partCells(part),
      form,
      ...['p10', 'p50', 'p90'].map((figure) => decimals(metrics[`bracket.${form}.${part}.${figure}`])),
    ]),
  );
}

const tables: Readonly<Record<string, (metrics: Readonly<Record<string, number>>) => string>> = {
  data,
  models: (metrics) => errors(metrics, 'models'),
  processes: (metrics) => errors(metrics, 'processes'),
  quotas: (metrics) => errors(metrics, 'quotas'),
  sets: (metrics) => errors(metrics, 'sets'),
  ...{ larger, blind, alone, partners, slices, brackets },
  work: (metrics) => sized(metrics, 'work'),
  'over-pair': (metrics) => sized(metrics, 'overPair'),
  'best-quotas': quotas,
};

/** A table from the metrics of experiment `world`. Throws Error for an unknown name. */
export function worldTable(metrics: Metrics, name: string): string {
  const table = tables[name];
  if (table === undefined) throw new Error(`There is no table '${name}' of experiment world.`);
  return metrics === undefined ? unmeasured : table(metrics);
}

const leftOutTitles: Readonly<Record<string, string>> = { models: 'a model', processes: 'the number of processes' };

/** A table from the metrics of experiment `contention`: `fit`, or `outside`. Throws Error for an unknown name. */
export function contentionTable(metrics: Metrics, name: string): string {
  if (name !== 'fit' && name !== 'outside') throw new Error(`There is no table '${name}' of experiment contention.`);
  if (metrics === undefined) return unmeasured;
  const errorCells = (part: string): string[] =>
    ['log', 'constantLog'].map((figure) => {
      const p90 = percent(metrics[`${figure}P90.${part}`]);
      return `${percent(metrics[`${figure}.${part}`])} (${p90})`;
    });
  const sides = (part: string): string => String(metrics[`sides.${part}`]);
  if (name === 'outside')
    return markdownTable(
      [...partTitles, 'processes', 'sides', 'stand-in', 'median of these sides'],
      namesOf(metrics, /^sides\.(.+)\.outside\.(.+)$/).map(([part = '', kind = '']) => {
        const whole = `${part}.outside.${kind}`;
        return [...partCells(part), kindTitle(kind), sides(whole), ...errorCells(whole)];
      }),
    );
  return markdownTable(
    ['data set', 'GPU', 'processes', 'left out', 'sides', 'stand-in', 'constant'],
    namesOf(metrics, /^sides\.(.+)\.(models|processes)\.(\d)$/).map(([part = '', leftOut = '', count = '']) => {
      const [source = '', gpu = ''] = partCells(part);
      const whole = `${part}.${leftOut}.${count}`;
      return [source, gpu, count, leftOutTitles[leftOut] ?? leftOut, sides(whole), ...errorCells(whole)];
    }),
  );
}
