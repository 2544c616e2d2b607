// Writes figures of README.md, GUARANTEES.md and docs from results. docs/benchmarks.md states the two kinds of marks.
import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bars, reaches } from '../bars.js';
import type { Bar } from '../bars.js';
import { repositoryDir } from '../machine.js';
import type { KitReport } from '../gpu-day/report.js';
import type { Result } from '../report.js';
import { besideTable } from './beside-tables.js';
import { floorTable } from './floor-table.js';
import { gpuDayText } from './gpu-day-table.js';
import { markdownTable } from './markdown.js';
import { neighboursTable } from './neighbours-table.js';
import { profileTable } from './profile-tables.js';

/** Results that documents quote. */
export interface Results {
  /** Results by the name of the bench. */
  runs: ReadonlyMap<string, Result>;
  /** Runs of the GPU kit on real devices (bench/results/gpu-day-DEVICE.json). */
  gpuDays: readonly KitReport[];
}

/** Texts of blocks by the first word of their name; `names`: the words after it. */
export type Blocks = Readonly<Record<string, (results: Results, names: readonly string[]) => string>>;

/** A program that writes figures: its script in package.json, and the blocks that are its own. */
export interface FigureWriter {
  program: string;
  blocks: Blocks;
}

const inline = /(<!--= ([a-z]+)\.(\S+?)(?: (\S+))? -->)[^]*?(<!--\/-->)/g;

/** All results of the repository, those of research included. */
export async function readResults(): Promise<Results> {
  const runs = new Map<string, Result>();
  const gpuDays: KitReport[] = [];
  for (const folder of ['bench/results', 'research/results'].map((path) => join(repositoryDir, path))) {
    if (!existsSync(folder)) continue;
    for (const file of (await readdir(folder)).filter((name) => name.endsWith('.json')).sort()) {
      const text = await readFile(join(folder, file), 'utf8');
      if (file.startsWith('gpu-day-')) gpuDays.push(JSON.parse(text) as KitReport);
      if (!/^[a-z]+\.json$/.test(file)) continue;
      const result = JSON.parse(text) as Result;
      runs.set(result.bench, result);
    }
  }
  return { runs, gpuDays };
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
  if (value === undefined) throw new Error(`${bench}.json has no metric '${metric}'.`);
  return value;
}

/** The conditions of the runs of benches. Throws Error if one has not run. */
export function runsTable({ runs }: Results, names: readonly string[]): string {
  const rows = names.map((name) => {
    const result = runs.get(name);
    if (!result) throw new Error(`There is no result of '${name}'.`);
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

/** What was measured for bars, and which are reached. */
export function barsTable(results: Results, bars: readonly Bar[]): string {
  const rows = bars.flatMap((bar) => {
    const value = results.runs.get(bar.bench)?.metrics[bar.metric];
    const isPending = value === undefined || bar.isPending === true;
    const measured = isPending ? 'not measured' : formatted(value);
    const verdict = isPending ? 'pending' : reaches(bar, value) ? 'reached' : 'missed';
    return [[`\`${bar.bench}\``, `\`${bar.metric}\``, measured, `${bar.bound} ${formatted(bar.value)}`, verdict]];
  });
  return markdownTable(['bench', 'figure', 'measured', 'bar', 'verdict'], rows);
}

const benchWriter: FigureWriter = {
  program: 'bench',
  blocks: {
    beside: ({ runs }) => besideTable(runs.get('beside')?.metrics),
    'gpu-day': ({ gpuDays }, names) => gpuDayText(gpuDays, names.join(' ')),
    floor: ({ runs }) => floorTable(runs),
    neighbours: ({ runs }) => neighboursTable(runs.get('neighbours')?.metrics),
    profile: ({ runs }, names) => profileTable(runs.get('profile')?.metrics, names.join(' ')),
    runs: runsTable,
    bars: (results) => barsTable(results, bars),
  },
};

/**
 * The document with figures from `results`: those within lines, and the blocks that the writer's marks name. Throws Error if
 * a mark names an unknown metric, format or block.
 */
export function withFigures(
  document: string,
  results: Results,
  { program, blocks }: FigureWriter = benchWriter,
): string {
  const block = new RegExp(
    `^(<!-- figures ([^\\n]+?): written by npm run ${program} -- figures -->\\n)[^]*?^(<!-- end of figures -->)$`,
    'gm',
  );
  return document
    .replace(block, (_, begin: string, name: string, end: string) => {
      const [kind = '', ...names] = name.split(' ');
      const text = Object.hasOwn(blocks, kind) ? blocks[kind]?.(results, names) : undefined;
      if (text === undefined) throw new Error(`There is no block of figures '${name}'.`);
      return `${begin}\n${text}\n\n${end}`;
    })
    .replace(
      inline,
      (_, begin: string, bench: string, metric: string, format: string | undefined, end: string) =>
        `${begin}${formatted(metricOf(results, bench, metric), format)}${end}`,
    );
}

/** Writes the figures of a program's marks into all documents. */
export async function writeFigures(writer: FigureWriter): Promise<void> {
  const results = await readResults();
  for (const path of await documentPaths()) {
    const file = join(repositoryDir, path);
    const before = await readFile(file, 'utf8');
    const after = withFigures(before, results, writer);
    if (after !== before) await writeFile(file, after);
  }
}

/** Writes the figures of `npm run bench`. */
export async function writeBenchFigures(): Promise<void> {
  await writeFigures(benchWriter);
}
