// The account of a place and the request of a function: what placement compares.
import type { DeviceHealth, DeviceMode, GpuIsolation, Placement, Rejection, Share } from '@gpuwhisk/common/gpu';
import type { Occupant } from './occupancy.js';
import { clientLimitOf, placeId } from './places.js';
import type { Place } from './places.js';

/** The function of a process that is on a device, or will be. */
export interface Tenant {
  /** `/namespace/action` of its code; absent, as the next two, for a pre-warmer that has no action yet. */
  action?: string;
  /** The namespace that it runs for. */
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
  /** Most of them that an MPS server takes there; absent: as many as on a whole device, where its mode is `mps`. */
  clientLimit?: number;
  /** Clients with a running activation, or with one on its way. */
  busy: number;
  /** Processes that are not the platform's. */
  workloads: number;
  /** Owners of processes that cannot be removed: running ones, and those that the agent has not named yet. */
  staying: readonly Tenant[];
}

/** The account of a place of a node: its sums, and who is there. */
export interface PlaceAccount extends Account {
  clientLimit: number;
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
    clientLimit: clientLimitOf(place),
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

/** An account's sums as they were when its place was not chosen; `Why`: a reason against it. */
export class PastAccount<Why> {
  readonly id: string;
  readonly order: number;
  readonly mode: DeviceMode;
  readonly health: DeviceHealth | undefined;
  readonly capacityMiB: number;
  readonly availableMiB: number;
  readonly freeMiB: number;
  readonly clients: number;
  readonly busy: number;
  readonly workloads: number;
  readonly load: number;
  readonly requestSum: number;
  readonly limitSum: number;
  // The ledger makes both lists again when it counts a place, so that these stay as they were.
  readonly occupants: readonly Occupant[];
  readonly staying: readonly Tenant[];

  constructor(
    account: PlaceAccount,
    /** The instance that the request would have run in. */
    readonly joined: Occupant | undefined,
    /** Why it might not be chosen, whatever the facts are. */
    readonly refusal: Why | undefined,
  ) {
    this.id = account.id;
    this.order = account.order;
    this.mode = account.mode;
    this.health = account.health;
    this.capacityMiB = account.capacityMiB;
    this.availableMiB = account.availableMiB;
    this.freeMiB = account.freeMiB;
    this.clients = account.clients;
    this.busy = account.busy;
    this.workloads = account.workloads;
    this.load = account.load;
    this.requestSum = account.requestSum;
    this.limitSum = account.limitSum;
    this.occupants = account.occupants;
    this.staying = account.staying;
  }
}

/** Sums over instances, in thousandths of the SMs. */
export type ShareSums = Pick<PlaceAccount, 'requestSum' | 'limitSum'>;

/** The sums over the instances of a place that cannot be removed for another: all but those that idle. */
export function stayingSums(occupants: readonly Occupant[]): ShareSums {
  let [requestSum, limitSum] = [0, 0];
  for (const { users, container, functionKey, request, limit } of occupants) {
    if (functionKey === undefined || (users === 0 && container !== undefined)) continue;
    requestSum += request;
    limitSum += limit;
  }
  return { requestSum, limitSum };
}

/** Memory of a place that no instance in use holds, nor a process of others, MiB. */
export function leftByRunsMiB({ capacityMiB, foreignMiB, occupants }: PlaceAccount): number {
  let leftMiB = capacityMiB - foreignMiB;
  for (const { users, memoryMiB } of occupants) if (users > 0) leftMiB -= memoryMiB;
  return leftMiB;
}

/** Memory of a place for tasks in all, without what processes of others hold, MiB. */
export function tasksMiB({ capacityMiB, foreignMiB }: Pick<PlaceAccount, 'capacityMiB' | 'foreignMiB'>): number {
  return Math.max(0, capacityMiB - foreignMiB);
}

/** The properties of a request that fact filters read. */
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
  /** Its share is bounded, so that it runs only where processes are held to their shares. */
  isBounded: boolean;
  /** Time limit of a run, ms; absent: it has none, so that it is put on no device that leaves. */
  timeLimitMs?: number;
}

/** Memory that work takes of a place, MiB; the whole capacity if its need is not known. */
export function neededMiB(
  { memoryMiB }: Pick<Work, 'memoryMiB'>,
  { capacityMiB }: Pick<Account, 'capacityMiB'>,
): number {
  return memoryMiB > 0 ? memoryMiB : capacityMiB;
}

/** The request of a function to a device. */
export interface PlacementRequest extends Work {
  isolation: GpuIsolation;
  /** The subject, where an instance serves the requests of one subject only; absent: it serves the namespace. */
  subject?: string;
  share: Share;
  /** Activations that one instance runs together, at most. */
  batch: number;
  /** Devices of one node that its memory may be split over, at most, where it needs one; absent: it is not split. */
  spans?: number;
}

/** A place for a request, or the reasons why there is none. */
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
