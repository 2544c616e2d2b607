// Tables of experiment `dilu`, part `profiling`, beside the paper's figures.
import { markdownTable } from '@gpuwhisk/bench/documents/markdown';
import { paperTrials } from './dilu-papers.js';
import type { Metrics } from '@gpuwhisk/bench/documents/markdown';

const unmeasured = 'not measured';
const searches = ['dilu', 'gpulet', 'traversal'] as const;

function decimal(value: number | undefined): string {
  return value?.toFixed(1) ?? unmeasured;
}

function percent(value: number | undefined): string {
  return value === undefined ? unmeasured : `${(100 * value).toFixed(1).replace(/^-(0\.0)$/, '$1')} %`;
}

/** Trials and gaps by surfaces and SLO, over the models whose optimum is not the smallest share. */
function profiling(metrics: Metrics): string {
  const settings = ['a100', 'v100'].flatMap((set) => [2, 3, 4, 6].map((factor) => ({ set, factor })));
  return markdownTable(
    [
      'GPU',
      'SLO',
      'models',
      ...searches.flatMap((search) => [`trials, ${search}`, `gap, ${search}`]),
      'apart',
      'trials, `dilu`',
    ],
    settings.map(({ set, factor }) => {
      const key = `${set}.slo${factor}`;
      return [
        set.toUpperCase(),
        `${factor} × alone`,
        metrics?.[`cases.${key}`]?.toFixed(0) ?? unmeasured,
        ...searches.flatMap((search) => [
          decimal(metrics?.[`trials.${key}.${search}`]),
          percent(metrics?.[`efficacyGap.${key}.${search}`]),
        ]),
        metrics?.[`casesApart.${key}`]?.toFixed(0) ?? unmeasured,
        decimal(metrics?.[`trialsApart.${key}.dilu`]),
      ];
    }),
  );
}

/** The paper's table 2. */
function profilingPaper(): string {
  return markdownTable(
    ['search', 'model a', 'model b', 'model c', 'model d'],
    Object.entries(paperTrials).map(([search, counts]) => [search, ...counts.map(String)]),
  );
}

/** Tables by the names of their blocks; figures that were not measured say so. */
export const profilingTables: Readonly<Record<string, (metrics: Metrics) => string>> = {
  profiling,
  'profiling-paper': profilingPaper,
};
