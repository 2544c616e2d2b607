import { groupedBy } from '@gpuwhisk/common/collections';
import type { GpuIsolation, GpuProcess, NodeStatus, Placement, Resident } from '@gpuwhisk/common/gpu';
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
  /** Devices that it uses together, and which where there are several. */
  gpus: number;
  gang?: readonly string[];
  shareClass: number;
  /** Thousandths of the SMs. */
  request: number;
  limit: number;
  memoryMiB: number;
  /** How long it took to start it and to load its function, ms. */
  loadMs?: number;
  /** Its function is being loaded, so that what was given to it waits; absent: it is loaded. */
  isLoading?: true;
  /** Activations that run in it or are on their way to it. */
  users: number;
  /** Key of the function's instances; absent for a pre-warmer that has no action yet. */
  functionKey?: string;
}

/** A fraction of the SMs in thousandths, rounded: sums of them do not drift. */
export function thousandths(fraction: number): number {
  return Math.round(fraction * 1000);
}

const last = { action: '', namespace: '', key: ' ' };

/** The key of a function's instances in a namespace. */
export function functionKey({ action, namespace }: { action: string; namespace: string }): string {
  // A decision asks for the key of one function several times.
  if (last.action !== action || last.namespace !== namespace) {
    last.action = action;
    last.namespace = namespace;
    last.key = `${namespace} ${action}`;
  }
  return last.key;
}

/** The key of the instances of a task's function. */
export function functionKeyOf({ function: action, namespace }: { function: string; namespace: string }): string {
  return functionKey({ action, namespace });
}

/** An occupant of a place, as its agent reports it; `users` is counted again with every change. */
export interface ShownOccupant {
  occupant: Occupant;
  activations: readonly string[];
}

/** The places that a placement is on, by UUID. */
export const placeIdsOf = ({ slice, devices }: Placement): readonly string[] =>
  slice === undefined ? devices : [slice];

/** Memory that a placement takes of one of its places, by UUID, MiB. */
export function memoryOn({ share, devices, partsMiB }: Placement, id: string): number {
  return partsMiB?.[devices.indexOf(id)] ?? share.memoryMiB;
}

/** The residents of a node by the place that they are on. */
export function residentsByPlace({ residents }: Pick<NodeStatus, 'residents'>): ReadonlyMap<string, Resident[]> {
  return groupedBy(residents, ({ device, slice = device }) => slice);
}

/** Residents of one place as occupants. */
export function shownAs(residents: readonly Resident[]): ShownOccupant[] {
  return residents.map((resident) => ({ occupant: describe(resident), activations: resident.activations }));
}

/** Whether `shownAs(residents)` would be equal to `shown`. */
export function isShownAs(shown: readonly ShownOccupant[], residents: readonly Resident[]): boolean {
  if (shown.length !== residents.length) return false;
  return residents.every((resident, at) => {
    const one = shown[at];
    return one !== undefined && isDescribedBy(one.occupant, resident) && areSame(one.activations, resident.activations);
  });
}

function isDescribedBy(occupant: Occupant, resident: Resident): boolean {
  const { share, gang } = resident;
  return (
    occupant.container === resident.container &&
    occupant.memoryMiB === resident.memoryMiB &&
    occupant.shareClass === share.shareClass &&
    occupant.request === thousandths(share.smRequest) &&
    occupant.limit === thousandths(share.smLimit) &&
    occupant.action === resident.action &&
    occupant.namespace === resident.namespace &&
    occupant.subject === resident.subject &&
    occupant.isolation === resident.isolation &&
    occupant.loadMs === resident.loadMs &&
    occupant.isLoading === resident.isLoading &&
    (occupant.gang === undefined ? gang === undefined : gang !== undefined && areSame(occupant.gang, gang))
  );
}

/** Whether both have the same strings in the same order. */
export function areSame(some: readonly string[], others: readonly string[]): boolean {
  if (some.length !== others.length) return false;
  for (let at = 0; at < some.length; at += 1) if (some[at] !== others[at]) return false;
  return true;
}

/** A reservation on a place, with the occupant that it counts for. */
export interface Standing {
  reservation: Reservation;
  /** The occupant in which the agent shows its activation; undefined: it does not show it. */
  shown: Occupant | undefined;
  /** The occupant that it counts as until the agent shows the instance that is started for it. */
  promised: Occupant | undefined;
  /** Memory that it takes of the place, MiB. */
  memoryMiB: number;
}

/** A reservation on the place `id`, whose agent shows `shown`. */
export function standingOf(shown: readonly ShownOccupant[], reservation: Reservation, id: string): Standing {
  const occupant = shownIn(shown, reservation.activationId)?.occupant;
  return { reservation, shown: occupant, promised: undefined, memoryMiB: memoryOn(reservation.placement, id) };
}

/** The occupant that an activation runs in; undefined if its agent does not show it. */
export function shownIn(shown: readonly ShownOccupant[], activationId: string): ShownOccupant | undefined {
  for (const one of shown) if (one.activations.includes(activationId)) return one;
  return undefined;
}

