// Machines that come and go as devices of a replay.
import { departureMarginMs } from '@gpuwhisk/common/gpu-nodes';
import type { Rented } from './cost.js';
import type { Incident } from './serving.js';

/** Time limit of the functions, s. */
const timeLimitS = 10;

/** Devices that a replay needs so that every machine has one from its start to its end. */
export function deviceSlots(rented: readonly Rented[], least: number): number {
  return Math.max(least - 1, ...assigned(rented).values()) + 1;
}

/** The device of each machine: the first one that no other machine has then. */
function assigned(rented: readonly Rented[]): Map<Rented, number> {
  const freeAtS: number[] = [];
  const found = new Map<Rented, number>();
  for (const one of [...rented].sort((a, b) => a.upS - b.upS)) {
    if (one.upS >= one.untilS) continue;
    const free = freeAtS.findIndex((atS) => atS <= one.upS);
    const device = free < 0 ? freeAtS.length : free;
    freeAtS[device] = one.untilS;
    found.set(one, device);
  }
  return found;
}

/**
 * What happens to the devices from `fromS` on, which is the 0 of the replay: a device comes once its machine is up, from the notice on
 * takes only batches whose time limit ends in time, as the platform has it, and is lost at the machine's end.
 */
export function comings(rented: readonly Rented[], least: number, fromS: number): Incident[] {
  const device = assigned(rented);
  const count = deviceSlots(rented, least);
  const there = new Set<number>();
  const later: Incident[] = [];
  for (const [{ upS, noticedS, untilS }, at] of device) {
    if (untilS <= fromS) continue;
    if (upS <= fromS) there.add(at);
    const on = (atS: number, act: (one: Parameters<Incident['act']>[0], device: number) => void): void => {
      later.push({ atMs: Math.max(0, atS - fromS) * 1000, act: (cluster) => act(cluster, at) });
    };
    if (upS > fromS) on(upS, (cluster, one) => cluster.come(deviceOf(cluster, one)));
    const lastS = Math.max(noticedS, untilS - departureMarginMs / 1000 - timeLimitS);
    if (lastS < untilS) on(lastS, (cluster, one) => cluster.cordon(deviceOf(cluster, one)));
    if (Number.isFinite(untilS)) on(untilS, (cluster, one) => cluster.lose(deviceOf(cluster, one)));
  }
  const absent: Incident = {
    atMs: 0,
    act(cluster) {
      for (let at = 0; at < count; at += 1) if (!there.has(at)) cluster.lose(deviceOf(cluster, at));
    },
  };
  return [absent, ...later.sort((one, other) => one.atMs - other.atMs)];
}

function deviceOf({ devices }: Parameters<Incident['act']>[0], at: number): (typeof devices)[number] {
  const found = devices[at];
  if (found === undefined) throw new RangeError(`there is no device ${at}`);
  return found;
}
