// Tables of docs/dilu-measurements.md about packing, from the metrics of experiment `dilu`, beside the paper's figures.
import { markdownTable } from '@gpuwhisk/bench/documents/markdown';
import type { Metrics } from '@gpuwhisk/bench/documents/markdown';

const unmeasured = 'not measured';

function number(metrics: Metrics, name: string, digits: number): string {
  return metrics?.[name]?.toFixed(digits) ?? unmeasured;
}

function percent(value: number | undefined): string {
  return value === undefined || Number.isNaN(value) ? unmeasured : `${(100 * value).toFixed(1)} %`;
}

const sets: readonly (readonly [key: string, title: string])[] = [
  ['100', '100 instances'],
  ['200', '200'],
  ['400', '400'],
  ['800', '800'],
  ['drawn1600', '1,600, drawn'],
  ['drawn3200', '3,200, drawn'],
  ['alibaba', "Alibaba's pods"],
];

const rules: readonly (readonly [key: string, title: string])[] = [
  ['dilu', '`dilu`'],
  ['literal', '`dilu-literal`'],
  ['inflessR', 'INFless-r'],
  ['inflessL', 'INFless-l'],
  ['exclusive', '`exclusive`'],
];

function packing(metrics: Metrics): string {
  return markdownTable(
    ['set', ...rules.map(([, title]) => `${title}, GPUs`), 'placement of all, ms'],
    sets.map(([set, title]) => [
      title,
      ...rules.map(([rule]) => number(metrics, `packing.${set}.${rule}.gpus`, 1)),
      number(metrics, `packing.${set}.placeMs`, 0),
    ]),
  );
}

function bound(metrics: Metrics): string {
  return markdownTable(
    ['set', 'relaxation, GPUs', '`dilu` over it', 'whole instances, GPUs', '`dilu` over it', '`dilu` over repacking'],
    sets.map(([set, title]) => [
      title,
      number(metrics, `packing.${set}.bound`, 1),
      number(metrics, `packing.${set}.overBound`, 3),
      number(metrics, `packing.${set}.wholeBound`, 1),
      number(metrics, `packing.${set}.overWholeBound`, 3),
      // Sets of the paper's authors only: Repacking at every time takes long for larger ones.
      /^\d+$/.test(set) ? number(metrics, `packing.${set}.overRepacked`, 3) : '',
    ]),
  );
}

function fragments(metrics: Metrics): string {
  return markdownTable(
    ['set', ...rules.map(([, title]) => `${title}, SMs / memory`)],
    sets.map(([set, title]) => [
      title,
      ...rules.map(([rule]) => {
        const [sms, memory] = ['smFragments', 'memoryFragments'].map(
          (figure) => metrics?.[`packing.${set}.${rule}.${figure}`],
        );
        return sms === undefined ? unmeasured : `${percent(sms)} / ${percent(memory)}`;
      }),
    ]),
  );
}

/** By how much ours is lower than a rule on the drawn sets of 3,200 instances. */
function reduction(metrics: Metrics, rule: string): string {
  const [ours = NaN, theirs = NaN] = ['dilu', rule].map((one) => metrics?.[`packing.drawn3200.${one}.gpus`]);
  return percent(1 - ours / theirs);
}

function paper(metrics: Metrics): string {
  const placeMs = metrics?.['packing.drawn3200.placeMs'];
  const seconds = placeMs === undefined ? unmeasured : `${(placeMs / 1000).toFixed(2)} s`;
  return markdownTable(
    ['3,200 instances', 'here', 'paper'],
    [
      ['fewer GPUs than `exclusive`', reduction(metrics, 'exclusive'), '30 % (section 5.5)'],
      ['fewer GPUs than INFless-l', reduction(metrics, 'inflessL'), '23 % (section 5.5)'],
      ['time to place all', seconds, '1.12 s (section 5.3)'],
    ],
  );
}

function ablation(metrics: Metrics): string {
  const rows = [
    ['dilu', '`dilu`'],
    ['withoutRc', '−RC'],
    ['withoutWa', '−WA'],
    ['withoutSpans', 'without spanned fragments alone'],
  ] as const;
  return markdownTable(
    ['rule', 'GPUs', 'free SMs', 'free memory', 'lag, GPUs'],
    rows.map(([key, title]) => [
      title,
      number(metrics, `packing.ablation.${key}.gpus`, 1),
      percent(metrics?.[`packing.ablation.${key}.smFragments`]),
      percent(metrics?.[`packing.ablation.${key}.memoryFragments`]),
      number(metrics, `packing.ablation.${key}.lag`, 3),
    ]),
  );
}

const weights = [
  ['0.4', '`dilu`, α = 0.4'],
  ['0.5', "`dilu`, α = 0.5, the platform's"],
  ['0.6', '`dilu`, α = 0.6'],
  ['0.7', '`dilu`, α = 0.7'],
  ['literal', '`dilu-literal`, α = 0.6'],
] as const;

function weightTable(metrics: Metrics): string {
  const shown = ['100', '200', '400', '800', 'drawn800'];
  return markdownTable(
    ['rule', '100 instances', '200', '400', '800', '800, drawn'],
    weights.map(([rule, title]) => [
      title,
      ...shown.map((set) => number(metrics, `packing.alpha.${rule}.${set}.gpus`, 1)),
    ]),
  );
}

const bounds = [
  ['omega', 'Ω', [0.8, 0.9, 1, 1.1, 1.25, 1.5]],
  ['gamma', 'γ', [1, 1.25, 1.5, 1.75, 2, 3]],
] as const;

function sensitivity(metrics: Metrics): string {
  const rows = bounds.flatMap(([key, title, values]) =>
    values.map((value) => {
      const name = `packing.${key}.${value}`;
      return [
        `${title} = ${value}`,
        number(metrics, `${name}.gpus`, 1),
        percent(metrics?.[`${name}.smFragments`]),
        percent(metrics?.[`${name}.memoryFragments`]),
      ];
    }),
  );
  return markdownTable(['bound', 'GPUs', 'free SMs', 'free memory'], rows);
}

/** The tables by their names. */
export const packingTables: Readonly<Record<string, (metrics: Metrics) => string>> = {
  packing,
  bound,
  fragments,
  'packing-paper': paper,
  ablation,
  sensitivity,
  weights: weightTable,
};
