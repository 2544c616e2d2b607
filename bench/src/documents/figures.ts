// Writes figures of README.md, GUARANTEES.md and docs from bench/results. docs/benchmarks.md states the two kinds of marks.
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bars, reaches } from '../bars.js';
import { benchDir, repositoryDir } from '../machine.js';
import type { KitReport } from '../gpu-day/report.js';
import type { Result } from '../report.js';
import { markdownTable } from '../replay/experiments/tables.js';
import { besideTable } from './beside-tables.js';
import { diluPlot, diluPlots } from './dilu-plots.js';
import { diluTable } from './dilu-tables.js';
import { floorTable } from './floor-table.js';
import { gpuDayText } from './gpu-day-table.js';
import { neighboursTable } from './neighbours-table.js';
import { profileTable } from './profile-tables.js';
import { proteanPlot, proteanPlots } from './protean-plots.js';
import { proteanTable } from './protean-tables.js';
import { smorePlot, smorePlots } from './smore-plots.js';
import { smoreTable } from './smore-tables.js';

/** Contents of bench/results that documents quote. */
export interface Results {
  /** Results by the name of the bench. */
  runs: ReadonlyMap<string, Result>;
  /** Tables of the replay, as Markdown (bench/results/faashare.md). */
  replay: string;
  /** Runs of the GPU kit on real devices (bench/results/gpu-day-DEVICE.json). */
  gpuDays: readonly KitReport[];
}

const inline = /(<!--= ([a-z]+)\.(\S+?)(?: (\S+))? -->)[^]*?(<!--\/-->)/g;
const block = /^(<!-- figures ([^\n]+?): written by npm run bench -- figures -->\n)[^]*?^(<!-- end of figures -->)$/gm;

/** All results of the repository. */
export async function readResults(): Promise<Results> {
  const folder = join(benchDir, 'results');
  const runs = new Map<string, Result>();
  for (const file of (await readdir(folder)).filter((name) => /^[a-z]+\.json$/.test(name))) {
    const result = JSON.parse(await readFile(join(folder, file), 'utf8')) as Result;
    runs.set(result.bench, result);
  }
  const gpuDays: KitReport[] = [];
  for (const file of (await readdir(folder)).filter((name) => /^gpu-day-.*\.json$/.test(name)).sort()) {
    gpuDays.push(JSON.parse(await readFile(join(folder, file), 'utf8')) as KitReport);
  }
  return { runs, gpuDays, replay: (await readFile(join(folder, 'faashare.md'), 'utf8')).trim() };
}

/** Paths, from the root of the repository, of the documents that may hold figures. */
export async function documentPaths(): Promise<string[]> {
  const docs = (await readdir(join(repositoryDir, 'docs'))).filter((name) => name.endsWith('.md'));
  return ['README.md', 'GUARANTEES.md', ...docs.sort().map((name) => `docs/${name}`)];
}

/**
 * A number as documents show it. Formats: none, four significant digits; `.2`, two decimals; `%1`, a fraction as a
 * percentage with one decimal; `s1`, milliseconds as seconds with one decimal. Throws Error for another format.
 */
export function formatted(value: number, format = ''): string {
  if (format === '') return value.toLocaleString('en-US', { maximumSignificantDigits: 4 });
  const [, kind, decimals] = /^([.%s])(\d)$/.exec(format) ?? [];
  if (kind === undefined) throw new Error(`There is no format '${format}'.`);
  const scaled = kind === '%' ? value * 100 : kind === 's' ? value / 1000 : value;
  // Removes the minus sign of a rounded zero.
  const text = scaled.toFixed(Number(decimals)).replace(/^-(0(?:\.0+)?)$/, '$1');
  return kind === '%' ? `${text} %` : text;
}

/** A metric of a bench; of a name that ends with `.*`, the largest of those that begin so. */
function metricOf({ runs }: Results, bench: string, metric: string): number {
  const metrics = runs.get(bench)?.metrics ?? {};
  const begun = metric.endsWith('.*') ? metric.slice(0, -1) : undefined;
  const found = Object.entries(metrics).filter(([name]) => begun !== undefined && name.startsWith(begun));
  const value = found.length > 0 ? Math.max(...found.map(([, each]) => each)) : metrics[metric];
  if (value === undefined) throw new Error(`bench/results/${bench}.json has no metric '${metric}'.`);
  return value;
}

function runsTable({ runs }: Results, names: readonly string[]): string {
  const rows = names.map((name) => {
    const result = runs.get(name);
    if (!result) throw new Error(`There is no bench/results/${name}.json.`);
    const { date, commit, machine, simulated, command } = result;
    const dirty = commit.endsWith('-dirty') ? ' with changes' : '';
    const on = `${machine.cores} cores, ${machine.model}, Node.js ${machine.node.slice(1)}`;
    return [
      `\`${name}\``,
      date,
      `\`${commit.slice(0, 7)}\`${dirty}`,
      simulated ? `${on}; simulated GPUs` : on,
      `\`${command}\``,
    ];
  });
  return markdownTable(['bench', 'date', 'commit', 'machine', 'command'], rows);
}

