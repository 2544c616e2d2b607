// Placements that are held in the ledger: batches that are joined, starts, and launches ahead of requests.
import { groupedBy } from '@gpuwhisk/common/collections';
import type { Rejection } from '@gpuwhisk/common/gpu';
import type { Start, Action, TaskRejection } from '../../view/decision.js';
import type { Reservation } from '../../ledger/occupancy.js';
import { isPlaced, neededMiB } from '../../ledger/account.js';
import type { PlacedChoice, PlacementChoice, PlacementRequest } from '../../ledger/account.js';
import type { View, FunctionState, Task } from '../../view/view.js';
import { idleInstances, shareInInstance } from './candidate.js';
import { bindTo, joinBatch, placeLeastLoaded } from './least-loaded.js';
import type { Placing } from './place.js';
import { functionKey, placeIdsOf } from '../../ledger/occupancy.js';
import { requestOfTask } from '../../view/requests.js';
import type { Ledger } from '../../ledger/ledger.js';

/**
 * Starts of tasks that join an instance of their function which runs a batch while the next one gathers: they take nothing of
 * a GPU that the instance does not have. They are held in the ledger of the view.
 */
export function joinBatches({ at, waiting, ledger: open }: View): Start[] {
  const { ledger, isOpen, epoch } = open;
  return waiting.flatMap(({ id, request, allowed }): Start[] => {
    if (request === undefined || request.batch === 1) return [];
    const limits = { kept: new Set<string>(), isOpen, ...(allowed && { allowed }) };
    const choice = joinBatch(ledger, request, limits, { epoch, at });
    if (!isPlaced(choice)) return [];
    ledger.hold(reservationOf(id, request, choice), Infinity);
    return [startOf(id, choice, 'joins a batch')];
  });
}

/** The reservation in the ledger of a task that was placed. */
export function reservationOf(
  task: string,
  { action, namespace, subject, isolation }: PlacementRequest,
  { placement, reuses }: PlacedChoice,
): Reservation {
  return {
    activationId: task,
    action,
    namespace,
    isolation,
    placement,
    ended: false,
    ...(subject !== undefined && { subject }),
    ...(reuses !== undefined && { reuses }),
  };
}

/** The start of a task that was placed. */
export function startOf(task: string, choice: PlacedChoice, reason: string): Start {
  const { slice, devices, share } = choice.placement;
  const { smRequest: request, smLimit } = share;
  const [gpu, ...alsoOn] = slice === undefined ? devices : [slice];
  return {
    task,
    // eslint-disable-next-line @typescript-eslint/no-non-null-assertion -- a placement has at least one device
    gpu: gpu!,
    ...(alsoOn.length > 0 && { alsoOn }),
    share: smLimit,
    ...(request < smLimit && { request }),
    reason,
    choice,
  };
}

/**
 * Starts with the placements that come of the places which a plan chose: in an instance that idles there, else in a new one.
 * They are held in the ledger of the view. A start whose places cannot take it has none.
 */
export function boundStarts(view: View, starts: readonly Start[], rejected: readonly TaskRejection[]): Start[] {
  const tasks = new Map(view.waiting.map((task) => [task.id, task]));
  const alternatives = groupedBy(rejected, ({ task }) => task);
  return starts.map((start) => {
    const task = tasks.get(start.task);
    if (start.choice !== undefined || task === undefined) return start;
    const { placement, reuses } = boundTo(view, task, start);
    const told = { rejected: (alternatives.get(start.task) ?? []).map(rejectionOf) };
    return { ...start, choice: { ...(placement && { placement }), ...(reuses !== undefined && { reuses }), ...told } };
  });
}

const rejectionOf = ({ what, reason, numbers }: TaskRejection): Rejection => ({ what, reason, numbers });

