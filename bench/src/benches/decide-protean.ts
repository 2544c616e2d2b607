/* eslint-disable @typescript-eslint/no-non-null-assertion -- indices are below the lengths of non-empty arrays */
import type { Device, DeviceStatus, NodeStatus, Slice } from '@gpuwhisk/common/gpu';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import type { Random } from '@gpuwhisk/common/system/random';
import { proteanOrder, proteanOrderDefaults } from '@gpuwhisk/gpu/algorithms/protean/order';
import { requestOfTask } from '@gpuwhisk/gpu/view/requests';
import { byTags, proteanPlaceDefaults } from '@gpuwhisk/gpu/algorithms/protean/place';
import { SliceSlowdowns } from '@gpuwhisk/gpu/algorithms/protean/slowdowns';
import { Ledger } from '@gpuwhisk/gpu/ledger/ledger';
import type { Task } from '@gpuwhisk/gpu/view/view';
import { medianOf } from '../bench.js';
import type { Measurement } from '../bench.js';
import { percentile } from '../statistics.js';

const devices = 8;
const slicesPerDevice = 7;
const functionCount = 20;
const tasksPerPass = 16;
const [warmUps, passes] = [500, 2000];
/** Runs that end before each pass. */
const endsPerPass = 12;
const batch = 8;
const queued = 1000;
const [orderWarmUps, orders] = [50, 300];

const typeOf = (profile: string): string => `a100-40:${profile}`;
const profile = '1g.5gb';

/** A node of eight devices, each cut into the seven slices of the smallest profile. */
function rowOf(): NodeStatus {
  const cut = Array.from({ length: devices }, (_, index): Device => {
    const uuid = `GPU-${index}`;
    const slices = Array.from({ length: slicesPerDevice }, (__, at): Slice => ({
      ...{ uuid: `${uuid}/${at}`, profile, startSlot: at, slots: 1, smCount: 14, memoryMiB: 4864 },
    }));
    const known = { name: 'NVIDIA A100-SXM4-40GB', type: 'a100-40', smCount: 108, memoryMiB: 40_960 };
    return { uuid, index, ...known, mode: 'mig', slices, simulated: true };
  });
  const status = cut.map(({ uuid }): DeviceStatus => ({
    ...{ uuid, at: 0, usedMemoryMiB: 0, processes: [] },
    health: { state: 'healthy', reasons: [] },
  }));
  return { invoker: 'invoker0', version: 1, at: 0, devices: cut, status, residents: [] };
}

/** What runs alone and beside others have taught of all functions. */
function learned(random: Random): SliceSlowdowns {
  const slowdowns = new SliceSlowdowns();
  const needs = Array.from({ length: functionCount }, () => 0.2 + 0.6 * randomFraction(random));
  const gpu = { gpuType: typeOf(profile), mode: 'mig' } as const;
  const taskOf = (number: number): Pick<Task, 'function' | 'version' | 'arrivedAt'> => {
    return { function: `/n/f${number}`, version: '1', arrivedAt: 0 };
  };
  for (let number = 0; number < functionCount; number += 1) {
    slowdowns.ran({ task: taskOf(number), gpu, ranMs: 100, beside: [] });
  }
  for (let run = 0; run < 2000; run += 1) {
    const [one, other] = [random.uint32() % functionCount, random.uint32() % functionCount];
    const ranMs = 100 * Math.max(1, needs[one]! + needs[other]!);
    slowdowns.ran({ task: taskOf(one), gpu, ranMs, beside: [{ task: taskOf(other), part: 1 }] });
  }
  if (slowdowns.bandwidthsOn(gpu)?.isProven !== true) throw new Error('the bandwidths were not learned');
  return slowdowns;
}

function taskOf(random: Random, id: string, at: number): Task {
  const number = random.uint32() % functionCount;
  return {
    ...{ id, function: `/n/f${number}`, version: '1', namespace: 'n', batch, gpus: 1, class: 'inference' },
    ...{ memoryMiB: 1500 + (number % 5) * 500, arrivedAt: at, soloMs: 100, startMs: 1000 },
    ...(random.uint32() % 2 === 0 && { sloMs: 2000 }),
  };
}

