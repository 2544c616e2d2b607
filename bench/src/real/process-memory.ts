// Memory of processes with the same modules side by side.
import { setTimeout as sleep } from 'node:timers/promises';
import { meanOf } from '../statistics.js';
import type { Functions } from './functions.js';

/** Memory of ten processes with the same modules, MiB. */
export interface MemoryOfTen {
  /** Pages of one process that no other one has, in the mean. */
  ownMiB: number;
  /** The other pages of one process, at most. */
  sharedMiB: number;
}

const count = 10;
/** Time in which all functions have to begin, s. */
const withinS = 40;
const readyTimeoutMs = 3000;

/**
 * Starts ten functions, one after the other, and has them read their memory at the same time. `learns`: each waits for a process with its
 * modules. Throws Error if they have not all begun by then.
 */
export async function memoryOfTen({ make, start, ready }: Functions, learns: boolean): Promise<MemoryOfTen> {
  const untilS = Date.now() / 1000 + withinS;
  const calls: Promise<number[]>[] = [];
  for (let index = 0; index < count; index++) {
    const action = await make();
    const untilMs = performance.now() + readyTimeoutMs;
    while (learns && performance.now() < untilMs && (await ready()) === 0) await sleep(20);
    calls.push(start(action, { untilS }).then(({ result }) => sizesOf(String(result['memory']))));
    await sleep(1000);
  }
  if (Date.now() / 1000 > untilS) throw new Error(`ten functions did not begin within ${withinS} s`);
  const all = await Promise.all(calls);
  return {
    ownMiB: meanOf(all.map(([ownMiB = NaN]) => ownMiB)),
    sharedMiB: Math.max(...all.map(([, sharedMiB = NaN]) => sharedMiB)),
  };
}

/** Own and shared pages by `/proc/PID/smaps_rollup`, MiB. */
function sizesOf(rollup: string): [number, number] {
  const of = (name: string): number => {
    const [, kiB] = new RegExp(`^${name}: +(\\d+) kB$`, 'm').exec(rollup) ?? [];
    if (kiB === undefined) throw new Error(`a function read no ${name} of its memory: ${rollup.slice(0, 200)}`);
    return Number(kiB) / 1024;
  };
  return [of('Private_Clean') + of('Private_Dirty'), of('Shared_Clean') + of('Shared_Dirty')];
}
