import { mpsClientLimit } from '@gpuwhisk/common/gpu';
import type { GpuIsolation, NodeStatus, Placement, Rejection, Share } from '@gpuwhisk/common/gpu';
import { byPlace, occupancyOf } from '../view/occupancy.js';
import type { Occupant, Reservation } from '../view/occupancy.js';
import { holdsToShares } from '../share/share-of.js';
import { mayShare } from './isolation.js';
import type { Tenant } from './isolation.js';
import { gangKey, placeId, placesOf } from '../view/places.js';
import type { Place } from '../view/places.js';

/** What a function asks of a device. */
export interface PlacementRequest {
  /** `/namespace/action` of its code, and the namespace that it runs for. */
  action: string;
  namespace: string;
  /** Where requests run as one: whose it is. An instance serves one subject then; absent: all of the namespace. */
  subject?: string;
  share: Share;
  /** Devices that it needs, of one node and alike. */
  gpus: number;
  isolation: GpuIsolation;
  /** Its namespace may have no more than its share, so that it runs only where it is held to that. */
  isBounded?: true;
  /** Activations that one instance runs together, at most. */
  batch: number;
}

/** What a placement is decided on, and stamped with. */
export interface PlacementView {
  nodes: readonly NodeStatus[];
  reservations: readonly Reservation[];
  /** Places, by UUID, that are kept for one that waits for longer. */
  kept: ReadonlySet<string>;
  /** Places, by UUID, that a policy chose: no other will do; absent: any will. */
  only?: ReadonlySet<string>;
  /** Of the decider's lease. */
  epoch: number;
  /** Epoch ms. */
  at: number;
}

/** Where to, or why not. */
export interface PlacementChoice {
  placement?: Placement;
  /** The occupant whose instance it will run in. */
  reuses?: string;
  rejected: Rejection[];
}

/** A place that would do. */
interface Candidate {
  place: Place;
  /** Requests of what runs there, as fractions of its SMs. */
  load: number;
  freeMiB: number;
  reuses: Occupant | undefined;
  reclaim: string[];
}

/**
 * The place with the least share given away of those with room for the memory, an instance of the function that idles
 * there before all others while the SMs suffice. Idle instances of other functions are in nobody's way: they are named
 * to be removed where their memory is needed. A function that fits nowhere is refused with what each place lacks.
 */
export function placeLeastLoaded(view: PlacementView, request: PlacementRequest): PlacementChoice {
  const { candidates, rejected } = judgeAll(view, request, true);
  const warm = request.gpus > 1 ? idleGang(candidates, request.gpus) : undefined;
  if (request.gpus > 1 && warm === undefined) return decide(view, request, judgeAll(view, request, false));
  return decide(view, request, { candidates, rejected }, warm);
}

/** What each place is worth. */
interface Judged {
  candidates: Candidate[];
  rejected: Rejection[];
}

/** `reuses`: whether it may run in an instance that is there. */
function judgeAll(view: PlacementView, request: PlacementRequest, reuses: boolean): Judged {
  const rejected: Rejection[] = [];
  const candidates: Candidate[] = [];
  const reservations = byPlace(view.reservations);
  for (const place of placesOf(view.nodes)) {
    const judged =
      view.only?.has(placeId(place)) === false
        ? { reason: 'another one was chosen', numbers: {} }
        : judge(place, reservations.get(placeId(place)) ?? [], view.kept, request, reuses);
    if ('place' in judged) candidates.push(judged);
    else rejected.push({ what: placeId(place), ...judged });
  }
  return { candidates, rejected };
}

function decide(
  view: PlacementView,
  request: PlacementRequest,
  { candidates, rejected }: Judged,
  chosen = choose(candidates, request),
): PlacementChoice {
  for (const candidate of candidates) {
    if (chosen?.includes(candidate)) continue;
    const numbers = { load: candidate.load, freeMiB: candidate.freeMiB };
    const reason = chosen === undefined ? `${request.gpus} alike are needed on one node` : 'another one has more left';
    rejected.push({ what: placeId(candidate.place), reason, numbers });
  }
  const first = chosen?.[0];
  if (chosen === undefined || first === undefined) return { rejected };
  const { node, slice } = first.place;
  const reclaim = [...new Set(chosen.flatMap((one) => one.reclaim))];
  const placement: Placement = {
    invoker: node.invoker,
    devices: chosen.map((one) => one.place.device.uuid),
    ...(slice !== undefined && { slice: slice.uuid }),
    share: request.share,
    ...(reclaim.length > 0 && { reclaim }),
    ...(first.reuses !== undefined && first.reuses.users > 0 && { joins: true }),
    ...(first.place.device.simulated && { simulated: true }),
    at: view.at,
    epoch: view.epoch,
    version: node.version,
  };
  return { placement, ...(first.reuses !== undefined && { reuses: first.reuses.id }), rejected };
}

