import { asMap, asNumber, asText, stringify, type JsonMap } from '../json/json.js';
import { stdout } from '../terminal.js';
import type { Outcome, RunTimes } from './one-run.js';

/** Prints what happens in `gpuwhisk dev`. */
export interface Shown {
  /** A remark about the loop itself. */
  say(text: string): void;
  /** A line of the log of run number `run`. */
  line(run: number, text: string): void;
  /** A run has begun, or ended. */
  began(run: number, name: string): void;
  ended(run: number, name: string, outcome: Outcome, lines: readonly string[]): void;
}

const parts: readonly [keyof RunTimes, string][] = [
  ['read', 'read'],
  ['upload', 'upload'],
  ['wait', 'wait'],
  ['load', 'load'],
  ['run', 'run'],
  ['rest', 'rest'],
];

/** For people. */
export const forPeople: Shown = {
  say: (text) => stdout.print(`${text}\n`),
  line: (_, text) => stdout.print(`${text}\n`),
  began: (_, name) => stdout.print(`${stdout.bold(`${name}:`)}\n`),
  ended(_, name, { ok, result, error, at, ms, start, gpu }) {
    if (ok) stdout.print(`${stringify(result ?? null, 2)}\n`);
    else {
      if (at !== undefined) stdout.print(`${stdout.bold(`${at.file}:${at.line}:`)} `);
      stdout.print(`${error}\n`);
    }
    const times = parts.flatMap(([part, word]) => (ms[part] === undefined ? [] : [`${word} ${rounded(ms[part])}`]));
    const where = times.length === 0 ? '' : ` (${times.join(', ')})`;
    const word = ok ? stdout.ok : 'failed:';
    stdout.print(
      `${word} ${name} in ${rounded(ms.total)} ms${where}${start === undefined ? '' : `, ${start} start`}\n`,
    );
    if (gpu !== undefined) stdout.print(`${gpuText(gpu)}\n`);
    stdout.print('\n');
  },
};

function gpuText(gpu: JsonMap): string {
  const share = `${Math.round(asNumber(gpu.get('share')) * 100)} %`;
  const ms = (name: string, word: string): string[] =>
    gpu.has(name) ? [`${word} ${rounded(asNumber(gpu.get(name)))} ms`] : [];
  const times = [
    ...ms('queueMs', 'queue'),
    ...ms('injectMs', 'inject'),
    ...ms('predictedMs', 'predicted'),
    ...ms('actualMs', 'actual'),
  ];
  return `GPU ${asText(gpu.get('slice') ?? gpu.get('device'))}: share ${share}, ${times.join(', ')}`;
}

const rounded = (ms: number): string => (ms < 10 ? String(Math.round(ms * 10) / 10) : String(Math.round(ms)));

/** A line of JSON for each run, for programs. */
export const forPrograms: Shown = {
  say: () => undefined,
  line: () => undefined,
  began: () => undefined,
  ended(run, name, { ms, at, result, gpu, ...others }, logs) {
    const times = Object.fromEntries(Object.entries(ms).map(([part, value]) => [part, Math.round(value * 10) / 10]));
    const told = {
      ...{ run, name, ...others },
      ...(at && { at: new Map<string, string | number>(Object.entries(at)) }),
      ...(result !== undefined && { result }),
      ...(gpu && { gpu: asMap(gpu) }),
      ...{ logs: [...logs], ms: new Map(Object.entries(times)) },
    };
    stdout.print(`${stringify(new Map(Object.entries(told)))}\n`);
  },
};
