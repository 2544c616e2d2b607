// A day of Azure's calls: seconds waited for starts, beside keep-alive with the same memory × time.
import { join } from 'node:path';
import { medianOf, type BenchContext, type Measurement } from '../bench.js';
import { dayMs, drawDay, readAzureData } from '../azure-day/arrivals.js';
import { costsOf, readFigures, rollbackMsOf } from '../azure-day/costs.js';
import { bestKeepAlive, type DayUse } from '../azure-day/keep-alive.js';
import { runPoolDay, type PoolDay } from '../azure-day/pool-day.js';

const functionCount = 200;
const setCount = 12;
/** Days, with the given seed and those after it. */
const days = 3;
/** Pools of machines of 64 and 24 GiB: 0.6 of it (server/src/node/invoker-node.ts). */
const [largePoolMiB, smallPoolMiB] = [39_321, 14_745];
/** A pool that keeps containers until others need the memory, and nothing else. */
const keepsOnly = {
  learns: false,
  settings: { idleContainerMs: dayMs, stemCells: [], stemCellsOnDemand: false, reusesLearned: false },
};

/** The use of a day by the pool and by its rival. */
interface Played {
  pool: DayUse;
  rival: DayUse & { keptMs?: number };
}

/** Plays the days. `measured`: figures of this run, which go before those of bench/results. Throws BenchDataError. */
export async function azureDay(
  { options, temporaryDir, say }: BenchContext,
  measured: readonly Measurement[],
): Promise<Measurement[]> {
  const data = await readAzureData();
  const figures = await readFigures(Object.fromEntries(measured.map(({ name, value }) => [name, value])));
  const costs = costsOf(figures, setCount);
  const rest = { costs, rollbackMs: rollbackMsOf(figures), learns: true };
  const played: Record<string, Played[]> = { '': [], '.4namespaces': [], '.24GiB': [] };
  for (let seed = options.seed; seed < options.seed + days; seed++) {
    const functions = drawDay(data, functionCount, setCount, seed);
    const folder = join(temporaryDir, `day-${seed}`);
    const play = (namespaces: number, memoryMiB: number, more: Partial<PoolDay> = {}) =>
      runPoolDay({ functions, ...rest, namespaces, memoryMiB, folder, ...more });
    const beside = (pool: DayUse): Played => ({ pool, rival: bestKeepAlive(functions, costs, pool.gibS) });
    played['']?.push(beside(await play(1, largePoolMiB)));
    played['.4namespaces']?.push(beside(await play(4, largePoolMiB)));
    played['.24GiB']?.push({ pool: await play(1, smallPoolMiB), rival: await play(1, smallPoolMiB, keepsOnly) });
    say(`  day ${seed - options.seed + 1} of ${days} done`);
  }
  return Object.entries(played).flatMap(([suffix, all]) => figuresOf(suffix, all));
}

function figuresOf(suffix: string, all: readonly Played[]): Measurement[] {
  const median = (name: string, of: (day: Played) => number): Measurement => medianOf(`${name}${suffix}`, all.map(of));
  const kept = all.flatMap(({ rival }) => rival.keptMs ?? []);
  return [
    median('realWaitedOverKeepAlive', ({ pool, rival }) => pool.waitedS / rival.waitedS),
    median('realDayWaitedS.pool', ({ pool }) => pool.waitedS),
    median('realDayWaitedS.keepAlive', ({ rival }) => rival.waitedS),
    median('realDayGiBHours.pool', ({ pool }) => pool.gibS / 3600),
    median('realDayGiBHours.keepAlive', ({ rival }) => rival.gibS / 3600),
    ...(kept.length > 0
      ? [
          medianOf(
            `realDayKeptS${suffix}`,
            kept.map((ms) => ms / 1000),
          ),
        ]
      : []),
  ];
}