/** Microseconds of a placement in the ledger, the tags of its pass in equal parts included. */
function placements(slowdowns: SliceSlowdowns, random: Random): number[] {
  const ledger = new Ledger();
  ledger.heard(rowOf(), 0);
  const stage = byTags(slowdowns, proteanPlaceDefaults);
  const limits = { kept: new Set<string>(), isOpen: () => true };
  const running: string[] = [];
  const us: number[] = [];
  let placed = 0;
  for (let pass = 0; pass < warmUps + passes; pass += 1) {
    for (let end = 0; end < endsPerPass && running.length > 0; end += 1) {
      const at = random.uint32() % running.length;
      ledger.release(running[at]!);
      running[at] = running.at(-1)!;
      running.pop();
    }
    const tasks = Array.from({ length: tasksPerPass }, (_, at) => taskOf(random, `t${pass}.${at}`, pass));
    tasks.sort((one, other) => Number(one.sloMs === undefined) - Number(other.sloMs === undefined));
    const requests = tasks.map(requestOfTask);
    const turns = tasks.map((task) => ({ task }));
    const from = performance.now();
    const open = { ledger, isOpen: limits.isOpen, epoch: 1 };
    const placeIn = stage.begin({ at: pass, ledger: open, runs: () => undefined }, turns);
    for (const [at, request] of requests.entries()) {
      const { placement } = placeIn(request, limits, { epoch: 1, at: pass }, tasks[at]!);
      if (placement === undefined) continue;
      const { action, namespace, isolation } = request;
      const activationId = tasks[at]!.id;
      ledger.hold({ activationId, action, namespace, isolation, placement, ended: false }, Infinity);
      running.push(activationId);
      placed += 1;
    }
    if (pass >= warmUps) us.push(((performance.now() - from) * 1000) / tasksPerPass);
  }
  if (placed < passes) throw new Error('too little was placed');
  return us;
}

/** Microseconds for each request of a queue that is put in order and into batches. */
function orderings(slowdowns: SliceSlowdowns, random: Random): number[] {
  const order = proteanOrder(slowdowns, proteanOrderDefaults);
  const ledger = new Ledger();
  const us: number[] = [];
  for (let pass = 0; pass < orderWarmUps + orders; pass += 1) {
    const tasks = Array.from({ length: queued }, (_, at): Task => {
      const task = taskOf(random, `t${at}`, at);
      return { ...task, request: { ...requestOfTask(task), batch, subject: 's' } };
    });
    const from = performance.now();
    const turns = order(tasks, queued, undefined, ledger);
    if (pass >= orderWarmUps) us.push(((performance.now() - from) * 1000) / queued);
    const requests = turns.reduce((sum, turn) => sum + 1 + (turn.batch?.others.length ?? 0), 0);
    if (requests !== queued) throw new Error('requests were lost');
  }
  return us;
}

/**
 * PROTEAN's decisions: `proteanPlaceUs`, a placement on 8 devices of 7 slices, half of the tasks strict, in passes of 16; and
 * `proteanOrderUs`, the order and the batches of 1,000 requests, for each request.
 */
export function proteanDecisions(say: (line: string) => void): Measurement[] {
  const slowdowns = learned(seededRandom(5));
  const placeUs = placements(slowdowns, seededRandom(6));
  const orderUs = orderings(slowdowns, seededRandom(7));
  const [place, order] = [medianOf('proteanPlaceUs', placeUs), medianOf('proteanOrderUs', orderUs)];
  say(
    `  PROTEAN: ${place.value.toFixed(1)} µs a placement, ${order.value.toFixed(2)} µs a request for order and batches`,
  );
  return [place, { name: 'proteanPlaceP99Us', value: percentile(placeUs, 99) }, order];
}
