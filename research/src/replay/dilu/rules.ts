// Rules of others, and the platform's by an exhaustive search: each looks at all devices for each instance.
import type { PackedInstance } from './instances.js';
import type { Bounds, Fleet, PackedDevice, PackingRule, Part } from './fleet.js';

/** A device each of its own for every part of an instance, of one node. */
export const exclusive: PackingRule = (fleet, { gpus, request, limit, memoryMiB }) => {
  const free = new Map<number, PackedDevice[]>();
  for (const device of fleet.closed) {
    const there = free.get(device.node) ?? [];
    free.set(device.node, there);
    there.push(device);
    if (there.length === gpus) return there.map((one) => ({ device: one, request, limit, memoryMiB }));
  }
  return undefined;
};

/** The demand by which a rule of INFless counts, as request and limit. */
type Counted = 'request' | 'limit';

/**
 * INFless with one static share (section 5.1): best fit by the SMs that are left, of active devices, else a new one; memory
 * is only a bound. `limit` is the variant INFless-l, `request` INFless-r. An instance of several devices takes the first node
 * whose active devices suffice, else the first whose active and new devices do.
 */
export function infless(counted: Counted): PackingRule {
  return (fleet, instance) => {
    const share = instance[counted];
    const bounds = { omega: 1000, gamma: Infinity };
    const static_: PackedInstance = { ...instance, request: share, limit: share };
    if (instance.gpus > 1) return firstNode(fleet, static_, bounds);
    const score = (device: PackedDevice): number => device.request + share;
    return bestOne(fleet, static_, bounds, score);
  };
}

/** Weights of SMs and memory in the score of Dilu's released code. */
const literalWeights = { sm: 0.6, memory: 0.4 };

/**
 * The choice of Dilu's released code: best fit by 0.6 of the SMs and 0.4 of the memory that are left. Instances of several
 * devices take the first node whose active devices suffice, else the first whose active and new devices do. A language model
 * that fits no active device spreads over the active devices of the first node whose free memory suffices, those with
 * the least free memory first, with its request as limit on each. Affinity is to training only, and for plain inference.
 * The account of limits is right here: the code takes off more at an end than it put on at a spread start.
 */
export function diluLiteral(bounds: Bounds): PackingRule {
  return (fleet, instance) => {
    if (instance.gpus > 1) return firstNode(fleet, instance, bounds);
    const score = scoreBy(fleet, instance, literalWeights.sm, literalWeights.memory);
    if (instance.kind !== 'llm') {
      const affine = besideTraining(fleet, instance);
      const best = bestOf(fleet, affine, instance, bounds, score);
      return best === undefined ? bestOne(fleet, instance, bounds, score) : [partOn(best, instance)];
    }
    const best = bestOf(fleet, fleet.active, instance, bounds, score);
    if (best !== undefined) return [partOn(best, instance)];
    return spread(fleet, instance, bounds) ?? opened(fleet, instance, fleet.closed);
  };
}

/** Parts of our rule that can be switched off. */
export interface RuleParts {
  /** Principle 2: SMs and memory count alike, and language models may span fragments; else SMs alone count. */
  complementarity: boolean;
  /** Principle 1. */
  affinity: boolean;
  /** Devices that a language model may span, at most; 1: it spans none. */
  spans: number;
  /** Weight of the SMs in the score, in tenths of one (α); the rest is that of memory. Absent: a half. */
  alpha?: number;
}

/** The platform's rule (gpu/src/algorithms/dilu/place.ts), by looking at all devices. */
export function ours(bounds: Bounds, { complementarity, affinity, spans, alpha = 0.5 }: RuleParts): PackingRule {
  return (fleet, instance) => {
    const score = scoreBy(fleet, instance, alpha, complementarity ? 1 - alpha : 0);
    const affine = affinity ? affineTo(fleet, instance) : new Set<PackedDevice>();
    if (instance.gpus > 1) return bestNode(fleet, instance, bounds, score, affine);
    const near = bestOf(fleet, affine, instance, bounds, score);
    if (near !== undefined) return [partOn(near, instance)];
    const best = bestOf(fleet, fleet.active, instance, bounds, score);
    if (best !== undefined) return [partOn(best, instance)];
    const isSpread = complementarity && spans > 1 && instance.kind === 'llm';
    const fewest = isSpread ? fewestFragments(fleet, instance, bounds, spans) : undefined;
    return fewest ?? opened(fleet, instance, fleet.devices);
  };
}