/** The occupants of a place. */
export interface Occupants {
  occupants: Occupant[];
  /** Memory of instances that are still there and go for what was given out, MiB. */
  goingMiB: number;
}

/**
 * All that hold memory of a place, or will: occupants that its agent shows, and reservations (`here`) that it does not show
 * yet. Idle instances that go for a reservation are left out.
 */
export function occupantsOf(shown: readonly ShownOccupant[], here: readonly Standing[]): Occupants {
  const occupants: Occupant[] = [];
  const going = reclaimedBy(here);
  let goingMiB = 0;
  for (const { occupant, activations } of shown) {
    occupant.users = activations.length;
    if (going !== undefined && activations.length === 0 && going.has(occupant.id)) goingMiB += occupant.memoryMiB;
    else occupants.push(occupant);
  }
  let reusing: { standing: Standing; reuses: string }[] | undefined;
  for (const standing of here) {
    const { reservation, shown: occupant } = standing;
    const { reuses } = reservation;
    if (occupant !== undefined) occupant.users -= Number(reservation.ended);
    else if (reuses !== undefined) (reusing ??= []).push({ standing, reuses });
    else occupants.push(promisedBy(standing));
  }
  // Reservations with an instance of their own were counted first: others may use that instance.
  for (const { standing, reuses } of reusing ?? []) {
    const { reservation } = standing;
    const instance = instanceOf(shown, occupants, reuses, reservation);
    if (instance === undefined) occupants.push(promisedBy(standing));
    else instance.users += Number(!reservation.ended);
  }
  return { occupants, goingMiB };
}

/** Containers of idle instances that go for reservations which the agent does not show yet. */
function reclaimedBy(here: readonly Standing[]): Set<string> | undefined {
  let going: Set<string> | undefined;
  for (const { reservation, shown } of here) {
    const { reclaim } = reservation.placement;
    if (shown !== undefined || reclaim === undefined) continue;
    going ??= new Set();
    for (const container of reclaim) going.add(container);
  }
  return going;
}

function promisedBy(standing: Standing): Occupant {
  standing.promised ??= promised(standing.reservation, standing.memoryMiB);
  standing.promised.users = Number(!standing.reservation.ended);
  return standing.promised;
}

/** The instance that a reservation counts on: by container or by an activation in it, else one that is the same. */
function instanceOf(
  shown: readonly ShownOccupant[],
  occupants: readonly Occupant[],
  id: string,
  reservation: Reservation,
): Occupant | undefined {
  for (const { occupant, activations } of shown) {
    if (occupant.id === id || activations.includes(id)) return occupant;
  }
  return occupants.find((one) => one.id === id) ?? occupants.find((one) => isSame(one, reservation));
}

function isSame(occupant: Occupant, { action, namespace, subject, placement }: Reservation): boolean {
  const { shareClass } = placement.share;
  const isCallers = occupant.namespace === namespace && occupant.subject === subject;
  return occupant.action === action && isCallers && occupant.shareClass === shareClass;
}

// The two literals name the same fields in the same order: engines read objects of one shape several times as fast.
function promised(
  { activationId, action, namespace, subject, isolation, placement }: Reservation,
  memoryMiB: number,
): Occupant {
  const { devices, share } = placement;
  return {
    id: activationId,
    container: undefined,
    action,
    namespace,
    subject,
    isolation,
    gpus: devices.length,
    gang: devices.length > 1 ? devices : undefined,
    shareClass: share.shareClass,
    request: thousandths(share.smRequest),
    limit: thousandths(share.smLimit),
    memoryMiB,
    loadMs: undefined,
    isLoading: true,
    users: 0,
    functionKey: functionKey({ action, namespace }),
  };
}

function describe(resident: Resident): Occupant {
  const { container, action, namespace, subject, isolation, gang, share, memoryMiB, loadMs, isLoading } = resident;
  return {
    id: container,
    container,
    action,
    namespace,
    subject,
    isolation,
    gpus: Math.max(1, gang?.length ?? 1),
    gang,
    shareClass: share.shareClass,
    request: thousandths(share.smRequest),
    limit: thousandths(share.smLimit),
    memoryMiB,
    loadMs,
    isLoading,
    users: 0,
    functionKey: action === undefined || namespace === undefined ? undefined : functionKey({ action, namespace }),
  };
}

/** Whether a process of a device is on its slice, or on the device if that is not cut, and not the platform's. */
export function isOfOthers(process: GpuProcess, slice: Place['slice']): boolean {
  return process.container === undefined && process.slice === slice?.uuid;
}

/** Memory of processes on a place that are not the platform's, MiB. */
export function othersMiB({ status, slice }: Pick<Place, 'status' | 'slice'>): number {
  let others = 0;
  for (const one of status?.processes ?? []) if (isOfOthers(one, slice)) others += one.memoryMiB;
  return others;
}
