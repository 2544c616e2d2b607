// Figures of the documents that `npm run research -- figures` writes.
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { barsTable, readResults, runsTable, writeFigures } from '@gpuwhisk/bench/documents/figures';
import type { FigureWriter, Results } from '@gpuwhisk/bench/documents/figures';
import type { Metrics } from '@gpuwhisk/bench/documents/markdown';
import { bars } from '../bars.js';
import { resultsDir } from '../results.js';
import { diluPlot, diluPlots } from './dilu-plots.js';
import { diluTable } from './dilu-tables.js';
import { proteanPlot, proteanPlots } from './protean-plots.js';
import { proteanTable } from './protean-tables.js';
import { smorePlot, smorePlots } from './smore-plots.js';
import { smoreTable } from './smore-tables.js';
import { verdictTable } from './verdict-tables.js';
import { contentionTable, worldTable } from './world-tables.js';

/** The replay's tables, as Markdown. */
export function replayTables(): string {
  const file = join(resultsDir, 'faashare.md');
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
}

/** The table under `title` in the replay's tables, without the rows of `leftOut`. Throws Error if there is none. */
export function replayTable(replay: string, title: string, leftOut: string): string {
  const [, after] = replay.split(`**${title}**\n\n`);
  if (after === undefined) throw new Error(`research/results/faashare.md has no table '${title}'.`);
  const [table = ''] = after.split('\n\n');
  return table
    .split('\n')
    .filter((row) => !row.startsWith(`| \`${leftOut}\` |`))
    .join('\n');
}

/** The tables and plots of an experiment, and the conditions of its run. Figures that were not measured say so. */
function textOf(
  name: string,
  { table, plot }: Record<'table' | 'plot', (metrics: Metrics, name: string) => string>,
  notRun = 'Not measured yet.',
): (results: Results, names: readonly string[]) => string {
  return (results, [kind = '', what = '']) => {
    const run = results.runs.get(name);
    if (kind === 'run') return run === undefined ? notRun : runsTable(results, [name]);
    return kind === 'plot' ? plot(run?.metrics, what) : table(run?.metrics, kind);
  };
}

/** The blocks of research. */
export const researchWriter: FigureWriter = {
  program: 'research',
  blocks: {
    smore: textOf('smore', { table: smoreTable, plot: smorePlot }),
    dilu: textOf('dilu', { table: diluTable, plot: diluPlot }),
    protean: textOf(
      'protean',
      { table: proteanTable, plot: proteanPlot },
      '**Pending**: no run of this engine is saved.',
    ),
    world: textOf('world', { table: worldTable, plot: worldTable }, 'Not measured yet.'),
    contention: textOf('contention', { table: contentionTable, plot: contentionTable }),
    verdicts: textOf('verdicts', { table: verdictTable, plot: verdictTable }, 'Not measured yet.'),
    replay: replayTables,
    baselines: (_, names) => replayTable(replayTables(), names.join(' '), 'faashare'),
    runs: runsTable,
    bars: (results) => barsTable(results, bars),
  },
};

/** Writes the figures of the experiments into all documents, and draws their plots beside the results. */
export async function writeResearchFigures(): Promise<void> {
  const { runs } = await readResults();
  const metricsOf = (name: string): Metrics => runs.get(name)?.metrics;
  const plots = [
    ...smorePlots(metricsOf('smore')),
    ...diluPlots(metricsOf('dilu')),
    ...proteanPlots(metricsOf('protean')),
  ];
  for (const [file, svg] of plots) await writeFile(join(resultsDir, file), svg);
  await writeFigures(researchWriter);
}