function partOn(device: PackedDevice, { request, limit, memoryMiB }: PackedInstance): Part {
  return { device, request, limit, memoryMiB };
}

function hasShares(device: PackedDevice, { request, limit }: PackedInstance, { omega, gamma }: Bounds): boolean {
  if (device.instances.size === 0) return true;
  return device.request + request <= omega && device.limit + limit <= gamma;
}

type Score = (device: PackedDevice) => number;

/** What is given away with the instance there; integers, so that ties are ties. */
function scoreBy(fleet: Fleet, { request, memoryMiB }: PackedInstance, sm: number, memory: number): Score {
  const { memoryMiB: capacity } = fleet.shape;
  return (device) =>
    Math.round(sm * 10) * (device.request + request) * capacity +
    Math.round(memory * 10) * 1000 * (device.memoryMiB + memoryMiB);
}

/** The devices that can take an instance. */
function* able(
  fleet: Fleet,
  devices: Iterable<PackedDevice>,
  instance: PackedInstance,
  bounds: Bounds,
): Iterable<PackedDevice> {
  for (const device of devices) {
    if (fleet.hasMemory(device, instance.memoryMiB) && hasShares(device, instance, bounds)) yield device;
  }
}

/** The one with the best score; of equal ones the one listed first in the cluster. */
function bestOf(
  fleet: Fleet,
  devices: Iterable<PackedDevice>,
  instance: PackedInstance,
  bounds: Bounds,
  score: Score,
): PackedDevice | undefined {
  let best: { device: PackedDevice; score: number } | undefined;
  for (const device of able(fleet, devices, instance, bounds)) {
    const its = score(device);
    if (best === undefined || its > best.score || (its === best.score && device.id < best.device.id)) {
      best = { device, score: its };
    }
  }
  return best?.device;
}

/** The best active device, else the first closed one. */
function bestOne(fleet: Fleet, instance: PackedInstance, bounds: Bounds, score: Score): Part[] | undefined {
  const best = bestOf(fleet, fleet.active, instance, bounds, score);
  return best === undefined ? opened(fleet, instance, fleet.closed) : [partOn(best, instance)];
}

/** The first of `devices` without instances. */
function opened(fleet: Fleet, instance: PackedInstance, devices: Iterable<PackedDevice>): Part[] | undefined {
  for (const device of devices) {
    if (device.instances.size > 0) continue;
    return fleet.hasMemory(device, instance.memoryMiB) ? [partOn(device, instance)] : undefined;
  }
  return undefined;
}

/** The first node whose active devices suffice, else the first whose active and new ones do. */
function firstNode(fleet: Fleet, instance: PackedInstance, bounds: Bounds): Part[] | undefined {
  const byNode = new Map<number, PackedDevice[]>();
  for (const device of able(fleet, fleet.active, instance, bounds)) {
    byNode.set(device.node, [...(byNode.get(device.node) ?? []), device]);
  }
  const { gpus } = instance;
  for (const device of fleet.active) {
    const there = byNode.get(device.node) ?? [];
    if (there.length >= gpus) return there.slice(0, gpus).map((one) => partOn(one, instance));
  }
  for (let node = 0; node < fleet.shape.nodes; node += 1) {
    const there = byNode.get(node) ?? [];
    const fresh = devicesOf(fleet, node).filter((one) => fleet.closed.has(one));
    if (there.length + fresh.length < gpus) continue;
    return [...there, ...fresh].slice(0, gpus).map((one) => partOn(one, instance));
  }
  return undefined;
}

/** The node where least devices are opened, of these the one with most affine ones, then the fullest. */
function bestNode(
  fleet: Fleet,
  instance: PackedInstance,
  bounds: Bounds,
  score: Score,
  affine: ReadonlySet<PackedDevice>,
): Part[] | undefined {
  const { gpus } = instance;
  let best: { devices: PackedDevice[]; opened: number; near: number; filled: number } | undefined;
  const isOpen = (device: PackedDevice): number => Number(device.instances.size > 0);
  const isNear = (device: PackedDevice): number => Number(affine.has(device));
  let hasEmpty = false;
  for (let node = 0; node < fleet.shape.nodes; node += 1) {
    const there = devicesOf(fleet, node);
    const isEmpty = there.every(({ instances }) => instances.size === 0);
    // All empty nodes are as good.
    if (isEmpty && hasEmpty) continue;
    hasEmpty ||= isEmpty;
    const fits = [...able(fleet, there, instance, bounds)];
    if (fits.length < gpus) continue;
    fits.sort(
      (one, other) =>
        isNear(other) - isNear(one) || isOpen(other) - isOpen(one) || score(other) - score(one) || one.id - other.id,
    );
    const devices = fits.slice(0, gpus);
    const sum = (of: (device: PackedDevice) => number): number => devices.reduce((all, one) => all + of(one), 0);
    const one = { devices, opened: gpus - sum(isOpen), near: sum(isNear), filled: sum(score) };
    const isBetter =
      best === undefined || (one.opened - best.opened || best.near - one.near || best.filled - one.filled) < 0;
    if (isBetter) best = one;
  }
  return best?.devices.map((device) => partOn(device, instance));
}

