// What decisions cost by the number of instances (Dilu, sections 5.2 and 5.3).
import { seededRandom } from '@gpuwhisk/common/system/random';
import { oversubscriptionDefaults } from '@gpuwhisk/gpu/algorithms/dilu/oversubscription';
import { diluScale, diluScaleDefaults } from '@gpuwhisk/gpu/algorithms/dilu/scale';
import { columnsBytes, columnsOver, TokenMachine } from '@gpuwhisk/gpu/tokens/token-machine';
import { ArrivalCounts } from '@gpuwhisk/gpu/view/function-log';
import type { FunctionState, InstanceState } from '@gpuwhisk/gpu/view/view';
import { medianOf, type BenchContext, type Measurement } from '@gpuwhisk/bench/bench';
import { drawnInstances } from '../replay/dilu/instances.js';
import { ledgerPacker } from '../replay/dilu/ledger-packer.js';
import { meanOf } from '@gpuwhisk/bench/statistics';

/** Instances that are there when the next ones are placed, and when the scale stage is asked. */
const counts = [100, 200, 400, 800, 1600, 3200];
/** Placements before each count whose mean is taken. */
const placements = 50;
/** Times that the same set is placed: each placement counts with its least time, which other work on the machine adds to. */
const passes = 5;
/** Length of a period of the token machine, ms (Dilu, section 3.4.1). */
const periodMs = 5;
/** Clients of one device of the token machine. */
const clients = [1, 2, 4, 8, 16, 32];
/** As the agent's (`token-server.ts`). */
const tokenPlaces = 64;
/** Rounds whose median is taken: short ones, as other work on the machine interrupts the long ones. */
const repeats = 101;

/** Microseconds of one call, the median of several rounds of `calls` each. */
function timed(name: string, calls: number, call: () => void): Measurement {
  const us: number[] = [];
  // Warm until the engine has compiled it.
  for (let round = -20; round < repeats; round += 1) {
    const from = performance.now();
    for (let at = 0; at < calls; at += 1) call();
    if (round >= 0) us.push(((performance.now() - from) * 1000) / calls);
  }
  return medianOf(name, us);
}

/** Placements of drawn instances that stay, with the hold of each. */
function placing(seed: number): Measurement[] {
  const most = Math.max(...counts);
  const events = drawnInstances(most, seededRandom(seed), false).filter(({ isStart }) => isStart);
  let least: number[] = [];
  for (let pass = 0; pass < passes; pass += 1) {
    const packer = ledgerPacker({ nodes: 1000, perNode: 4, memoryMiB: 40 * 1024 }, oversubscriptionDefaults);
    for (const event of events) packer.start(event);
    least = packer.us.map((us, at) => Math.min(us, least[at] ?? Infinity));
  }
  return counts.map((count) => ({
    name: `overhead.place.${count}.us`,
    value: meanOf(least.slice(count - placements, count)),
  }));
}

/** A second of the scale stage over functions with an instance each, for each instance. */
function scaling(): Measurement[] {
  return counts.map((count) => {
    const scale = diluScale(diluScaleDefaults);
    const at = 60_000;
    const functions = Array.from({ length: count }, (_, number): FunctionState => {
      const arrivals = new ArrivalCounts();
      for (let second = 0; second < at / 1000; second += 1) arrivals.add(second * 1000);
      const identity = { id: `${number}`, function: `/bench/f${number}`, version: '1', namespace: 'bench' };
      const task = {
        ...identity,
        batch: 1,
        gpus: 1,
        memoryMiB: 0,
        arrivedAt: 0,
        sloMs: 100,
        class: 'inference',
      } as const;
      return { task, arrivals, served: { request: 10, limit: 20 } };
    });
    const instances = functions.map(({ task }, number): InstanceState => ({
      ...{
        id: `i${number}`,
        function: task.function,
        namespace: 'bench',
        gpus: [`g${number}`],
        memoryMiB: 0,
        tasks: [],
      },
      ...{ share: { request: 0.2, limit: 0.4, class: 0.4 }, state: 'idle', idleSince: at - 1000 },
    }));
    const one = timed('', 1, () => scale({ at, waiting: [], functions, instances }));
    const [low, high] = one.spread ?? [one.value, one.value];
    return {
      name: `overhead.scale.${count}.us`,
      value: one.value / count,
      spread: [low / count, high / count] as const,
    };
  });
}

/** A period of the token machine by the clients of a device, all of them busy and every second one with an SLO. */
function ticking(): Measurement[] {
  return clients.flatMap((count) => {
    const columns = columnsOver(new ArrayBuffer(columnsBytes(tokenPlaces)), 0, tokenPlaces);
    const machine = new TokenMachine(columns);
    for (let place = 0; place < count; place += 1) {
      columns.epoch[place] = 1;
      columns.request[place] = 1 / count;
      columns.limit[place] = 1;
      columns.maxTokens[place] = 1000;
      columns.violation[place] = place % 2 === 0 ? 0.2 : 0;
    }
    let tick = 0;
    const us = timed(`overhead.tokens.${count}.us`, 100, () => {
      tick += 1;
      for (let place = 0; place < count; place += 1) {
        columns.used[place] = 100;
        if (tick % 4 !== 0 || place % 2 !== 0) continue;
        columns.cycles[place] = tick;
        columns.cycleMs[place] = 20;
        columns.cycleBatch[place] = 1;
      }
      machine.step();
    });
    return [us, { name: `overhead.tokens.${count}.part`, value: us.value / (periodMs * 1000) }];
  });
}

/**
 * Times of decisions by the number of instances. `overhead.place.N.us`: a placement with its hold, the least of five times, on average over the last
 * 50 before the Nth instance; `overhead.scale.N.us`: a second of the scale stage, for each of N instances; `overhead.tokens.N.us`: a period of
 * the token machine with N clients on one device, and `part`, over the length of a period.
 */
export function diluOverhead({ options, say }: Pick<BenchContext, 'options' | 'say'>): Measurement[] {
  const found = [...placing(options.seed), ...scaling(), ...ticking()];
  for (const { name, value } of found) if (name.endsWith('.us')) say(`  ${name}: ${value.toFixed(2)}`);
  return found;
}