/** The places to keep for a request that nothing can be found for: those that have most to give of what could serve it. */
export function placesToKeep(view: PlacementView, request: PlacementRequest): string[] {
  const could = placesOf(view.nodes)
    .filter((place) => place.status?.health.state === 'healthy' && place.capacityMiB >= request.share.memoryMiB)
    .filter((place) => !view.kept.has(placeId(place)) && (request.gpus === 1 || place.slice === undefined))
    .filter(({ device }) => !request.isBounded || holdsToShares(device.mode))
    .map((place) => {
      const { occupants, foreignMiB } = occupancyOf(place, view.reservations);
      const busyMiB = sum(occupants.filter((one) => one.users > 0).map((one) => one.memoryMiB));
      return { place, leftMiB: place.capacityMiB - foreignMiB - busyMiB };
    })
    .sort((one, other) => other.leftMiB - one.leftMiB);
  const gang = could.find(
    ({ place }) => could.filter((one) => gangKey(one.place) === gangKey(place)).length >= request.gpus,
  );
  if (gang === undefined) return [];
  const alike = could.filter((one) => gangKey(one.place) === gangKey(gang.place));
  return alike.slice(0, request.gpus).map((one) => placeId(one.place));
}

function judge(
  place: Place,
  reservations: readonly Reservation[],
  kept: ReadonlySet<string>,
  request: PlacementRequest,
  reuses: boolean,
): Candidate | Pick<Rejection, 'reason' | 'numbers'> {
  const { share, gpus } = request;
  const health = place.status?.health;
  if (health === undefined) return { reason: 'nothing is known of it', numbers: {} };
  if (health.state !== 'healthy') {
    return { reason: [health.state, health.reasons.join('; ')].filter(Boolean).join(': '), numbers: {} };
  }
  if (request.isBounded && !holdsToShares(place.device.mode)) {
    return { reason: 'nothing holds it to the share that its namespace may have', numbers: {} };
  }
  if (gpus > 1 && place.device.mode === 'mig') return { reason: 'it is cut into slices', numbers: {} };
  if (place.capacityMiB < share.memoryMiB) {
    return { reason: 'too small', numbers: { capacityMiB: place.capacityMiB, needMiB: share.memoryMiB } };
  }
  if (kept.has(placeId(place))) return { reason: 'kept for one that waits for longer', numbers: {} };
  const workloads = place.status?.processes.filter(({ container }) => container === undefined).length ?? 0;
  if (gpus > 1 && place.device.mode === 'mps' && workloads > 0) {
    return { reason: 'workloads are clients of its MPS server', numbers: { workloads } };
  }
  const { occupants, foreignMiB } = occupancyOf(place, reservations);
  const busy = occupants.filter((one) => one.users > 0);
  const reused = reuses ? instanceFor(occupants, request) : undefined;
  const unwanted = occupants.filter((one) => one !== reused && !mayShare(place.device.mode, tenant(one), request));
  const staying = unwanted.filter(cannotGo);
  if (staying.length > 0) {
    return { reason: 'isolation: it is shared with others', numbers: { others: staying.length } };
  }
  if (place.device.mode === 'exclusive' && reused === undefined && busy.length > 0) {
    return { reason: 'it serves one process at a time', numbers: { running: busy.length } };
  }
  if (place.device.mode === 'mps' && reused === undefined && occupants.length >= mpsClientLimit) {
    return { reason: 'it has as many clients as MPS serves', numbers: { clients: occupants.length } };
  }
  const freeMiB = place.capacityMiB - foreignMiB - sum(occupants.map((one) => one.memoryMiB));
  const reclaimed = reused === undefined ? reclaim(occupants, unwanted, share.memoryMiB - freeMiB) : unwanted;
  if (reclaimed === undefined) {
    const idleMiB = sum(occupants.filter((one) => one.users === 0).map((one) => one.memoryMiB));
    return { reason: 'too little free memory', numbers: { freeMiB, idleMiB, needMiB: share.memoryMiB } };
  }
  return {
    place,
    load: sum(busy.map((one) => one.smRequest)),
    freeMiB,
    reuses: reused,
    reclaim: reclaimed.flatMap((one) => one.container ?? []),
  };
}

