// Plays the starts and ends of a set, and measures what they take.
import { boundsOf, Fleet } from './fleet.js';
import type { Bounds, FleetShape, PackingRule } from './fleet.js';
import type { PackingEvent } from './instances.js';
import type { PackedInstance } from './instances.js';
import { change, noLoad, relaxationBound, wholeBound } from './lower-bound.js';

/** Figures of one packing. */
export interface Packed {
  /** Devices in use, averaged over time, and the most. */
  gpus: number;
  mostGpus: number;
  /**
   * Parts of the devices in use, averaged over time, that no instance asks for: SMs by requests, and memory. An instance that
   * spans several devices counts once.
   */
  smFragments: number;
  memoryFragments: number;
  /** Part of the starts of language models that span several devices. */
  spanned: number;
  /** The least devices by the linear relaxation, and by instances that cannot share a device, averaged over time. */
  bound: number;
  wholeBound: number;
  /** Mean `lagOf` of the training of several devices that is there in the end. */
  lag: number;
  /** Devices in use at the times of `sampleTimes`. */
  usedAt: number[];
}

/** Times at which a set is looked at, evenly from its first to its last event. */
const samples = 100;

function sampleTimes(events: readonly PackingEvent[]): number[] {
  const [from = 0, to = 0] = [events[0]?.atS, events.at(-1)?.atS];
  return Array.from({ length: samples }, (_, at) => from + ((at + 0.5) / samples) * (to - from));
}

/** Devices in use, and where an instance is put; it is told of every start and end. */
export interface Packer {
  /** Number of devices in use. */
  used(): number;
  /** Puts an instance somewhere; gives the number of devices that it is on. Throws Error if it fits nowhere. */
  start(event: PackingEvent): number;
  end(event: PackingEvent): void;
  /** The greatest less the least sum of requests beside the members of an instance that is there, in devices. */
  lagOf(event: PackingEvent): number;
}

/** A packer by a rule, on the bench's own account. */
export function packerOf(shape: FleetShape, rule: PackingRule): Packer {
  const fleet = new Fleet(shape);
  return {
    used: () => fleet.active.size,
    start({ instance }) {
      const parts = rule(fleet, instance);
      if (parts === undefined) throw new Error(`instance ${instance.id} fits on no device`);
      fleet.hold(instance, parts);
      return parts.length;
    },
    end: ({ instance }) => fleet.release(instance),
    lagOf({ instance }) {
      const beside = fleet.partsOf(instance).map(({ device, request }) => device.request - request);
      return (Math.max(...beside) - Math.min(...beside)) / 1000;
    },
  };
}

/** Plays the events of a set. */
export function pack(events: readonly PackingEvent[], packer: Packer, shape: FleetShape, bounds: Bounds): Packed {
  const load = noLoad();
  const within = boundsOf(bounds);
  const sums = { gpuS: 0, requestS: 0, memoryS: 0, boundS: 0, wholeS: 0 };
  const times = sampleTimes(events);
  const usedAt: number[] = [];
  let [mostGpus, llms, spanned] = [0, 0, 0];
  /** Jobs of several devices that are there. */
  const training = new Map<string, PackingEvent>();
  const from = events[0]?.atS ?? 0;
  let now = from;
  for (const event of events) {
    const { atS, isStart, instance } = event;
    if (atS > now) {
      const elapsedS = atS - now;
      sums.gpuS += packer.used() * elapsedS;
      sums.requestS += (load.request / 1000) * elapsedS;
      sums.memoryS += (load.memoryMiB / shape.memoryMiB) * elapsedS;
      sums.boundS += relaxationBound(load, within, shape.memoryMiB) * elapsedS;
      sums.wholeS += wholeBound(load, within, shape.memoryMiB) * elapsedS;
      while ((times[usedAt.length] ?? Infinity) < atS) usedAt.push(packer.used());
      now = atS;
    }
    change(load, instance, isStart ? 1 : -1, shape.memoryMiB);
    if (!isStart) {
      packer.end(event);
      training.delete(instance.id);
      continue;
    }
    const devices = packer.start(event);
    if (instance.kind === 'llm') {
      llms += 1;
      spanned += Number(devices > 1);
    }
    if (instance.kind === 'training' && instance.gpus > 1) training.set(instance.id, event);
    mostGpus = Math.max(mostGpus, packer.used());
  }
  const lags = Array.from(training.values(), (event) => packer.lagOf(event));
  const elapsedS = Math.max(now - from, 1);
  return {
    gpus: sums.gpuS / elapsedS,
    mostGpus,
    smFragments: 1 - sums.requestS / sums.gpuS,
    memoryFragments: 1 - sums.memoryS / sums.gpuS,
    spanned: llms === 0 ? 0 : spanned / llms,
    bound: sums.boundS / elapsedS,
    wholeBound: sums.wholeS / elapsedS,
    usedAt,
    lag: lags.length === 0 ? 0 : lags.reduce((sum, one) => sum + one, 0) / lags.length,
  };
}

/**
 * Devices that a rule needs at the times of `usedAt` if it puts all instances that are there again, those of the most devices
 * and memory first: a packing that may move everything at any time.
 */
export function repacked(events: readonly PackingEvent[], shape: FleetShape, rule: PackingRule): number[] {
  const there = new Map<string, PackedInstance>();
  const times = sampleTimes(events);
  const used: number[] = [];
  for (const { atS, isStart, instance } of events) {
    while ((times[used.length] ?? Infinity) < atS) used.push(devicesRepacked([...there.values()], shape, rule));
    if (isStart) there.set(instance.id, instance);
    else there.delete(instance.id);
  }
  return used;
}

function devicesRepacked(instances: PackedInstance[], shape: FleetShape, rule: PackingRule): number {
  instances.sort(
    (one, other) => other.gpus - one.gpus || other.memoryMiB - one.memoryMiB || other.request - one.request,
  );
  const fleet = new Fleet(shape);
  for (const one of instances) {
    const parts = rule(fleet, one);
    if (parts === undefined) throw new Error(`instance ${one.id} fits on no device`);
    fleet.hold(one, parts);
  }
  return fleet.active.size;
}
