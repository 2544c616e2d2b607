// Times and memory of containers with sets of modules, as other benches and parts have measured them.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { benchDir } from '../machine.js';
import type { Result } from '../report.js';

/** What containers of one set take. */
export interface SetCosts {
  language: 'python' | 'nodejs';
  /** Start of a process without modules, until it takes code, ms. */
  processMs: number;
  /** Start of a function that makes its process and imports its modules, ms. */
  importedMs: number;
  /** Start of a function that meets a process with its modules, ms. */
  metMs: number;
  /** Start of a process with the modules while the set has a template, ms. */
  readyMs: number;
  /** Memory of a process that imported the modules, and of a copy, that it shares with no other one of the set, MiB. */
  plainMiB: number;
  copyMiB: number;
  /** Memory that the set's processes share, MiB: libraries, and copies have the template. */
  plainSharedMiB: number;
  copySharedMiB: number;
  /** Memory limit of the functions, MiB. */
  limitMiB: number;
}

/** Figures by bench and name. */
export type Figures = (bench: string, name: string) => number;

/** Figures of bench/results; those of `measured` go before. Throws Error for one that is missing. */
export async function readFigures(measured: Readonly<Record<string, number>>): Promise<Figures> {
  const read = async (bench: string): Promise<[string, Record<string, number>]> => {
    const text = await readFile(join(benchDir, 'results', `${bench}.json`), 'utf8');
    return [bench, (JSON.parse(text) as Result).metrics];
  };
  const known = new Map(await Promise.all(['real', 'cold', 'inject'].map(read)));
  return (bench, name) => {
    const figure = (bench === 'real' ? measured[name] : undefined) ?? known.get(bench)?.[name];
    if (figure === undefined) throw new Error(`bench ${bench} has no figure '${name}': run it first.`);
    return figure;
  };
}

/** Measured sets that the day's sets are like. */
const alike = [
  { name: 'pythonImage', language: 'python', limitMiB: 256 },
  { name: 'nodejsImage', language: 'nodejs', limitMiB: 256 },
  { name: 'numpy', language: 'python', limitMiB: 512 },
  { name: 'pandas', language: 'python', limitMiB: 512 },
] as const;

/** Costs of so many sets, in equal numbers like each of the measured ones. */
export function costsOf(figures: Figures, count: number): SetCosts[] {
  const costs = alike.map(({ name, language, limitMiB }): SetCosts => {
    const real = (figure: string): number => figures('real', `${figure}.${name}`);
    return {
      language,
      limitMiB,
      processMs: figures('cold', `coldMs.${language}`),
      importedMs: real('realImportedMs'),
      metMs: figures('real', `realColdMs.${name}.other`),
      readyMs: real('readyAgainMs'),
      plainMiB: real('realOwnMiB.plain'),
      copyMiB: real('realOwnMiB.learned'),
      plainSharedMiB: real('realSharedMiB.plain'),
      copySharedMiB: real('realSharedMiB.learned') + real('realTemplateMiB'),
    };
  });
  return Array.from({ length: count }, (_, set) => costs[set % costs.length] as SetCosts);
}

/** Time of a rollback, ms: at most that of ready check, first call and rollback together. */
export function rollbackMsOf(figures: Figures): number {
  return figures('inject', 'pythonMs');
}
