import type { DeviceStatus, NodeStatus, Placement, Rejection, Share } from '@gpuwhisk/common/gpu';

/** What a function asks of a device. */
export interface PlacementRequest {
  share: Share;
}

/** Part of a device's memory that may be given away, contexts included. */
const memoryBound = 0.95;

/**
 * The device or slice with the least share given away of those with room for the memory; a function that fits none is
 * refused with what each lacks. Ties go to more free memory.
 */
export function placeLeastLoaded(
  nodes: readonly NodeStatus[],
  { share }: PlacementRequest,
  epoch: number,
  at: number,
): { placement?: Placement; rejected: Rejection[] } {
  const rejected: Rejection[] = [];
  let best: { load: number; free: number; placement: Placement } | undefined;
  for (const node of nodes) {
    for (const device of node.devices) {
      const health = node.status.find(({ uuid }) => uuid === device.uuid)?.health;
      const places = device.mode === 'mig' ? device.slices : [undefined];
      for (const slice of places) {
        const what = slice?.uuid ?? device.uuid;
        if (health?.state !== 'healthy') {
          rejected.push({ what, reason: problemsOf(health), numbers: {} });
          continue;
        }
        const there = node.residents.filter(
          (resident) => resident.device === device.uuid && resident.slice === slice?.uuid,
        );
        const memoryMiB = slice?.memoryMiB ?? device.memoryMiB;
        const free = Math.floor(memoryMiB * memoryBound) - sum(there.map((resident) => resident.memoryMiB));
        if (free < share.memoryMiB) {
          rejected.push({
            what,
            reason: 'too little free memory',
            numbers: { freeMiB: free, needMiB: share.memoryMiB },
          });
          continue;
        }
        const load = sum(there.map((resident) => resident.share.smRequest));
        if (best !== undefined && (load > best.load || (load === best.load && free <= best.free))) {
          rejected.push({ what, reason: 'another one has more left', numbers: { load, freeMiB: free } });
          continue;
        }
        if (best !== undefined) {
          const what = best.placement.slice ?? best.placement.devices[0]!;
          rejected.push({
            what,
            reason: 'another one has more left',
            numbers: { load: best.load, freeMiB: best.free },
          });
        }
        const placement: Placement = {
          invoker: node.invoker,
          devices: [device.uuid],
          ...(slice !== undefined && { slice: slice.uuid }),
          share,
          at,
          epoch,
          version: node.version,
        };
        best = { load, free, placement };
      }
    }
  }
  return { ...(best !== undefined && { placement: best.placement }), rejected };
}

function problemsOf(health: DeviceStatus['health'] | undefined): string {
  return health === undefined ? 'nothing is known of it' : `${health.state}: ${health.reasons.join('; ')}`;
}

const sum = (numbers: number[]): number => numbers.reduce((total, number) => total + number, 0);
