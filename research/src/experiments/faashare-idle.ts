import { boundMeasurements, boundsOf, boundsTable, partOfOracle } from '../replay/experiments/bounded.js';
import { bestOther, runAll, type Figures } from '../replay/experiments/compare.js';
import { figure, gainRows, scenarioText, sourcesTable, type Findings } from '../replay/experiments/report.js';
import { allPolicies, closed, oursName, paperGpus } from '../replay/experiments/scenarios.js';
import { markdownTable } from '@gpuwhisk/bench/documents/markdown';
import { percent } from '../replay/experiments/tables.js';
import { counting, type SetCounts } from '../replay/overfull.js';
import type { Scenario } from '../replay/setting.js';
import { median } from '@gpuwhisk/bench/statistics';
import { rival, type Prepared } from './faashare-parts.js';

/** Part of a policy's sets that may want more than a GPU before its results count as extrapolated. */
const mostOverfull = 0.01;

/** Pairs of workloads that leave SMs idle, all at the start. Baselines whose pairs want more than a GPU set no bar. */
export function idleSms(prepared: Prepared): Findings {
  const { setting, known, length, seeds, jobs, random, say } = prepared;
  const scenario: Scenario = { ...closed(paperGpus, jobs, length), maxLoad: 1 };
  const figures = new Map<string, NonNullable<ReturnType<Figures['get']>>>();
  const overfull = new Map<string, number>();
  for (const [name, make] of allPolicies()) {
    const counts: SetCounts = { sets: 0, overfull: 0 };
    const truths = setting.truths.map((truth) => counting(truth, setting.catalogue, counts));
    const found = runAll({ ...setting, truths }, known, scenario, new Map([[name, make]]), seeds);
    for (const [one, metrics] of found) figures.set(one, metrics);
    overfull.set(name, counts.sets === 0 ? 0 : counts.overfull / counts.sets);
  }
  say('  idle SMs done');
  const isMeasured = (name: string): boolean => name === oursName || (overfull.get(name) ?? 0) <= mostOverfull;
  const measured: Figures = new Map([...figures].filter(([name]) => isMeasured(name)));
  const named = measured.has(rival) ? rival : bestOther(measured, oursName, 'makespanMs');
  const bounds = boundsOf(prepared, scenario, measured, oursName, ['makespanMs', 'jctMs']);
  const saturation = median(setting.catalogue.map(({ model }) => model.saturation));
  return {
    measurements: [
      ...bounds.map((bound) => figure(`${bound.metric.slice(0, -2)}GainIdle`, bound.gain.interval)),
      ...bounds.map((bound) => ({ name: `${bound.metric.slice(0, -2)}GainIdlePart`, value: partOfOracle(bound) })),
      { name: 'overfullIdle', value: overfull.get(oursName) ?? 0 },
      ...boundMeasurements('idle', bounds),
    ],
    text: [
      `The workloads use ${percent(saturation)} of the SMs in the median.`,
      sourcesTable(setting),
      ...scenarioText(
        `${paperGpus} GPUs, pairs that leave SMs idle, all ${jobs} jobs at the start`,
        figures,
        oursName,
        gainRows(measured, oursName, ['jctMs', 'makespanMs'], named, random),
      ),
      'Part of the sets whose shares sum to more than a GPU; a policy with more than' +
        ` ${mostOverfull * 100} % is extrapolated and sets no bar:`,
      markdownTable(
        ['policy', 'more than a GPU', ''],
        [...overfull].map(([name, part]) => [`\`${name}\``, percent(part), part > mostOverfull ? 'extrapolated' : '']),
      ),
      boundsTable([{ name: 'idle SMs, closed batch', bounds }]),
    ],
  };
}
