// The account of a place and the request of a function: what placement compares.
import type { DeviceHealth, DeviceMode, GpuIsolation, Placement, Rejection, Share } from '@gpuwhisk/common/gpu';
import type { Occupant } from './occupancy.js';
import { placeId } from './places.js';
import type { Place } from './places.js';

/** Whose process is on a device, or is to be. */
export interface Tenant {
  /** `/namespace/action` of its code; absent, as the next two, for a pre-warmer that has no action yet. */
  action?: string;
  /** That it runs for. */
  namespace?: string;
  isolation?: GpuIsolation;
  /** Devices that it uses together. */
  gpus: number;
}

/** The sums of one place that fact filters look at. */
export interface Account {
  mode: DeviceMode;
  /** Undefined: the node's agent has told nothing of it. */
  health: DeviceHealth | undefined;
  /** Memory that may be given away in all, MiB. */
  capacityMiB: number;
  /** Memory that is left once all instances that can be removed are gone, MiB. */
  availableMiB: number;
  /** Processes of the platform, idle ones included. */
  clients: number;
  /** Those of them that run something, or that something is on its way to. */
  busy: number;
  /** Processes that are not the platform's. */
  workloads: number;
  /** Whose processes cannot be removed: they run, or their agent has not named them yet. */
  staying: readonly Tenant[];
}

/** The account of a place of a node: its sums, and who is there. */
export interface PlaceAccount extends Account {
  readonly id: string;
  place: Place;
  /** Position among all accounts, by the names of nodes and the order of their devices. */
  order: number;
  occupants: readonly Occupant[];
  /** Memory of processes that are not the platform's, MiB. */
  foreignMiB: number;
  /** Memory that is free without removing anything, MiB. */
  freeMiB: number;
  /** Requests of what runs, as fractions of the SMs; a sum of thousandths, so that it does not drift. */
  load: number;
  /** Sums of request, limit and class of all instances of functions, idle ones included, in thousandths of the SMs. */
  requestSum: number;
  limitSum: number;
  classSum: number;
}

/**
 * The account of an empty place. Its fields are spelled out, since JavaScript engines keep the fields of a literal in one
 * block, and those of a spread apart.
 */
export function emptyAccount(place: Place): PlaceAccount {
  return {
    id: placeId(place),
    order: -1,
    load: 0,
    freeMiB: 0,
    availableMiB: 0,
    capacityMiB: 0,
    clients: 0,
    busy: 0,
    workloads: 0,
    requestSum: 0,
    limitSum: 0,
    classSum: 0,
    foreignMiB: 0,
    mode: place.device.mode,
    health: undefined,
    occupants: [],
    staying: [],
    place,
  };
}

/** What fact filters look at of work. */
export interface Work {
  /** `/namespace/action` of its code, and the namespace that it runs for. */
  action: string;
  namespace: string;
  /** Absent: it may share a place with every instance that allows it. */
  isolation?: GpuIsolation;
  /** Devices that it needs, of one node and alike. */
  gpus: number;
  /** Device memory on each of them, MiB; 0 or NaN: not known, so that it takes all that a place has. */
  memoryMiB: number;
  /** It may have no more than a share, so that it runs only where it is held to that. */
  isBounded: boolean;
}

/** What work takes of a place's memory, MiB: all of it where that is not known. */
export function neededMiB(
  { memoryMiB }: Pick<Work, 'memoryMiB'>,
  { capacityMiB }: Pick<Account, 'capacityMiB'>,
): number {
  return memoryMiB > 0 ? memoryMiB : capacityMiB;
}

/** What a function asks of a device. */
export interface PlacementRequest extends Work {
  isolation: GpuIsolation;
  /** Where requests run as one: whose it is. An instance serves one subject then; absent: all of the namespace. */
  subject?: string;
  share: Share;
  /** Activations that one instance runs together, at most. */
  batch: number;
}

/** Where to, or why not. */
export interface PlacementChoice {
  placement?: Placement;
  /** The occupant whose instance it will run in. */
  reuses?: string;
  /** The best alternatives, at most `mostRejections`. */
  rejected: Rejection[];
}

/** A choice of a place. */
export interface PlacedChoice extends PlacementChoice {
  placement: Placement;
}

/** Whether a place was found. */
export function isPlaced(choice: PlacementChoice): choice is PlacedChoice {
  return choice.placement !== undefined;
}