function devicesOf(fleet: Fleet, node: number): PackedDevice[] {
  const { perNode } = fleet.shape;
  return fleet.devices.slice(node * perNode, (node + 1) * perNode);
}

/** Devices with a function that shares another device with this one, and without this one. */
function affineTo(fleet: Fleet, { function: own }: PackedInstance): Set<PackedDevice> {
  const theirs = fleet.with(own);
  const affine = new Set<PackedDevice>();
  for (const { instances } of theirs) {
    for (const one of instances.values()) {
      for (const device of fleet.with(one.function)) if (!theirs.has(device)) affine.add(device);
    }
  }
  return affine;
}

/** The other devices of training that shares a device with an instance of the function. */
function besideTraining(fleet: Fleet, { function: own }: PackedInstance): Set<PackedDevice> {
  const affine = new Set<PackedDevice>();
  for (const device of fleet.with(own)) {
    for (const one of device.instances.values()) {
      if (one.kind !== 'training') continue;
      for (const part of fleet.partsOf(one)) affine.add(part.device);
      affine.delete(device);
    }
  }
  return affine;
}

/** Fragments as Dilu's released code takes them: of the first node whose free memory suffices, the fullest first. */
function spread(fleet: Fleet, instance: PackedInstance, bounds: Bounds): Part[] | undefined {
  const byNode = new Map<number, PackedDevice[]>();
  for (const device of fleet.active) {
    if (!hasShares(device, instance, bounds)) continue;
    byNode.set(device.node, [...(byNode.get(device.node) ?? []), device]);
  }
  for (const there of byNode.values()) {
    there.sort((one, other) => other.memoryMiB - one.memoryMiB);
    const parts = partsOver(fleet, there, instance);
    if (parts !== undefined) return parts;
  }
  return undefined;
}

/** The fewest fragments of one node, those with the most free memory first; of equally few those that keep the least free. */
function fewestFragments(fleet: Fleet, instance: PackedInstance, bounds: Bounds, spans: number): Part[] | undefined {
  const byNode = new Map<number, PackedDevice[]>();
  const active = [...fleet.active].toSorted((one, other) => one.id - other.id);
  for (const device of active) {
    if (!hasShares(device, instance, bounds)) continue;
    byNode.set(device.node, [...(byNode.get(device.node) ?? []), device]);
  }
  let best: { parts: Part[]; leftMiB: number } | undefined;
  for (const there of byNode.values()) {
    there.sort((one, other) => one.memoryMiB - other.memoryMiB || one.id - other.id);
    const parts = partsOver(fleet, there.slice(0, spans), instance);
    if (parts === undefined) continue;
    const freeMiB = parts.reduce((sum, { device }) => sum + fleet.shape.memoryMiB - device.memoryMiB, 0);
    const leftMiB = freeMiB - instance.memoryMiB;
    if (best === undefined || (parts.length - best.parts.length || leftMiB - best.leftMiB) < 0) {
      best = { parts, leftMiB };
    }
  }
  return best?.parts;
}

/** An instance over devices in this order, each filled before the next one; undefined if they lack the memory. */
function partsOver(
  fleet: Fleet,
  devices: readonly PackedDevice[],
  { request, memoryMiB }: PackedInstance,
): Part[] | undefined {
  const parts: Part[] = [];
  let left = memoryMiB;
  for (const device of devices) {
    if (left <= 0) break;
    const taken = Math.min(left, fleet.shape.memoryMiB - device.memoryMiB);
    if (taken > 0) parts.push({ device, request, limit: request, memoryMiB: taken });
    left -= taken;
  }
  return left > 0 ? undefined : parts;
}
