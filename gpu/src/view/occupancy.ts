import type { GpuIsolation, NodeStatus, Placement, Resident } from '@gpuwhisk/common/gpu';
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
  smRequest: number;
  memoryMiB: number;
  /** How long it took to start it and to load its function, ms. */
  loadMs?: number;
  /** Activations that run in it or are on their way to it. */
  users: number;
  /** What the function's instances are found by; absent for a pre-warmer that has no action yet. */
  functionKey?: string;
}

/** What the instances of a function in a namespace are found by. */
export function functionKey({ action, namespace }: { action: string; namespace: string }): string {
  return `${namespace} ${action}`;
}

/** Someone on a place, and what its agent told of them; `users` is counted anew with every change. */
export interface ShownOccupant {
  occupant: Occupant;
  activations: readonly string[];
}

/** The places that a placement is on, by UUID. */
export const placeIdsOf = ({ slice, devices }: Placement): readonly string[] =>
  slice === undefined ? devices : [slice];

/** The residents of a node by the place that they are on. */
export function shownByPlace({ residents }: Pick<NodeStatus, 'residents'>): ReadonlyMap<string, ShownOccupant[]> {
  const places = new Map<string, ShownOccupant[]>();
  for (const resident of residents) {
    const id = resident.slice ?? resident.device;
    const shown = { occupant: describe(resident), activations: resident.activations };
    const there = places.get(id);
    if (there === undefined) places.set(id, [shown]);
    else there.push(shown);
  }
  return places;
}

/** How a reservation stands on a place. */
export interface Standing {
  /** The occupant in which the agent shows its activation; undefined: it does not show it. */
  shown: Occupant | undefined;
  /** What it counts as while the agent does not show it and it has an instance of its own to come. */
  promised: Occupant | undefined;
}

/** How reservations stand on a place of which `shown` was told. */
export function standingsOf(
  shown: readonly ShownOccupant[],
  reservations: Iterable<Reservation>,
): Map<Reservation, Standing> {
  const byActivation = new Map<string, Occupant>();
  for (const { occupant, activations } of shown) for (const id of activations) byActivation.set(id, occupant);
  const standings = new Map<Reservation, Standing>();
  for (const one of reservations) {
    standings.set(one, { shown: byActivation.get(one.activationId), promised: undefined });
  }
  return standings;
}

/** Who is on a place. */
export interface Occupants {
  occupants: Occupant[];
  /** Memory of instances that are still there and go for what was given out, MiB. */
  goingMiB: number;
}

/**
 * All that hold memory of a place, or will: occupants that its agent shows, and reservations (`here`) that it does not show
 * yet. Idle instances that go for a reservation are left out.
 */
export function occupantsOf(shown: readonly ShownOccupant[], here: ReadonlyMap<Reservation, Standing>): Occupants {
  const occupants: Occupant[] = [];
  const going = reclaimedBy(here);
  let goingMiB = 0;
  for (const { occupant, activations } of shown) {
    occupant.users = activations.length;
    if (activations.length === 0 && going?.has(occupant.id)) goingMiB += occupant.memoryMiB;
    else occupants.push(occupant);
  }
  let reusing: Reservation[] | undefined;
  for (const [one, standing] of here) {
    if (standing.shown !== undefined) standing.shown.users -= Number(one.ended);
    else if (one.reuses !== undefined) (reusing ??= []).push(one);
    else occupants.push(promisedBy(one, standing));
  }
  // Those that have an instance of their own came first: others may count on it.
  for (const one of reusing ?? []) {
    const instance = instanceOf(shown, occupants, one.reuses!, one);
    if (instance === undefined) occupants.push(promisedBy(one, here.get(one)!));
    else instance.users += Number(!one.ended);
  }
  return { occupants, goingMiB };
}

/** Containers of idle instances that go for reservations which the agent does not show yet. */
function reclaimedBy(here: ReadonlyMap<Reservation, Standing>): Set<string> | undefined {
  let going: Set<string> | undefined;
  for (const [{ placement }, { shown }] of here) {
    if (shown !== undefined || placement.reclaim === undefined) continue;
    going ??= new Set();
    for (const container of placement.reclaim) going.add(container);
  }
  return going;
}

function promisedBy(reservation: Reservation, standing: Standing): Occupant {
  standing.promised ??= promised(reservation);
  standing.promised.users = Number(!reservation.ended);
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

// Both are spelled out: spreading takes several times as long, and rows and placements make dozens.
function promised({ activationId, action, namespace, subject, isolation, placement }: Reservation): Occupant {
  const { devices, share } = placement;
  const occupant: Occupant = {
    id: activationId,
    action,
    namespace,
    isolation,
    gpus: devices.length,
    shareClass: share.shareClass,
    smRequest: share.smRequest,
    memoryMiB: share.memoryMiB,
    users: 0,
    functionKey: functionKey({ action, namespace }),
  };
  if (subject !== undefined) occupant.subject = subject;
  if (devices.length > 1) occupant.gang = devices;
  return occupant;
}

function describe(resident: Resident): Occupant {
  const { container, action, namespace, subject, isolation, gang, share, memoryMiB, loadMs } = resident;
  const occupant: Occupant = {
    id: container,
    container,
    gpus: Math.max(1, gang?.length ?? 1),
    shareClass: share.shareClass,
    smRequest: share.smRequest,
    memoryMiB,
    users: 0,
  };
  if (action !== undefined) occupant.action = action;
  if (namespace !== undefined) occupant.namespace = namespace;
  if (subject !== undefined) occupant.subject = subject;
  if (isolation !== undefined) occupant.isolation = isolation;
  if (gang !== undefined) occupant.gang = gang;
  if (loadMs !== undefined) occupant.loadMs = loadMs;
  if (action !== undefined && namespace !== undefined) occupant.functionKey = functionKey({ action, namespace });
  return occupant;
}

/** Memory of processes on a place that are not the platform's, MiB. */
export function othersMiB({ status, slice }: Pick<Place, 'status' | 'slice'>): number {
  let others = 0;
  for (const one of status?.processes ?? []) {
    if (one.container === undefined && one.slice === slice?.uuid) others += one.memoryMiB;
  }
  return others;
}