function barsTable(results: Results): string {
  const rows = bars.flatMap((bar) => {
    const value = results.runs.get(bar.bench)?.metrics[bar.metric];
    const isPending = value === undefined || bar.isPending === true;
    const measured = isPending ? 'not measured' : formatted(value);
    const verdict = isPending ? 'pending' : reaches(bar, value) ? 'reached' : 'missed';
    return [[`\`${bar.bench}\``, `\`${bar.metric}\``, measured, `${bar.bound} ${formatted(bar.value)}`, verdict]];
  });
  return markdownTable(['bench', 'figure', 'measured', 'bar', 'verdict'], rows);
}

/** The table under `title` in the replay's tables, without the rows of `leftOut`. */
function replayTable({ replay }: Results, title: string, leftOut: string): string {
  const [, after] = replay.split(`**${title}**\n\n`);
  if (after === undefined) throw new Error(`bench/results/faashare.md has no table '${title}'.`);
  const [table = ''] = after.split('\n\n');
  return table
    .split('\n')
    .filter((row) => !row.startsWith(`| \`${leftOut}\` |`))
    .join('\n');
}

/** A table or plot of bench smore, or the conditions of its run. Figures that were not measured say so. */
function smoreText(results: Results, [kind = '', name = '']: readonly string[]): string {
  const run = results.runs.get('smore');
  if (kind === 'run') return run === undefined ? 'Not measured yet.' : runsTable(results, ['smore']);
  return kind === 'plot' ? smorePlot(run?.metrics, name) : smoreTable(run?.metrics, kind);
}

/** A table or plot of bench dilu, or the conditions of its run. Figures that were not measured say so. */
function diluText(results: Results, [kind = '', name = '']: readonly string[]): string {
  const run = results.runs.get('dilu');
  if (kind === 'run') return run === undefined ? 'Not measured yet.' : runsTable(results, ['dilu']);
  return kind === 'plot' ? diluPlot(run?.metrics, name) : diluTable(run?.metrics, kind);
}

const pending = '**Pending**: no run of this engine is saved.';

/** A table or plot of bench protean, or the conditions of its run. Figures that were not measured say so. */
function proteanText(results: Results, [kind = '', name = '']: readonly string[]): string {
  const run = results.runs.get('protean');
  if (kind === 'run') return run === undefined ? pending : runsTable(results, ['protean']);
  return kind === 'plot' ? proteanPlot(run?.metrics, name) : proteanTable(run?.metrics, kind);
}

function blockText(results: Results, name: string): string {
  const [kind, ...names] = name.split(' ');
  if (kind === 'smore') return smoreText(results, names);
  if (kind === 'dilu') return diluText(results, names);
  if (kind === 'protean') return proteanText(results, names);
  if (kind === 'beside') return besideTable(results.runs.get('beside')?.metrics);
  if (kind === 'gpu-day') return gpuDayText(results.gpuDays, names.join(' '));
  if (kind === 'floor') return floorTable(results.runs);
  if (kind === 'neighbours') return neighboursTable(results.runs.get('neighbours')?.metrics);
  if (kind === 'profile') return profileTable(results.runs.get('profile')?.metrics, names.join(' '));
  if (kind === 'runs') return runsTable(results, names);
  if (kind === 'bars') return barsTable(results);
  if (kind === 'replay') return results.replay;
  if (kind === 'baselines') return replayTable(results, names.join(' '), 'faashare');
  throw new Error(`There is no block of figures '${name}'.`);
}

/** The document with all figures from `results`. Throws Error if a mark names an unknown metric, format or block. */
export function withFigures(document: string, results: Results): string {
  return document
    .replace(block, (_, begin: string, name: string, end: string) => `${begin}\n${blockText(results, name)}\n\n${end}`)
    .replace(
      inline,
      (_, begin: string, bench: string, metric: string, format: string | undefined, end: string) =>
        `${begin}${formatted(metricOf(results, bench, metric), format)}${end}`,
    );
}

/** Writes the figures of bench/results into all documents, and draws the plots of benches beside the results. */
export async function writeFigures(): Promise<void> {
  const results = await readResults();
  const metricsOf = (bench: string): Result['metrics'] | undefined => results.runs.get(bench)?.metrics;
  const plots = [
    ...smorePlots(metricsOf('smore')),
    ...diluPlots(metricsOf('dilu')),
    ...proteanPlots(metricsOf('protean')),
  ];
  for (const [file, svg] of plots) {
    await writeFile(join(benchDir, 'results', file), svg);
  }
  for (const path of await documentPaths()) {
    const file = join(repositoryDir, path);
    const before = await readFile(file, 'utf8');
    const after = withFigures(before, results);
    if (after !== before) await writeFile(file, after);
  }
}
