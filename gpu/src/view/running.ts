// What runs on a place, by its account and what is known of runs.
import type { GpuKind, Resident, Share } from '@gpuwhisk/common/gpu';
import type { PlaceAccount } from '../ledger/account.js';
import type { Occupant, Reservation } from '../ledger/occupancy.js';
import { kindOf } from '../ledger/places.js';
import type { Place } from '../ledger/places.js';
import { usedPlaces } from '../ledger/used-places.js';
import type { KnownRuns, RunningTask, Task, View } from './view.js';

/**
 * The tasks in the instances of a place that are in use, in their order, at `at` (epoch ms); `held`: the reservations there. Of an
 * instance whose run is not known little is told.
 */
export function runningOn(
  { place, occupants }: PlaceAccount,
  held: Iterable<Reservation>,
  known: KnownRuns,
  at: number,
): RunningTask[] {
  const here = [...held];
  return occupants.filter(({ users }) => users > 0).map((one) => runningIn(place, one, here, known, at));
}

/** The same of a place of a view. */
export function tasksOn(
  { at, ledger, runs }: Pick<View, 'at' | 'ledger' | 'runs'>,
  account: PlaceAccount,
): RunningTask[] {
  return runningOn(account, ledger.ledger.heldOn(account.id), runs, at);
}

/** A place of a view with the tasks that run there. */
export interface SeenPlace extends GpuKind {
  id: string;
  account: PlaceAccount;
  /** Whether the limit of what runs can be moved below its class without a restart (kernel tokens). */
  movesShares: boolean;
  running: readonly RunningTask[];
}

/** The places of a view that take work, in the order of the ledger. */
export function seenPlaces(view: Pick<View, 'at' | 'ledger' | 'runs'>): SeenPlace[] {
  return usedPlaces(view.ledger).map((account) => {
    const { id, place } = account;
    const { gpuType, mode } = kindOf(place);
    return {
      id,
      gpuType,
      mode,
      account,
      movesShares: place.node.movesShares === true,
      running: tasksOn(view, account),
    };
  });
}

/** The activations in an instance: those that its agent reports, and those sent since. */
export function activationsIn({ node }: Place, { id, container }: Occupant, here: readonly Reservation[]): string[] {
  const told = node.residents.find((one) => one.container === container)?.activations ?? [id];
  const sent = here.filter(({ reuses, ended }) => reuses === id && !ended).map(({ activationId }) => activationId);
  return [...told, ...sent];
}

function runningIn(
  place: Place,
  occupant: Occupant,
  here: readonly Reservation[],
  known: KnownRuns,
  at: number,
): RunningTask {
  const { id, container, action = '', namespace = '', memoryMiB, shareClass, gang } = occupant;
  const run = activationsIn(place, occupant, here)
    .map(known)
    .find((one) => one !== undefined);
  const unknown: Task = {
    id,
    function: action,
    version: '',
    namespace,
    batch: 1,
    gpus: 1,
    arrivedAt: at,
    class: 'inference',
    memoryMiB,
  };
  const running = { task: { ...(run?.task ?? unknown), memoryMiB }, startedAt: run?.startedAt ?? at };
  // Tokens belong to one device, and what is not known to run cannot be predicted.
  const isMovable =
    place.node.movesShares === true && container !== undefined && gang === undefined && run !== undefined;
  if (!isMovable) return { ...running, share: shareClass / 100 };
  return { ...running, share: shareNow(place, occupant).smLimit, instance: id, class: shareClass / 100 };
}

/** The resident that an occupant is shown as; undefined: its agent does not show it. */
export function residentOf({ node }: Place, { container }: Occupant): Resident | undefined {
  return node.residents.find((one) => one.container === container);
}

/** The share that an occupant's agent reports, or else the promised one. */
export function shareNow(place: Place, occupant: Occupant): Pick<Share, 'smRequest' | 'smLimit'> {
  const { request, limit } = occupant;
  return residentOf(place, occupant)?.share ?? { smRequest: request / 1000, smLimit: limit / 1000 };
}
