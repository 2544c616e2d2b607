import { parseArgs } from 'node:util';
import { BrokenPromiseError, playHistory } from './history.js';
import type { HistoryCounts } from './history-counts.js';
import { plantedBugs } from './planted-bugs.js';

/*
 * node test/dist/simulation/run.js --seed N [--trace]    plays one history; prints its events if it fails, or always
 * node test/dist/simulation/run.js --seeds N [--from M]  plays the histories M, M + 1, ...; stops at a broken promise
 * --planted NAME                                         plants a bug first
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string', default: '200' },
    from: { type: 'string', default: '0' },
    planted: { type: 'string' },
    trace: { type: 'boolean', default: false },
  },
});

const bug = values.planted === undefined ? {} : plantedBugs[values.planted];
if (bug === undefined) {
  console.error(`There is no planted bug '${values.planted}': ${Object.keys(plantedBugs).join(', ')}`);
  process.exit(2);
}
const first = Number(values.seed ?? values.from);
const count = values.seed === undefined ? Number(values.seeds) : 1;

/** Prints a failure of one seed, with the command that repeats it, and ends the process. */
async function report(seed: number, reason: string, trace: readonly string[] = []): Promise<never> {
  const planted = values.planted === undefined ? '' : ` --planted ${values.planted}`;
  const lines = [
    ...(values.seed !== undefined || values.trace ? trace : []),
    `seed ${seed} failed: ${reason}`,
    `again: node test/dist/simulation/run.js --seed ${seed}${planted}`,
  ];
  // process.exit would cut output that a pipe has not taken yet.
  await new Promise((written) => process.stdout.write(`${lines.join('\n')}\n`, written));
  process.exit(1);
}

let seed = first;
process.on('unhandledRejection', (reason) => {
  void report(seed, `unhandled rejection: ${reason instanceof Error ? reason.stack : String(reason)}`);
});

const totals: Partial<HistoryCounts> = {};
const startedMs = performance.now();
for (; seed < first + count; seed++) {
  try {
    const { counts, trace } = await playHistory(seed, bug);
    if (values.trace) for (const line of trace) console.log(line);
    for (const [name, value] of Object.entries(counts) as [keyof HistoryCounts, number][]) {
      totals[name] = (totals[name] ?? 0) + value;
    }
  } catch (error) {
    if (error instanceof BrokenPromiseError) await report(seed, error.message, error.trace);
    await report(seed, error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
}
const seconds = (performance.now() - startedMs) / 1000;
console.log(JSON.stringify({ seeds: count, seedsPerSecond: Math.round((count / seconds) * 10) / 10, ...totals }));
