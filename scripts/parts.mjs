// The parts of a build and of a test run, with the time that each takes, for the tables that a run ends with.
import { readFileSync } from 'node:fs';

const parts = [];

/** Parts that have ended, in the order of their begin: `name`, `fromS` (since the process began) and `seconds`. */
export const endedParts = () => [...parts].sort((one, other) => one.fromS - other.fromS);

/** Runs the work, and counts its time as a part of this name. Resolves with its result, and rejects with its error. */
export async function timed(name, work) {
  const fromMs = performance.now();
  try {
    return await work();
  } finally {
    parts.push({ name, fromS: roundS(fromMs), seconds: roundS(performance.now() - fromMs) });
  }
}

const roundS = (ms) => Math.round(ms / 100) / 10;

/** Processor time of this process and its ended children, s; undefined where the kernel does not tell it. */
export function processorS() {
  if (process.platform !== 'linux') return undefined;
  // The name in parentheses may hold spaces. utime, stime, cutime and cstime follow, in hundredths of a second.
  const fields = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return Math.round(ticks / 100);
}

/** Lines of a table whose numbers stand at the right. */
export function tableOf(head, rows) {
  const texts = [head, ...rows].map((row) => row.map((cell) => (typeof cell === 'number' ? cell.toFixed(1) : cell)));
  const widths = head.map((_, at) => Math.max(...texts.map((row) => row[at].length)));
  const isNumber = head.map((_, at) => rows.every((row) => typeof row[at] === 'number'));
  return texts.map((row) =>
    row
      .map((cell, at) => (isNumber[at] ? cell.padStart(widths[at]) : cell.padEnd(widths[at])))
      .join('  ')
      .trimEnd(),
  );
}
