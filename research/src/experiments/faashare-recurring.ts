import { runAll, gainOver, intervalOf, meanOf, type Figures, type Gain } from '../replay/experiments/compare.js';
import { figure, type Findings } from '../replay/experiments/report.js';
import { closed, paperGpus, steadyRate } from '../replay/experiments/scenarios.js';
import { markdownTable } from '@gpuwhisk/bench/documents/markdown';
import { intervalText, percent, verdict } from '../replay/experiments/tables.js';
import { poisson, readAzureDurations, readAzurePopularity } from '@gpuwhisk/bench/replay/jobs';
import { withPopularity, withTrueShares } from '../replay/recurring.js';
import { ours, oursAtAnyGain, oursTakingEveryMiss, oursWithoutQuotas } from '../replay/setting.js';
import type { Known, PolicyMaker, Scenario } from '../replay/setting.js';
import type { Prepared } from './faashare-parts.js';

/** So many jobs that most sets are met more often than the three times before their search. */
const recurringJobs = 2400;
/** Fewer where every answer is taken: GPUs then hold many jobs of small shares, and decisions take long. */
const everyMissJobs = 240;
const load = 0.9;
/** The platform's own bound on waiting, as jobs last seconds. */
const bestEffortMs = 30_000;

/** Variants of the table of measured sets, by their names in the text. */
const variants = {
  none: 'no table',
  before: 'searched before',
  learns: 'learns during the replay',
  truth: 'best shares by the truth',
  noneOfFew: `${everyMissJobs} jobs: no table`,
  misses: `${everyMissJobs} jobs: learns, answers taken on every miss`,
} as const;

/** The table of measured sets where functions recur as Azure's do and last as long: hits, and what they gain. */
export async function recurring(prepared: Prepared, seed: number, jobs = recurringJobs): Promise<Findings> {
  const { setting, seeds, random, say } = prepared;
  const known = withPopularity(setting, prepared.known, await readAzurePopularity(), seed);
  const soloMs = await readAzureDurations();
  const batch: Scenario = { ...closed(paperGpus, jobs, prepared.length), sloFactor: [2, 8], soloMs, bestEffortMs };
  const scenario = { ...batch, open: { arrivals: poisson, ratePerMs: load * steadyRate(setting, known, batch) } };
  const figures = new Map<string, NonNullable<ReturnType<Figures['get']>>>();
  const run = (name: string, of: readonly Known[], make: PolicyMaker, changes: Partial<Scenario> = {}): void => {
    const found = runAll(setting, of, { ...scenario, ...changes }, new Map([[name, make]]), seeds);
    for (const [one, metrics] of found) figures.set(one, metrics);
    say(`  ${setting.name}: ${name} done`);
  };
  run(variants.none, known, oursWithoutQuotas);
  run(variants.before, known, ours);
  run(variants.learns, known, ours, { learns: true });
  run(variants.truth, withTrueShares(setting, known), oursAtAnyGain);
  const few = { jobs: Math.min(jobs, everyMissJobs) };
  run(variants.noneOfFew, known, oursWithoutQuotas, few);
  run(variants.misses, known, oursTakingEveryMiss, { ...few, learns: true });

  const gainOf = (name: string, than: string = variants.none): Gain => gainOver(figures, name, than, 'jctMs', random);
  const gains = new Map<string, Gain>([
    ...[variants.before, variants.learns, variants.truth].map((name): [string, Gain] => [name, gainOf(name)]),
    [variants.misses, gainOf(variants.misses, variants.noneOfFew)],
  ]);
  const gainFigures = [
    ['tableJctGain', variants.learns],
    ['tableJctBound', variants.truth],
    ['everyMissJctGain', variants.misses],
  ] as const;
  const prefix = setting.name;
  return {
    measurements: [
      figure(`${prefix}.tableHitShare`, intervalOf(figures, variants.learns, 'tableHitShare', random)),
      figure(`${prefix}.tableNearShare`, intervalOf(figures, variants.learns, 'tableNearShare', random)),
      // Near rows are hardly ever taken otherwise.
      figure(`${prefix}.tableNearRegret`, intervalOf(figures, variants.misses, 'tableNearRegret', random)),
      ...gainFigures.flatMap(([name, variant]) => {
        const gain = gains.get(variant);
        return gain === undefined ? [] : [figure(`${prefix}.${name}`, gain.interval)];
      }),
    ],
    text: [
      `**Recurring functions: ${jobs} jobs, ${paperGpus} GPUs, Poisson at ${load} of the steady rate; workloads are as popular, and` +
        ` last as long, as Azure's functions.** Hits and near rows are parts of the choices of shares that put jobs together.`,
      markdownTable(
        ['table', 'hits', 'near rows', 'JCT, s', 'violations', 'JCT lower than with no table by', 'verdict'],
        [...figures.keys()].map((name) => {
          const gain = gains.get(name);
          return [
            name,
            percent(meanOf(figures, name, 'tableHitShare')),
            percent(meanOf(figures, name, 'tableNearShare')),
            (meanOf(figures, name, 'jctMs') / 1000).toFixed(3),
            percent(meanOf(figures, name, 'violations')),
            ...(gain === undefined ? ['', ''] : [intervalText(gain.interval), verdict(gain)]),
          ];
        }),
      ),
    ],
  };
}
