// The table of verdicts from the metrics of experiment `verdicts`.
import { markdownTable } from '@gpuwhisk/bench/documents/markdown';
import type { Metrics } from '@gpuwhisk/bench/documents/markdown';
import { outcomeOf } from '../verdicts/verdict.js';

const titles: Readonly<Record<string, string>> = {
  late: 'late, of those with an SLO',
  timeMs: 'mean time, ms',
  restMs: 'mean time without an SLO, ms',
  makespanMs: 'makespan, ms',
  beyond: "trainings' seconds beyond their bound",
  othersMs: "mean time of the others' requests, ms",
};

const isFraction = (metric: string): boolean => metric === 'late' || metric === 'beyond';

/** A value of a metric as a cell. */
function cell(metric: string, value: number | undefined): string {
  if (value === undefined) return '';
  return isFraction(metric) ? `${(100 * value).toFixed(1)} %` : value.toFixed(0);
}

const percent = (value: number | undefined): string => (value === undefined ? '' : `${(100 * value).toFixed(0)} %`);

/**
 * `table`: one row for each metric of each scenario at each load, in the order of the run; less is better in all. `loads`: the greatest
 * load at which each policy of a scenario keeps its SLOs.
 */
export function verdictTable(metrics: Metrics, kind: string): string {
  if (metrics === undefined) return 'Not measured yet.';
  return kind === 'loads' ? greatestLoads(metrics) : verdictRows(metrics);
}

function greatestLoads(metrics: Readonly<Record<string, number>>): string {
  const rows = Object.keys(metrics).flatMap((name) => {
    const [, scenario, policy] = /^([a-z0-9-]+)\.greatestLoad\.T1\.(.+)$/.exec(name) ?? [];
    if (scenario === undefined || policy === undefined) return [];
    const [one, other] = ['T1', 'T2'].map((form) => metrics[`${scenario}.greatestLoad.${form}.${policy}`]);
    return [
      { cells: [scenario, `\`${policy}\``, percent(one), percent(other)], sum: (one ?? 0) + (other ?? 0), scenario },
    ];
  });
  if (rows.length === 0) return 'The greatest load was not looked for.';
  // The greatest first within a scenario.
  const scenarios = [...new Set(rows.map(({ scenario }) => scenario))];
  const sorted = scenarios.flatMap((scenario) =>
    rows.filter((row) => row.scenario === scenario).sort((a, b) => b.sum - a.sum),
  );
  return markdownTable(
    ['scenario', 'policy', 'greatest load in T1', 'in T2'],
    sorted.map(({ cells }) => cells),
  );
}

function verdictRows(metrics: Readonly<Record<string, number>>): string {
  const rows = new Map<string, string[]>();
  for (const name of Object.keys(metrics)) {
    const [, key] = /^([a-z0-9-]+\.\d+\.[A-Za-z]+)\.T1\.difference\./.exec(name) ?? [];
    if (key !== undefined) rows.set(key, rowOf(metrics, key));
  }
  return markdownTable(
    [
      ...['scenario', 'load', 'metric', 'ours', 'in T1', 'in T2', 'best rival', 'in T1', 'in T2'],
      ...['ours less the rival, T1', 'the same, T2', 'verdict', 'extrapolated'],
    ],
    [...rows.values()],
  );
}

function rowOf(metrics: Readonly<Record<string, number>>, key: string): string[] {
  const [scenario = '', load = '', metric = ''] = key.split('.');
  const named = (variant: string, figure: string): [name: string, value: number | undefined] => {
    const found = Object.keys(metrics).find((one) => one.startsWith(`${key}.${variant}.${figure}.`));
    return found === undefined ? ['', undefined] : [found.slice(`${key}.${variant}.${figure}.`.length), metrics[found]];
  };
  const [ours] = named('T1', 'ours');
  const [rival] = named('T1', 'difference');
  const difference = (variant: string): string => {
    const [mean, low, high] = ['difference', 'low', 'high'].map((figure) => cell(metric, named(variant, figure)[1]));
    return `${mean} (${low} to ${high})`;
  };
  const variants = ['T1', 'T2', 'T1-disjoint', 'T2-disjoint'].flatMap((variant) => {
    const [low, high] = [named(variant, 'low')[1], named(variant, 'high')[1]];
    return low === undefined || high === undefined ? [] : [{ variant, low, high }];
  });
  const brackets = variants.length > 2 ? ', both brackets' : '';
  const theirs = (variant: string): string => cell(metric, metrics[`${key}.${variant}.theirs.${rival}`]);
  return [
    ...[scenario, `${load} %`, titles[metric] ?? metric],
    ...[`\`${ours}\``, cell(metric, named('T1', 'ours')[1]), cell(metric, named('T2', 'ours')[1])],
    ...[`\`${rival}\``, theirs('T1'), theirs('T2'), difference('T1'), difference('T2')],
    ...[`${outcomeOf(variants)}${brackets}`, percent(metrics[`${key}.extrapolated`])],
  ];
}