function boundTo({ at, ledger: open }: View, task: Task, start: Start): PlacementChoice {
  const { ledger, isOpen, epoch } = open;
  const asked = requestOfTask(task);
  const account = ledger.account(start.gpu);
  if (account === undefined) return { rejected: [] };
  const { occupants } = account;
  const share = task.share !== undefined ? asked.share : shareInInstance(occupants, task, start, asked.share);
  // A plan leaves out the start of an instance that is there.
  const startMs = idleInstances(occupants, task).length > 0 ? 0 : (task.startMs ?? 0);
  const request = { ...asked, share };
  const choice = bindTo(ledger, request, { ids: [start.gpu, ...(start.alsoOn ?? [])], isOpen }, { epoch, at });
  if (!isPlaced(choice)) return choice;
  const { soloMs } = task;
  if (soloMs !== undefined && start.predictedMs !== undefined) {
    choice.placement.predicted = { soloMs, runMs: Math.max(0, start.predictedMs - startMs) };
  }
  ledger.hold(reservationOf(task.id, request, choice), Infinity);
  return choice;
}

/** More instances of one function. */
interface WantedInstances {
  of: Pick<FunctionState, 'task'>;
  count: number;
  reason: string;
}

/** Places with the least given away, at the share that the owner has fixed or else whole. */
const leastLoaded: Placing = {
  requestOf: requestOfTask,
  begin:
    ({ ledger: { ledger } }) =>
    (request, limits, stamp) =>
      placeLeastLoaded(ledger, request, limits, stamp),
};

/** Instances that are launched in one second, at most: what is wanted still is launched in the next one. */
const mostLaunches = 16;

/**
 * Chooses places for one more instance of a task's function, of those `allowed` (ids); undefined: none will do. Each choice
 * counts on those before it.
 */
export type InstancePlaces = (task: Task, allowed: ReadonlySet<string>) => readonly string[] | undefined;

/** The places that are chosen in one view, in whose ledger what was chosen is held. */
export type InstancePlacesIn = (view: View) => InstancePlaces;

/** How places for instances ahead of requests are found; by default where the least is given away. */
export interface Launching {
  placing?: Placing | undefined;
  /** Leaves `placing` only the chosen places. */
  instancePlacesIn?: InstancePlacesIn | undefined;
}

/**
 * Places for instances that are wanted ahead of requests, only where nothing has to go for them. Each counts on those before
 * it.
 */
export function launches(
  view: View,
  wanted: readonly WantedInstances[],
  { placing = leastLoaded, instancePlacesIn }: Launching = {},
): Action[] {
  if (wanted.length === 0) return [];
  const { ledger, isOpen, epoch } = view.ledger;
  const choose = instancePlacesIn?.(view);
  const placeIn = placing.begin(view, []);
  const narrows = choose !== undefined || placing.judgesTasks === true;
  const limits = { kept: new Set<string>(), isOpen, isNew: true };
  const held: string[] = [];
  const actions: Action[] = [];
  try {
    for (const { of, count, reason } of wanted) {
      const request = placing.requestOf(of.task, ledger, view.at);
      if ('reason' in request) continue;
      const { action, namespace } = request;
      for (let more = 0; more < count && actions.length < mostLaunches; more += 1) {
        const roomy = narrows ? new Set(roomyFor(request, ledger)) : undefined;
        const chosen = choose === undefined || roomy === undefined ? roomy : choose(of.task, roomy);
        if (narrows && chosen === undefined) break;
        const narrowed = chosen === undefined ? limits : { ...limits, allowed: new Set(chosen) };
        const choice = placeIn(request, narrowed, { epoch, at: view.at }, of.task);
        if (!isPlaced(choice) || choice.placement.reclaim !== undefined) break;
        const { placement } = choice;
        const activationId = `launch ${functionKey(request)} ${more}`;
        ledger.hold(reservationOf(activationId, request, choice), Infinity);
        held.push(activationId);
        const { shareClass, smRequest, smLimit } = placement.share;
        const share = shareClass / 100;
        const within = smRequest < share ? { request: smRequest, limit: smLimit } : {};
        const gpus = placeIdsOf(placement);
        actions.push({ kind: 'launch', function: action, namespace, gpus, share, ...within, reason });
      }
    }
  } finally {
    for (const id of held) ledger.release(id);
  }
  return actions;
}

/** Ids of the healthy places with free memory for a request. */
function roomyFor(request: PlacementRequest, ledger: Ledger): string[] {
  return ledger
    .accounts()
    .flatMap((one) => (one.health?.state === 'healthy' && one.freeMiB >= neededMiB(request, one) ? one.id : []));
}
