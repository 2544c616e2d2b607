import { defaultExploration, type Exploration } from '@gpuwhisk/gpu/share/gaussian-process';
import { runAll, type Compared, type Figures, type Gain, gainOver, maxOf } from '../replay/experiments/compare.js';
import { explorations, extremes, outcomeText, searchAll } from '../replay/experiments/exploration.js';
import { figure, type Findings } from '../replay/experiments/report.js';
import {
  allPolicies,
  oursName,
  closed,
  arriving,
  paperGpus,
  paperJobs,
  steadyRate,
} from '../replay/experiments/scenarios.js';
import { markdownTable } from '@gpuwhisk/bench/documents/markdown';
import { intervalText, policyTable, verdict } from '../replay/experiments/tables.js';
import { ours, searchedWith } from '../replay/setting.js';
import { percentile } from '@gpuwhisk/bench/statistics';
import type { Prepared } from './faashare-parts.js';
import { rappSurfaces } from '../data/quota-surfaces.js';

/** Searched sets for each seed of the run. */
const setsPerSeed = 2;

const nameOf = ({ start, decay }: Exploration): string => `${start}·${decay}^t`;
/** Name of an exploration in names of figures. */
const keyOf = ({ start, decay }: Exploration): string => `start${start}.decay${decay}`;

/** Sensitivity to ξ of the search on measured surfaces, and of the job completion times end to end. */
export async function explorationSensitivity(prepared: Prepared, seed: number): Promise<Findings> {
  const { seeds, say } = prepared;
  const surfaces = await rappSurfaces();
  const found: Findings = { measurements: [], text: [] };
  const rows: string[][] = [];
  for (const exploration of explorations) {
    const outcomes = [3, 4].map((jobs) => ({
      jobs,
      outcome: searchAll(surfaces, jobs, setsPerSeed * seeds, exploration, seed),
    }));
    rows.push([nameOf(exploration), ...outcomes.flatMap(({ outcome }) => outcomeText(outcome))]);
    for (const { jobs, outcome } of outcomes) {
      found.measurements.push({
        name: `xiRegret.${jobs}.${keyOf(exploration)}`,
        value: percentile(outcome.regrets, 50),
        spread: [percentile(outcome.regrets, 5), percentile(outcome.regrets, 95)],
      });
    }
  }
  say('  search done');
  found.text.push(
    `**The search, ${setsPerSeed * seeds} sets of RaPP's V100 surfaces, 100 % in all, nothing known beforehand**`,
    markdownTable(
      ['ξ', ...[3, 4].flatMap((jobs) => [`${jobs} jobs: regret, median`, 'nine in ten', 'measurements'])],
      rows,
    ),
  );
  const end = endToEnd(prepared, seed);
  return { measurements: [...found.measurements, ...end.measurements], text: [...found.text, ...end.text] };
}

/** The closed batch, with shares that were searched with other values of ξ. */
function endToEnd({ setting, known, length, seeds, random, say }: Prepared, seed: number): Findings {
  const figures = new Map<string, NonNullable<ReturnType<Figures['get']>>>();
  for (const exploration of extremes) {
    const searched = searchedWith(setting, known, exploration, seed);
    const one = runAll(
      setting,
      searched,
      closed(paperGpus, paperJobs, length),
      new Map([[nameOf(exploration), ours]]),
      seeds,
    );
    for (const [name, of] of one) figures.set(name, of);
  }
  say('  end to end done');
  const rows = extremes
    .filter((one) => one !== defaultExploration)
    .map((exploration) => {
      const gain = (metric: Compared): Gain =>
        gainOver(figures, nameOf(exploration), nameOf(defaultExploration), metric, random);
      return { exploration, jct: gain('jctMs'), makespan: gain('makespanMs') };
    });
  return {
    measurements: rows.map(({ exploration, jct }) => figure(`xiJctGain.${keyOf(exploration)}`, jct.interval)),
    text: [
      `**End to end, ${paperGpus} GPUs, all ${paperJobs} jobs at the start: against ${nameOf(defaultExploration)}**`,
      markdownTable(
        ['ξ', 'JCT lower by', 'verdict', 'makespan lower by', 'verdict'],
        rows.map(({ exploration, jct, makespan }) => [
          nameOf(exploration),
          ...[jct, makespan].flatMap((gain) => [intervalText(gain.interval), verdict(gain)]),
        ]),
      ),
    ],
  };
}

/** Overload by `load` times the GPUs' capacity, with the platform's bound on waiting of 30 s. */
export function waits({ setting, known, length, seeds, jobs, say }: Prepared, load = 1.5): Findings {
  const gpus = 4;
  const batch = closed(gpus, jobs, length);
  const scenario = { ...arriving(batch, load, steadyRate(setting, known, batch)), bestEffortMs: 30_000 };
  const figures = runAll(setting, known, scenario, allPolicies(), seeds);
  say('  waits done');
  return {
    measurements: [
      { name: 'overload.waitOverBound', value: maxOf(figures, oursName, 'waitOverBound') },
      { name: 'overload.overdue', value: maxOf(figures, oursName, 'overdue') },
    ],
    text: [
      `**Waiting: ${gpus} GPUs, Poisson, ${load} times what they can do, no task overtaken after 30 s (stretched in no way)**`,
      policyTable(figures),
    ],
  };
}
