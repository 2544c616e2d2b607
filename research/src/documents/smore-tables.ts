// Tables of docs/smore-measurements.md from the metrics of experiment `smore`, beside the papers' figures.
import { markdownTable } from '@gpuwhisk/bench/documents/markdown';
import type { Metrics } from '@gpuwhisk/bench/documents/markdown';
import {
  paperAdmitted,
  paperComparison,
  paperCostUs,
  paperFunctionDegradation,
  paperGeometries,
  paperPredictor,
  paperSingle,
  paperUse,
} from './smore-papers.js';

const unmeasured = 'not measured';

const number = (metrics: Metrics, name: string, digits: number): string =>
  metrics?.[name]?.toFixed(digits) ?? unmeasured;

function percent(value: number | undefined): string {
  return value === undefined ? unmeasured : `${(100 * value).toFixed(1).replace(/^-(0\.0)$/, '$1')} %`;
}

/** A mean with its interval, in percent. */
function withInterval(metrics: Metrics, name: string): string {
  const [mean, low, high] = ['', 'Low', 'High'].map((end) => metrics?.[`${name}${end}`]);
  if (mean === undefined || low === undefined || high === undefined) return unmeasured;
  return `${percent(mean)} (${(100 * low).toFixed(1)} to ${(100 * high).toFixed(1)})`;
}

/** Policies of the comparison: the name in figures, in tables, and in the papers. */
export const comparedPolicies: readonly (readonly [key: string, policy: string, paper: string])[] = [
  ['smore', '`smore`', 'SMORE'],
  ['smorePairs', '`smore`, weights at 1', ''],
  ['smoreLiteral', '`smore-literal`', ''],
  ['edfDegradation', '`edf-degradation`', 'ElasticFlow'],
  ['edfUtil', '`edf-util`', 'EDF-util'],
  ['random', '`random`', 'Random'],
];

const four = ['dsr', 'gui', 'sfd', 'sld'] as const;
const fourTitles = ['DSR', 'GUI', 'SFD', 'SLD'];

function comparison(metrics: Metrics): string {
  return markdownTable(
    ['policy', 'name in the paper', ...fourTitles.flatMap((title) => [title, `${title}, paper`])],
    comparedPolicies.map(([key, policy, paper]) => [
      policy,
      paper,
      ...four.flatMap((one) => {
        const theirs = paperComparison[key]?.[one];
        return [withInterval(metrics, `compare.${key}.${one}`), theirs === undefined ? '' : percent(theirs)];
      }),
    ]),
  );
}

function gains(metrics: Metrics): string {
  const others = comparedPolicies.filter(([key]) => !key.startsWith('smore'));
  const verdict = (name: string): string => {
    const [low, high] = ['Low', 'High'].map((end) => metrics?.[`${name}${end}`]);
    if (low === undefined || high === undefined) return '';
    return low > 0 ? ', better' : high < 0 ? ', worse' : ', neither';
  };
  return markdownTable(
    ['SMORE against', ...fourTitles],
    others.map(([key, policy]) => [
      policy,
      ...four.map((one) => {
        const name = `compareGain.${key}.${one}`;
        return `${withInterval(metrics, name)}${verdict(name)}`;
      }),
    ]),
  );
}

/** The sentence about domination. */
function domination(metrics: Metrics): string {
  const [dominating, dominated] = ['compare.dominating', 'compare.dominated'].map((name) => metrics?.[name]);
  if (dominating === undefined || dominated === undefined) return 'The comparison is not measured yet.';
  const count = (baselines: number): string => (baselines === 0 ? 'No baseline' : `${baselines} of the 3 baselines`);
  return [
    `${count(dominating)} is at least as good as \`smore\` in all four means.`,
    `\`smore\` is at least as good in all four as ${dominated === 0 ? 'none' : String(dominated)} of the 3 baselines.`,
  ].join(' ');
}

function single(metrics: Metrics): string {
  const rows = [
    ['admitted', 'requests served'],
    ['dsr', 'requests within their SLO'],
    ['below10', 'functions served with a degradation below 10 %'],
    ['below100', 'below 100 %'],
    ['sfd', 'degradation of the training job'],
    ['sld', 'mean degradation of the functions'],
    ['usedAlone', 'SMs in use, training alone'],
    ['used', 'with functions (mean)'],
  ] as const;
  return markdownTable(
    ['figure', 'gpuwhisk, replay', 'thesis'],
    rows.map(([name, title]) => [title, withInterval(metrics, `single.${name}`), paperSingle[name] ?? '']),
  );
}

function admitted(metrics: Metrics): string {
  return markdownTable(
    ['function', 'served, replay', 'thesis'],
    Object.entries(paperAdmitted).map(([model, paper]) => [
      model,
      percent(metrics?.[`single.admitted.${model}`]),
      paper,
    ]),
  );
}

/** Names of the six set-ups. */
export const setUpNames: readonly string[] = Object.keys(paperUse).flatMap((model) => [
  `${model}-same`,
  `${model}-mix`,
]);

function setUps(metrics: Metrics): string {
  return markdownTable(
    ['set-up', 'served', 'SFD', 'SLD', 'SLD, thesis', 'SMs, training alone', 'with functions', 'thesis'],
    setUpNames.map((name) => {
      const [alone, together] = paperUse[name.split('-')[0] ?? ''] ?? ['', ''];
      return [
        name,
        ...['admitted', 'sfd', 'sld'].map((one) => withInterval(metrics, `setup.${name}.${one}`)),
        paperFunctionDegradation[name] ?? 'under 50 %',
        ...['usedAlone', 'used'].map((one) => percent(metrics?.[`setup.${name}.${one}`])),
        `${alone}; ${together}`,
      ];
    }),
  );
}

