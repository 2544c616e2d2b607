// Functions that no device of the cluster can serve.
import type { GpuNeed, NodeStatus } from '@gpuwhisk/common/gpu';
import { placesOf, usableMiB } from '../../ledger/places.js';
import type { Place } from '../../ledger/places.js';
import { holdsToShares } from '../../view/shares.js';
import { alikeGroups } from '../place/gangs.js';
import { profilesOf } from './mig-profiles.js';

/**
 * Why no device that is known can ever serve such a function, whatever runs there; undefined if one can. A device that is being
 * cut counts with what it has and with what it will have, and one that may return to MPS with its shares enforced.
 */
export function capacityProblem(
  nodes: readonly NodeStatus[],
  { memoryMiB, gpus, spans = 1, maxShareClass }: Pick<GpuNeed, 'memoryMiB' | 'gpus' | 'spans' | 'maxShareClass'>,
): string | undefined {
  const places = [...placesOf(nodes), ...comingPlaces(nodes)].filter(
    ({ device }) => maxShareClass === undefined || holdsToShares(device.mode) || device.returnsToMps === true,
  );
  const [largest] = [...places].sort((one, other) => other.capacityMiB - one.capacityMiB);
  if (largest === undefined) {
    return maxShareClass === undefined
      ? 'no device can be used'
      : `the namespace may have ${maxShareClass} % of a device, and none holds functions to a share`;
  }
  if (largest.capacityMiB < memoryMiB) {
    const togetherMiB = gpus === 1 && spans > 1 ? mostTogether(places, spans) : 0;
    if (togetherMiB >= memoryMiB) return undefined;
    const together = togetherMiB === 0 ? '' : `; ${spans} alike on one node can give ${togetherMiB} together`;
    const name =
      largest.slice === undefined ? largest.device.name : `${largest.slice.profile} of ${largest.device.name}`;
    return `'memoryMiB' is ${memoryMiB}, and the largest device, ${name}, can give ${largest.capacityMiB}${together}`;
  }
  if (gpus === 1) return undefined;
  const could = places.filter(({ device, capacityMiB }) => device.mode !== 'mig' && !(capacityMiB < memoryMiB));
  const most = Math.max(0, ...alikeGroups(could, itself).map(({ length }) => length));
  return most >= gpus
    ? undefined
    : `'gpus' is ${gpus}, and no node has more than ${most} alike with so much memory that are not cut into slices`;
}

/** The most memory that at most `spans` devices of one node which are alike and not cut can give together, MiB. */
function mostTogether(places: readonly Place[], spans: number): number {
  const uncut = places.filter(({ device }) => device.mode !== 'mig');
  const sumOf = (group: readonly Place[]): number =>
    group
      .map(({ capacityMiB }) => capacityMiB)
      .sort((one, other) => other - one)
      .slice(0, spans)
      .reduce((sum, capacityMiB) => sum + capacityMiB, 0);
  return Math.max(0, ...alikeGroups(uncut, itself).map(sumOf));
}

function itself(place: Place): Place {
  return place;
}

/** The places that devices will have which are being cut now, by the table of profiles; a whole device for one that is not in it. */
function comingPlaces(nodes: readonly NodeStatus[]): Place[] {
  return nodes.flatMap((node) =>
    node.devices.flatMap((device): Place[] => {
      const status = node.status.find(({ uuid }) => uuid === device.uuid);
      const { state, profiles = [] } = status?.cut ?? {};
      if (state !== 'draining' && state !== 'cutting') return [];
      const known = profilesOf(device.type).filter(({ name }) => profiles.includes(name));
      const slices = known.map(({ name: profile, ...sizes }) => ({ ...sizes, profile, uuid: '', startSlot: -1 }));
      const place = { node, device, status };
      if (slices.length === 0) return [{ ...place, slice: undefined, capacityMiB: usableMiB(device) }];
      return slices.map((slice) => ({ ...place, slice, capacityMiB: usableMiB(slice) }));
    }),
  );
}
