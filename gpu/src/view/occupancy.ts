import type { GpuIsolation, Placement, Resident } from '@gpuwhisk/common/gpu';
import { placeId } from './places.js';
import type { Place } from './places.js';

/** A placement that was given out, for as long as the node's agent may not show it. */
export interface Reservation {
  activationId: string;
  /** `/namespace/action` of its code, and the namespace that it runs for. */
  action: string;
  namespace: string;
  /** As in PlacementRequest. */
  subject?: string;
  isolation: GpuIsolation;
  placement: Placement;
  /** The occupant whose instance it counts on; absent: it needs one of its own. */
  reuses?: string;
  /** Its run is over: what it ran in idles, whether or not the agent has said so. */
  ended: boolean;
}

/** Something that holds memory of a place. */
export interface Occupant {
  /** Its container, or the activation that it was given to first. */
  id: string;
  /** Absent: given out, and not shown by the agent yet. */
  container?: string;
  action?: string;
  namespace?: string;
  subject?: string;
  isolation?: GpuIsolation;
  /** All of its devices, where it has several. */
  gang?: readonly string[];
  shareClass: number;
  smRequest: number;
  memoryMiB: number;
  /** How long it took to start it and to load its function, ms. */
  loadMs?: number;
  /** Activations that run in it or are on their way to it. */
  users: number;
}

/** Who is on a place, and the memory that nobody of them accounts for, MiB. */
export interface Occupancy {
  occupants: Occupant[];
  foreignMiB: number;
}

/** The places that a placement is on, by UUID. */
const placeIdsOf = ({ slice, devices }: Placement): string[] => (slice === undefined ? devices : [slice]);

/** Reservations by the places that they are on. */
export function byPlace(reservations: readonly Reservation[]): ReadonlyMap<string, Reservation[]> {
  const places = new Map<string, Reservation[]>();
  for (const one of reservations) {
    for (const id of placeIdsOf(one.placement)) {
      const there = places.get(id);
      if (there === undefined) places.set(id, [one]);
      else there.push(one);
    }
  }
  return places;
}

/** What is on a place: the agent's residents, and what was given out that it does not show yet. */
export function occupancyOf(place: Place, reservations: readonly Reservation[]): Occupancy {
  const id = placeId(place);
  const residents = place.node.residents.filter((one) => (one.slice ?? one.device) === id);
  const here = reservations.filter(
    ({ placement }) => placement.invoker === place.node.invoker && placeIdsOf(placement).includes(id),
  );
  const ended = new Set(here.filter((one) => one.ended).map((one) => one.activationId));
  const shown = new Set(residents.flatMap((resident) => resident.activations));
  const occupants = residents.map((resident): Occupant => ({
    ...describe(resident),
    users: resident.activations.filter((one) => !ended.has(one)).length,
  }));
  /** By container, and by what runs in it. */
  const byUser = new Map(
    residents.flatMap(({ container, activations }, at) => [container, ...activations].map((id) => [id, occupants[at]])),
  );
  const unshown = here.filter((one) => !shown.has(one.activationId));
  // Those that have an instance of their own come first: others may count on it.
  for (const one of [...unshown].sort((a, b) => Number(a.reuses !== undefined) - Number(b.reuses !== undefined))) {
    const instance =
      one.reuses === undefined ? undefined : (byUser.get(one.reuses) ?? occupants.find((other) => isSame(other, one)));
    if (instance !== undefined) instance.users += Number(!one.ended);
    else {
      const occupant = promised(one);
      occupants.push(occupant);
      byUser.set(occupant.id, occupant);
    }
  }
  return { occupants, foreignMiB: foreignMiB(place, occupants) };
}

function isSame(occupant: Occupant, { action, namespace, subject, placement }: Reservation): boolean {
  const { shareClass } = placement.share;
  const isCallers = occupant.namespace === namespace && occupant.subject === subject;
  return occupant.action === action && isCallers && occupant.shareClass === shareClass;
}

function promised({
  activationId: id,
  action,
  namespace,
  subject,
  isolation,
  placement,
  ended,
}: Reservation): Occupant {
  const { shareClass, smRequest, memoryMiB } = placement.share;
  const { devices } = placement;
  return {
    ...{ id, action, namespace, isolation, shareClass, smRequest, memoryMiB, users: Number(!ended) },
    ...(subject !== undefined && { subject }),
    ...(devices.length > 1 && { gang: devices }),
  };
}

function describe(resident: Resident): Omit<Occupant, 'users'> {
  const { container, action, namespace, subject, isolation, gang, share, memoryMiB, loadMs } = resident;
  return {
    id: container,
    container,
    ...(action !== undefined && { action }),
    ...(namespace !== undefined && { namespace }),
    ...(subject !== undefined && { subject }),
    ...(isolation !== undefined && { isolation }),
    ...(gang !== undefined && { gang }),
    ...(loadMs !== undefined && { loadMs }),
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
 * the agent still shows it as running. What was promised has a container by then.
 */
export function settleReservations(reservations: readonly Reservation[], node: Place['node']): Reservation[] {
  const containerOf = new Map(
    node.residents.flatMap(({ container, activations }) => activations.map((id) => [id, container])),
  );
  return reservations.flatMap((one) => {
    if (one.placement.invoker !== node.invoker) return [one];
    if (one.ended && !containerOf.has(one.activationId)) return [];
    const container = one.reuses === undefined ? undefined : containerOf.get(one.reuses);
    return [container === undefined ? one : { ...one, reuses: container }];
  });
}