/** One that runs, or that the agent has not named yet, cannot be removed. */
function cannotGo({ users, container }: Occupant): boolean {
  return users > 0 || container === undefined;
}

/** Whether isolation forbids a request a place for as long as those are there who cannot be removed. */
export function isClosedTo({ device }: Place, occupants: readonly Occupant[], request: PlacementRequest): boolean {
  return occupants.some((one) => cannotGo(one) && !mayShare(device.mode, tenant(one), request));
}

function tenant({ gang = [], ...occupant }: Occupant): Tenant {
  return { ...occupant, gpus: Math.max(1, gang.length) };
}

function isInstanceOf(occupant: Occupant, { action, namespace, subject, share, gpus }: PlacementRequest): boolean {
  const isCallers = occupant.namespace === namespace && occupant.subject === subject;
  const isSame = occupant.action === action && isCallers && (occupant.gang?.length ?? 1) === gpus;
  return isSame && occupant.shareClass === share.shareClass && occupant.memoryMiB >= share.memoryMiB;
}

/** An instance that idles, or else one that runs a batch while the next one gathers. */
function instanceFor(occupants: readonly Occupant[], request: PlacementRequest): Occupant | undefined {
  const instances = occupants.filter((one) => isInstanceOf(one, request));
  const idle = instances.find((one) => one.users === 0 && one.container !== undefined);
  const most = request.batch > 1 ? 2 * request.batch : 0;
  return idle ?? instances.find((one) => one.users < most);
}

/** The candidates that are all devices of one instance. */
function idleGang(candidates: readonly Candidate[], gpus: number): Candidate[] | undefined {
  for (const { reuses } of candidates) {
    const alike = reuses === undefined ? [] : candidates.filter((one) => one.reuses?.id === reuses.id);
    if (alike.length === gpus) return alike;
  }
  return undefined;
}

/** What idles and goes so that `lackingMiB` more are free, `unwanted` in any case; undefined if that is not enough. */
function reclaim(
  occupants: readonly Occupant[],
  unwanted: readonly Occupant[],
  lackingMiB: number,
): Occupant[] | undefined {
  const gone = [...unwanted];
  let lacking = lackingMiB - sum(gone.map((one) => one.memoryMiB));
  const idle = occupants.filter((one) => one.users === 0 && one.container !== undefined && !gone.includes(one));
  // What saves the least time of loading for its memory; where that is not known, what has no action yet, the largest first.
  const savedPerMiB = ({ loadMs = 0, memoryMiB }: Occupant): number => loadMs / memoryMiB;
  idle.sort(
    (one, other) =>
      savedPerMiB(one) - savedPerMiB(other) ||
      Number(one.action !== undefined) - Number(other.action !== undefined) ||
      other.memoryMiB - one.memoryMiB,
  );
  for (const one of idle) {
    if (lacking <= 0) break;
    gone.push(one);
    lacking -= one.memoryMiB;
  }
  return lacking <= 0 ? gone : undefined;
}

/** The best of those that are alike and on one node, as many as are needed; undefined if there are not as many. */
function choose(candidates: readonly Candidate[], { gpus, share }: PlacementRequest): Candidate[] | undefined {
  const rank = (one: Candidate): number[] => [
    Number(one.load + share.smRequest > 1),
    Number(one.reuses === undefined),
    Number(one.reclaim.length > 0),
    one.load,
    -one.freeMiB,
  ];
  const ranked = candidates
    .map((candidate) => ({ candidate, rank: rank(candidate) }))
    .sort((one, other) => compare(one.rank, other.rank))
    .map(({ candidate }) => candidate);
  if (gpus === 1) return ranked.slice(0, 1).length === 1 ? ranked.slice(0, 1) : undefined;
  for (const { place } of ranked) {
    const alike = ranked.filter((one) => gangKey(one.place) === gangKey(place));
    if (alike.length >= gpus) return alike.slice(0, gpus);
  }
  return undefined;
}

function compare(one: readonly number[], other: readonly number[]): number {
  for (const [at, value] of one.entries()) {
    const difference = value - (other[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
