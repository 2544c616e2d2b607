import { gainOver, meanOf, runAll, type Figures } from '../replay/experiments/compare.js';
import { figure, type Findings } from '../replay/experiments/report.js';
import { arriving, closed, loads, paperGpus, paperJobs, steadyRate } from '../replay/experiments/scenarios.js';
import { markdownTable } from '@gpuwhisk/bench/documents/markdown';
import { intervalText, percent, verdict } from '../replay/experiments/tables.js';
import { readAzureDurations } from '@gpuwhisk/bench/replay/jobs';
import { ours, withTruth, type PolicyMaker, type Scenario, type Setting } from '../replay/setting.js';
import { overloadBase, shortBase } from './faashare-loads.js';
import type { Prepared } from './faashare-parts.js';

const variants = {
  fixed: 'MPS classes: shares stay',
  moved: 'kernel tokens: shares move',
  truth: 'shares move, with the truth',
} as const;
/** Fewer GPUs, so that queues form within a short replay. */
const fewGpus = 4;
const fewJobs = 400;

/**
 * What it gains that shares of running functions move, which kernel tokens allow, over MPS classes, which a process keeps
 * for its life.
 */
export async function moves(prepared: Prepared, folder?: string): Promise<Findings> {
  const { setting, known, length, seeds, random, say } = prepared;
  const tokens: Setting = { ...setting, cluster: { ...setting.cluster, movesShares: true } };
  const batch = closed(paperGpus, paperJobs, length);
  const over = overloadBase(length);
  const few = { ...over, gpus: fewGpus, jobs: paperJobs };
  const short = { ...shortBase(length, await readAzureDurations(folder)), gpus: fewGpus, jobs: fewJobs };
  const at = (scenario: Scenario, load: number): Scenario =>
    arriving(scenario, load, steadyRate(setting, known, scenario));
  const scenarios: readonly [key: string, title: string, Scenario][] = [
    ['full', `${paperGpus} GPUs, load ${loads.full}`, at(batch, loads.full)],
    ['over', `${fewGpus} GPUs, load ${loads.over}, ${paperJobs} jobs`, at(few, loads.over)],
    ['short', `${fewGpus} GPUs, load ${loads.over}, ${fewJobs} jobs of serverless lengths`, at(short, loads.over)],
  ];
  const found: Findings = { measurements: [], text: [] };
  const rows: string[][] = [];
  for (const [key, title, scenario] of scenarios) {
    const run = (name: string, make: PolicyMaker, where = tokens): Figures =>
      runAll(where, known, scenario, new Map([[name, make]]), seeds);
    const figures: Figures = new Map([
      ...run(variants.fixed, ours, setting),
      ...run(variants.moved, ours),
      ...run(variants.truth, withTruth(ours)),
    ]);
    for (const name of figures.keys()) {
      const gain = gainOver(figures, name, variants.fixed, 'jctMs', random);
      rows.push([
        title,
        name,
        (meanOf(figures, name, 'jctMs') / 1000).toPrecision(4),
        percent(meanOf(figures, name, 'violations')),
        ...(name === variants.fixed ? ['', ''] : [intervalText(gain.interval), verdict(gain)]),
      ]);
    }
    const gain = gainOver(figures, variants.moved, variants.fixed, 'jctMs', random);
    const prefix = `moves.${setting.name}.${key}`;
    found.measurements.push(
      figure(`${prefix}.jctGain`, gain.interval),
      { name: `${prefix}.violationsFixed`, value: meanOf(figures, variants.fixed, 'violations') },
      { name: `${prefix}.violationsMoved`, value: meanOf(figures, variants.moved, 'violations') },
    );
    say(`  ${setting.name}: shares that move: ${key} done`);
  }
  found.text.push(
    markdownTable(
      ['scenario', 'shares', 'JCT, s', 'violations', 'JCT lower than with MPS classes by', 'verdict'],
      rows,
    ),
  );
  return found;
}