function guard(metrics: Metrics): string {
  const rows = [
    ['short', 'functions as they are'],
    ['long', 'a hundred times as long, a hundredth of the rate'],
  ].flatMap(([length = '', title = '']) =>
    ['with', 'without'].map((which) => {
      const name = `guard.${length}.${which}`;
      return [
        title,
        which,
        withInterval(metrics, `${name}.beyond`),
        number(metrics, `${name}.longestBeyondS`, 1),
        ...['sfd', 'dsr', 'stopped'].map((one) => withInterval(metrics, `${name}.${one}`)),
      ];
    }),
  );
  return markdownTable(
    ['functions', 'guard', 'time beyond the bound', 'longest, s (mean)', 'SFD', 'DSR', 'runs stopped'],
    rows,
  );
}

function geometries(metrics: Metrics): string {
  return markdownTable(
    ['geometry', 'DSR', 'DSR, thesis', 'GUI', 'GUI, thesis', 'SFD (thesis: 7 to 8 %)', 'SLD'],
    Object.entries(paperGeometries).map(([name, [dsr, gui]]) => {
      const of = (one: string): string => withInterval(metrics, `mig.${name}.${one}`);
      return [name, of('dsr'), dsr, of('gui'), gui, of('sfd'), of('sld')];
    }),
  );
}

function cost(metrics: Metrics): string {
  return markdownTable(
    ['devices', 'best fit, µs', 'P99', 'paper', 'fast, µs', 'P99', 'paper'],
    ['8', '64', '512', '1024', '10000'].map((devices) => [
      Number(devices).toLocaleString('en-US'),
      ...['best', 'fast'].flatMap((mode) => [
        number(metrics, `costUs.${mode}.${devices}`, 1),
        number(metrics, `costP99Us.${mode}.${devices}`, 0),
        paperCostUs[`${mode}.${devices}`]?.toString() ?? '',
      ]),
    ]),
  );
}

const sets: readonly (readonly [key: string, title: string])[] = [
  ['lucid3090', 'Lucid, RTX 3090, training beside training'],
  ['gavelV100', 'Gavel, V100, training beside training'],
  ['gavelP100', 'Gavel, P100, training beside training'],
  ['igniterV100', 'iGniter, V100, inference beside inference'],
];
const learners = ['ours', 'forest', 'bagging', 'ridge', 'nearest3', 'constant'];

function predictor(metrics: Metrics): string {
  return markdownTable(
    ['pairs', ...learners.map((name) => `RMSLE, ${name}`), 'ours over ridge', 'a model left out: ours over constant'],
    [
      ...sets.map(([key, title]) => [
        title,
        ...learners.map((name) => number(metrics, `rmsle.${name}.${key}`, 3)),
        number(metrics, `rmsleVsRidge.${key}`, 2),
        number(metrics, `leftOutVsConstant.${key}`, 2),
      ]),
      [
        'paper, table V: training beside inference, RTX 3090',
        '',
        ...['forest', 'bagging', 'ridge'].map((name) => String(paperPredictor[name]?.[0] ?? '')),
        ...['', '', '', ''],
      ],
    ],
  );
}

function curve(metrics: Metrics): string {
  const shares = ['10', '20', '40', '60', '80'];
  return markdownTable(
    ['pairs', ...shares.map((share) => `${share} % learned: RMSLE, MAE`)],
    sets
      .slice(0, 3)
      .map(([key, title]) => [
        title,
        ...shares.map(
          (share) => `${number(metrics, `rmsleAt${share}.${key}`, 3)}, ${number(metrics, `maeAt${share}.${key}`, 3)}`,
        ),
      ]),
  );
}

const prewarmRules = ['keepAlive1', 'keepAlive2', 'keepAlive5', 'keepAlive10', 'hhp', 'lsth'];

function bursty(metrics: Metrics): string {
  return markdownTable(
    [
      'baseline',
      'its cold starts',
      'its waste',
      "SMORE's cold starts",
      "SMORE's waste",
      'idle minutes over those of the baseline',
    ],
    prewarmRules.map((rule) => [
      rule,
      ...[`coldRate.bursty.${rule}`, `waste.bursty.${rule}`].map((name) => percent(metrics?.[name])),
      ...[`coldRate.bursty.${rule}.smore`, `waste.bursty.${rule}.smore`].map((name) => percent(metrics?.[name])),
      number(metrics, `wasteRatio.bursty.${rule}`, 2),
    ]),
  );
}

function regular(metrics: Metrics): string {
  return markdownTable(
    ['rule', 'cold starts', 'waste'],
    [...prewarmRules, 'smore'].map((rule) => [
      rule,
      ...[`coldRate.regular.${rule}`, `waste.regular.${rule}`].map((name) => percent(metrics?.[name])),
    ]),
  );
}

const tables: Readonly<Record<string, (metrics: Metrics) => string>> = {
  comparison,
  gains,
  domination,
  single,
  admitted,
  'set-ups': setUps,
  guard,
  geometries,
  cost,
  predictor,
  curve,
  bursty,
  regular,
};

/** A table of docs/smore-measurements.md by its name; figures that were not measured say so. Throws Error for another name. */
export function smoreTable(metrics: Metrics, name: string): string {
  const table = tables[name];
  if (table === undefined) throw new Error(`There is no table '${name}' of experiment smore.`);
  return table(metrics);
}
