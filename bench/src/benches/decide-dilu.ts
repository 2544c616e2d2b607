import { gpuMemoryBound } from '@gpuwhisk/common/gpu';
import type { Device, DeviceStatus, NodeStatus } from '@gpuwhisk/common/gpu';
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { Random } from '@gpuwhisk/common/system/random';
import { placeDilu } from '@gpuwhisk/gpu/algorithms/dilu/place';
import { oversubscriptionDefaults } from '@gpuwhisk/gpu/algorithms/dilu/oversubscription';
import { Ledger } from '@gpuwhisk/gpu/ledger/ledger';
import type { PlacementRequest } from '@gpuwhisk/gpu/ledger/account';
import { classAtOrAbove } from '@gpuwhisk/gpu/view/shares';
import { medianOf } from '../bench.js';
import type { Measurement } from '../bench.js';

const nodes = 1000;
const devicesPerNode = 4;
const memoryMiB = 40_960;
const instanceCount = 3200;
/** Seeds of the placed mixes; the times leave the first one out. */
const seeds = [1, 2, 3, 4, 5, 6];

/** A kind of instance; values are drawn evenly from its ranges. */
interface Kind {
  /** Instances of this kind among ten. */
  ofTen: number;
  /** Hundredths of the SMs. */
  request: readonly [number, number];
  gib: readonly [number, number];
}

const kinds: readonly Kind[] = [
  { ofTen: 2, request: [40, 80], gib: [24, 37] },
  { ofTen: 2, request: [40, 60], gib: [20, 30] },
  { ofTen: 6, request: [20, 40], gib: [3, 10] },
];
/** Hundredths by which a limit is above its request. */
const limitAbove = [15, 30] as const;

/** Demand of an instance: thousandths of the SMs, MiB. */
interface Instance {
  request: number;
  limit: number;
  memoryMiB: number;
}

const between = (random: Random, [low, high]: readonly [number, number]): number =>
  low + (random.uint32() % (high - low + 1));

function mixOf(random: Random): Instance[] {
  const ofTen = kinds.flatMap((kind) => Array.from({ length: kind.ofTen }, () => kind));
  return Array.from({ length: instanceCount }, () => {
    const kind = ofTen[random.uint32() % ofTen.length];
    if (kind === undefined) throw new Error('there is no kind of instance');
    const { request: requests, gib } = kind;
    const request = between(random, requests);
    const limit = Math.min(100, request + between(random, limitAbove));
    return { request: request * 10, limit: limit * 10, memoryMiB: between(random, gib) * 1024 };
  });
}

function rowOf(invoker: string): NodeStatus {
  const devices = Array.from({ length: devicesPerNode }, (_, index): Device => ({
    uuid: `${invoker}.${index}`,
    index,
    name: 'NVIDIA A100-SXM4-40GB',
    type: 'a100-40',
    smCount: 108,
    memoryMiB,
    mode: 'mps',
    slices: [],
    simulated: true,
  }));
  const status = devices.map(({ uuid }): DeviceStatus => ({
    uuid,
    at: 0,
    usedMemoryMiB: 0,
    processes: [],
    health: { state: 'healthy', reasons: [] },
  }));
  return { invoker, version: 1, at: 0, devices, status, residents: [] };
}

function requestOf({ request, limit, memoryMiB: needMiB }: Instance, number: number): PlacementRequest {
  const fractions = { smRequest: request / 1000, smLimit: limit / 1000 };
  return {
    action: `/n/f${number}`,
    namespace: 'n',
    isolation: 'shared',
    memoryMiB: needMiB,
    gpus: 1,
    batch: 1,
    share: { shareClass: classAtOrAbove(fractions.smLimit), ...fractions, memoryMiB: needMiB },
    isBounded: false,
  };
}

/** Devices that the platform's best fit uses, and the microseconds of each placement with its hold. */
function place(instances: readonly Instance[]): { devices: number; us: number[] } {
  const ledger = new Ledger();
  for (let node = 0; node < nodes; node += 1) ledger.heard(rowOf(`invoker${node}`), 0);
  const requests = instances.map(requestOf);
  const limits = { kept: new Set<string>(), isOpen: (invoker: string) => ledger.seenMs(invoker) >= 0 };
  const used = new Set<string>();
  const us: number[] = [];
  for (const [at, request] of requests.entries()) {
    const from = performance.now();
    const { placement } = placeDilu(ledger, request, limits, { epoch: 1, at: 0 });
    if (placement === undefined) throw new Error('an instance fits on no device');
    const { action, namespace, isolation } = request;
    ledger.hold({ activationId: `i${at}`, action, namespace, isolation, placement, ended: false }, Infinity);
    us.push((performance.now() - from) * 1000);
    for (const device of placement.devices) used.add(device);
  }
  return { devices: used.size, us };
}

/** Devices that best fit uses when it examines all devices for each instance, by an account of the bench's own. */
function exhaustive(instances: readonly Instance[]): number {
  const capacityMiB = Math.floor(memoryMiB * gpuMemoryBound);
  const devices = Array.from({ length: nodes * devicesPerNode }, () => ({ request: 0, limit: 0, memoryMiB: 0 }));
  for (const one of instances) {
    let best: Instance | undefined;
    let fullest = -1;
    for (const device of devices) {
      const request = device.request + one.request;
      const usedMiB = device.memoryMiB + one.memoryMiB;
      if (request > oversubscriptionDefaults.omega * 1000 || usedMiB > capacityMiB) continue;
      if (device.limit + one.limit > oversubscriptionDefaults.gamma * 1000) continue;
      const filled = request * capacityMiB + usedMiB * 1000;
      if (filled <= fullest) continue;
      [best, fullest] = [device, filled];
    }
    if (best === undefined) throw new Error('an instance fits on no device');
    best.request += one.request;
    best.limit += one.limit;
    best.memoryMiB += one.memoryMiB;
  }
  return devices.filter(({ request }) => request > 0).length;
}

/**
 * Best fit under Ω = 1 and γ = 1.5 of 3,200 instances on 4,000 empty devices of 40 GB (Dilu, section 5.1). Training,
 * language models and other inference come as 2 : 2 : 6. Requests are drawn from 40–80, 40–60 and 20–40 % of the SMs,
 * memory from 24–37, 20–30 and 3–10 GiB. A limit is 15–30 % above its request, at most 100 %. The paper does not print
 * its ranges. Each instance has one device, because an instance of several devices gets them exclusively under MPS.
 */
export function diluPlacements(say: (line: string) => void): Measurement[] {
  const totalsMs: number[] = [];
  const us: number[] = [];
  let over = 0;
  for (const [at, seed] of seeds.entries()) {
    const instances = mixOf(seededRandom(seed));
    const placed = place(instances);
    const best = exhaustive(instances);
    over = Math.max(over, placed.devices - best);
    say(`  3,200 instances: ${placed.devices} devices, ${best} by an exhaustive search`);
    if (at === 0) continue;
    totalsMs.push(placed.us.reduce((sum, one) => sum + one, 0) / 1000);
    us.push(...placed.us);
  }
  return [medianOf('place3200Ms', totalsMs), medianOf('placeUs', us), { name: 'diluDevicesOverBest', value: over }];
}
