import type { GpuIsolation, Placement, Resident } from '@gpuwhisk/common/gpu';
import { placeId } from './places.js';
import type { Place } from './places.js';

/** A placement that was given out, for as long as the node's agent may not show it. */
export interface Reservation {
  activationId: string;
  /** `/namespace/action` of its code, and the namespace that it runs for. */
  action: string;
  namespace: string;
  isolation: GpuIsolation;
  placement: Placement;
  /** Container of the idle resident that it counts on; absent: it needs an instance of its own. */
  reuses?: string;
  /** Its run is over: what it ran in idles, whether or not the agent has said so. */
  ended: boolean;
}

/** Something that holds memory of a place. */
export interface Occupant {
  /** Absent: given out, and not shown by the agent yet. */
  container?: string;
  action?: string;
  namespace?: string;
  isolation?: GpuIsolation;
  shareClass: number;
  smRequest: number;
  memoryMiB: number;
  /** Something runs in it, or is on its way to it. */
  busy: boolean;
}

/** Who is on a place, and the memory that nobody of them accounts for, MiB. */
export interface Occupancy {
  occupants: Occupant[];
  foreignMiB: number;
}

/** What is on a place: the agent's residents, and what was given out that it does not show yet. */
export function occupancyOf(place: Place, reservations: readonly Reservation[]): Occupancy {
  const id = placeId(place);
  const residents = place.node.residents.filter((one) => (one.slice ?? one.device) === id);
  const here = reservations.filter(
    ({ placement }) =>
      placement.invoker === place.node.invoker &&
      (placement.slice ?? placement.devices.find((one) => one === id)) === id,
  );
  const ended = new Set(here.filter((one) => one.ended).map((one) => one.activationId));
  const running = here.filter((one) => !one.ended);
  const reused = new Set(running.map((one) => one.reuses));
  const occupants: Occupant[] = residents.map((resident) => ({
    ...describe(resident),
    busy: resident.activations.some((one) => !ended.has(one)) || reused.has(resident.container),
  }));
  const shown = new Set(residents.flatMap((resident) => resident.activations));
  const containers = new Set(residents.map((resident) => resident.container));
  for (const one of here) {
    if (shown.has(one.activationId) || (one.reuses !== undefined && containers.has(one.reuses))) continue;
    const { shareClass, smRequest, memoryMiB } = one.placement.share;
    const { action, namespace, isolation } = one;
    occupants.push({ action, namespace, isolation, shareClass, smRequest, memoryMiB, busy: !one.ended });
  }
  return { occupants, foreignMiB: foreignMiB(place, occupants) };
}

function describe(resident: Resident): Omit<Occupant, 'busy'> {
  const { container, action, namespace, isolation, share, memoryMiB } = resident;
  return {
    container,
    ...(action !== undefined && { action }),
    ...(namespace !== undefined && { namespace }),
    ...(isolation !== undefined && { isolation }),
    shareClass: share.shareClass,
    smRequest: share.smRequest,
    memoryMiB,
  };
}

/** Memory of processes that are not ours, and what is in use beyond all that is charged. */
function foreignMiB({ status, slice }: Place, occupants: readonly Occupant[]): number {
  if (status === undefined) return 0;
  const others = sum(
    status.processes
      .filter((one) => one.container === undefined && one.slice === slice?.uuid)
      .map((one) => one.memoryMiB),
  );
  // What is in use is told of whole devices only.
  if (slice !== undefined) return others;
  return Math.max(others, status.usedMemoryMiB - sum(occupants.map((one) => one.memoryMiB)));
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

/**
 * What is left of the reservations on a node once its agent has told what is there: one whose run is over goes unless
 * the agent still shows it as running.
 */
export function settleReservations(reservations: readonly Reservation[], node: Place['node']): Reservation[] {
  const shown = new Set(node.residents.flatMap((resident) => resident.activations));
  return reservations.filter(
    (one) => one.placement.invoker !== node.invoker || !one.ended || shown.has(one.activationId),
  );
}
