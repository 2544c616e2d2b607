// The guard around a policy: checks of its decisions, and a spare policy for faults.
import { shareClasses } from '@gpuwhisk/common/gpu';
import type { DeviceHealth } from '@gpuwhisk/common/gpu';
import { allWait } from '../view/decision.js';
import type { Decision, Start, Action } from '../view/decision.js';
import type { SchedulingEvent, View, Task } from '../view/view.js';
import type { GeometryReport } from '../stages/geometry/geometry.js';
import type { Policy } from './policy.js';
import { endsInTime, mostClients, refusalOf } from '../stages/place/fact-filters.js';
import { alikeGroups } from '../stages/place/gangs.js';
import { requestOfTask } from '../view/requests.js';
import type { PlaceAccount } from '../ledger/account.js';
import type { Ledger } from '../ledger/ledger.js';
import { placeIdsOf } from '../ledger/occupancy.js';

/** A view and the event on which a policy failed; absent: it failed outside of a decision. */
export interface FaultyPass {
  view: View;
  event: SchedulingEvent;
}

/** Called with why a policy failed. */
type OnFault = (fault: string, pass?: FaultyPass) => void;

/**
 * `policy`; where it throws, uses the ledger beyond what a pass may, or decides what cannot be carried out, `spare` decides
 * instead and nothing is held that the policy has held. Where `spare` fails too, all tasks wait. Every failure is told.
 */
export function guarded(policy: Policy, spare: Policy, onFault: OnFault): Policy {
  const decideBy = (one: Policy, view: View, event: SchedulingEvent): Decision | undefined => {
    const { decision, held, fault } = attempt(one, view, event);
    if (fault === undefined) return decision;
    for (const id of held) view.ledger.ledger.release(id);
    onFault(fault, { view, event });
    giveBack(one, decision, onFault);
    return undefined;
  };
  const told = (what: () => void): void => {
    const fault = faultIn(what);
    if (fault !== undefined) onFault(fault);
  };
  return {
    name: policy.name,
    scales: policy.scales ?? false,
    procures: policy.procures ?? false,
    protects: policy.protects ?? false,
    moves: policy.moves ?? false,
    decide: (view, event) => decideBy(policy, view, event) ?? decideBy(spare, view, event) ?? allWait(view),
    placesForInstance(view, task) {
      let places: readonly string[] | undefined;
      told(() => (places = policy.placesForInstance?.(view, task)));
      return places;
    },
    observe: (run) => told(() => policy.observe?.(run)),
    returned: (task) => told(() => policy.returned?.(task)),
    geometry() {
      let report: GeometryReport | undefined;
      told(() => (report = policy.geometry?.()));
      return report;
    },
    saved() {
      let saved: unknown;
      told(() => (saved = policy.saved?.()));
      return saved;
    },
    restore: (saved) => policy.restore?.(saved),
  };
}

interface Attempt {
  /** Undefined: the policy threw. */
  decision: Decision | undefined;
  /** Activations that it holds in the ledger. */
  held: ReadonlySet<string>;
  /** Undefined: the decision can be carried out. */
  fault: string | undefined;
}

function attempt(policy: Policy, view: View, event: SchedulingEvent): Attempt {
  const { ledger } = view.ledger;
  const tasks = new Map(view.waiting.map((task) => [task.id, task]));
  const result: Attempt = { decision: undefined, held: new Set(), fault: undefined };
  ledger.beginPass(mostCallsOn(view), tasks);
  result.fault = faultIn(() => {
    result.decision = policy.decide(view, event);
  });
  result.held = ledger.endPass();
  const { decision, held } = result;
  if (result.fault !== undefined) return result;
  const thrown = faultIn(() => {
    // eslint-disable-next-line @typescript-eslint/no-non-null-assertion -- checked whatever it is: a faulty policy may give none
    result.fault = faultOf(decision!, { view, tasks, held });
  });
  result.fault = thrown ?? result.fault;
  return result;
}

/** Has a policy correct its own account of starts that are not carried out. */
function giveBack(policy: Policy, decision: Decision | undefined, onFault: OnFault): void {
  const starts: readonly (Start | null)[] = Array.isArray(decision?.starts) ? decision.starts : [];
  const fault = faultIn(() => {
    for (const start of starts) if (typeof start?.task === 'string') policy.returned?.(start.task);
  });
  if (fault !== undefined) onFault(fault);
}

function faultIn(what: () => void): string | undefined {
  try {
    what();
    return undefined;
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  }
}

/** Calls of the ledger in one pass: for each task several times as many as the dearest policy of the registry makes. */
const callsPerTask = 100;
/** For each place, and for each place that a task is limited to. */
const callsPerPlace = 10;
/** For launches, which no task stands for. */
const callsPerPass = 1000;

/** How often a policy may call the ledger on a view. */
export function mostCallsOn({ waiting, ledger }: View): number {
  const allowed = waiting.reduce((sum, task) => sum + (task.allowed?.size ?? 0), 0);
  const places = ledger.ledger.accounts().length;
  return callsPerPass + callsPerTask * waiting.length + callsPerPlace * (places + allowed);
}

/** What a decision was made on, and what it has left in the ledger. */
interface DecidedOn {
  view: View;
  /** The waiting tasks by id. */
  tasks: ReadonlyMap<string, Task>;
  /** Activations that the policy has placed in the ledger. */
  held: ReadonlySet<string>;
}

/**
 * Why a decision cannot be carried out; undefined if it can. Whether the subject of an action is still there is seen when the
 * action is carried out. Throws TypeError for a decision that is no object, or lists of no objects.
 */
function faultOf(decision: Decision, { view, tasks, held }: DecidedOn): string | undefined {
  const { starts, refused, actions = [] } = decision;
  return (
    formFault(decision) ??
    taskFault(decision, tasks) ??
    startsFault(decision, view, tasks) ??
    leakOf(decision, held) ??
    wakeFault(decision.wakeAt) ??
    [...starts, ...refused].map(({ reason }) => reasonFault(reason)).find(isFault) ??
    actions.map(actionFault).find(isFault)
  );
}

function isFault(fault: string | undefined): fault is string {
  return fault !== undefined;
}

function formFault(decision: Decision): string | undefined {
  const { starts, refused, bestEffort, order, rejected, actions = [], sharings = [] } = decision;
  const lists = { starts, refused, bestEffort, order, rejected, actions, sharings };
  const missing = Object.entries(lists).find(([, list]) => !Array.isArray(list));
  return missing && `'${missing[0]}' of a decision is no list`;
}

function taskFault(
  { starts, refused, bestEffort, order }: Decision,
  tasks: ReadonlyMap<string, Task>,
): string | undefined {
  const decided = new Set<string>();
  for (const { task } of [...starts, ...refused]) {
    if (!tasks.has(task)) return `task '${task}' does not wait`;
    if (decided.has(task)) return `task '${task}' is decided about twice`;
    decided.add(task);
  }
  const strange = [...bestEffort, ...order].find((task) => !tasks.has(task));
  return strange === undefined ? undefined : `task '${strange}' does not wait`;
}

function startsFault(
  { starts }: Decision,
  { ledger: { ledger } }: View,
  tasks: ReadonlyMap<string, Task>,
): string | undefined {
  const isPlace = (id: string): boolean => ledger.account(id) !== undefined;
  for (const { task, gpu, alsoOn = [], share, request = share } of starts) {
    // eslint-disable-next-line @typescript-eslint/no-non-null-assertion -- the tasks of all starts were found to wait
    const fault = startFault(tasks.get(task)!, [gpu, ...alsoOn], { share, request }, isPlace);
    if (fault !== undefined) return `task '${task}' is started ${fault}`;
  }
  return overfull(starts, tasks, ledger);
}

/** A reservation that no start is made of would never be released. */
function leakOf({ starts }: Decision, held: ReadonlySet<string>): string | undefined {
  if (held.size === 0) return undefined;
  const started = new Set(starts.filter(({ choice }) => choice !== undefined).map(({ task }) => task));
  const leaked = [...held].find((id) => !started.has(id));
  return leaked === undefined ? undefined : `'${leaked}' is held in the ledger and is not started`;
}

function wakeFault(wakeAt: unknown): string | undefined {
  const isSound = wakeAt === undefined || (typeof wakeAt === 'number' && !Number.isNaN(wakeAt));
  return isSound ? undefined : `it is to be asked again at ${JSON.stringify(wakeAt)}`;
}

function reasonFault(reason: unknown): string | undefined {
  return typeof reason === 'string' ? undefined : `a reason is ${JSON.stringify(reason)}`;
}

const isFraction = (value: unknown): boolean => typeof value === 'number' && value > 0 && value <= 1;
const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';
const areTexts = (values: unknown): boolean => Array.isArray(values) && values.every(isText);

function actionFault(action: Action): string | undefined {
  const isSound = isText(action?.reason) && fieldsAreSound(action);
  return isSound ? undefined : `an action is malformed: ${JSON.stringify(action)}`;
}

function fieldsAreSound(action: Action): boolean {
  switch (action.kind) {
    case 'launch': {
      const { function: name, namespace, gpus, share, limit = share, request = limit } = action;
      const isShare =
        isFraction(share) && isFraction(limit) && isFraction(request) && request <= limit && limit <= share;
      return isText(name) && isText(namespace) && areTexts(gpus) && gpus.length > 0 && isShare;
    }
    case 'retire':
      return isText(action.instance) && (action.graceMs === undefined || action.graceMs >= 0);
    case 'reshare': {
      const { instance, request, limit, whileBusy } = action;
      const isTime = whileBusy === undefined || whileBusy === true;
      return isTime && isText(instance) && isFraction(limit) && isFraction(request) && request <= limit;
    }
    case 'cut':
      return isText(action.device) && areTexts(action.profiles);
    case 'acquire':
      return action.market === 'spot' || action.market === 'on-demand';
    case 'give-back':
      return isText(action.node);
    default:
      return false;
  }
}

function startFault(
  { gpus, request: asked }: Task,
  places: readonly string[],
  { share, request }: { share: number; request: number },
  isPlace: (id: string) => boolean,
): string | undefined {
  const unknown = places.find((id) => !isPlace(id));
  if (unknown !== undefined) return `on '${unknown}', which is not there`;
  const count = new Set(places).size;
  const spans = gpus === 1 ? (asked?.spans ?? 1) : gpus;
  if (count < gpus || count > spans) return `on ${count} places, and needs ${gpus}`;
  if (!(share > 0 && share <= 1)) return `with a share of ${share}`;
  if (!(request > 0 && request <= share)) return `with a request of ${request} and a share of ${share}`;
  return undefined;
}

/**
 * Why starts cannot be carried out together by the facts of the ledger's places; undefined if they can. Every start names as
 * many known places as its task needs.
 */
function overfull(starts: readonly Start[], tasks: ReadonlyMap<string, Task>, ledger: Ledger): string | undefined {
  for (const start of starts) {
    const places = [start.gpu, ...(start.alsoOn ?? [])].flatMap((id) => ledger.account(id) ?? []);
    // eslint-disable-next-line @typescript-eslint/no-non-null-assertion -- the tasks of all starts were found to wait
    const task = tasks.get(start.task)!;
    const fault =
      unlikeFault(places) ??
      forbiddenFault(task, places) ??
      (start.choice !== undefined && start.choice.placement === undefined
        ? unplacedFault(task, places)
        : heldFault(start, places, ledger));
    if (fault !== undefined) return `task '${start.task}' is started ${fault}`;
  }
  return undefined;
}

function unlikeFault(places: readonly PlaceAccount[]): string | undefined {
  const isAlike = alikeGroups(places, ({ place }) => place).length <= 1;
  return isAlike ? undefined : 'on GPUs that are not alike on one node';
}

const healthy: DeviceHealth = { state: 'healthy', reasons: [] };

function forbiddenFault({ allowed }: Task, places: readonly PlaceAccount[]): string | undefined {
  const forbidden = places.find(({ id }) => allowed?.has(id) === false);
  return forbidden && `on '${forbidden.id}', where it may not run`;
}

/** Places that were chosen for a task and could not take it. Where their facts do not forbid it, it waits. */
function unplacedFault(task: Task, places: readonly PlaceAccount[]): string | undefined {
  const work = requestOfTask(task);
  for (const account of places) {
    const { id, health } = account;
    // A place that leaves is allowed only where an instance is there for the task.
    const isJoined = task.allowed?.has(id) === true && endsInTime(health, work);
    const refusal = refusalOf(isJoined ? { ...account, health: healthy } : account, work);
    if (refusal !== undefined)
      return `on '${id}', which cannot take it: ${refusal.reason}${numbersOf(refusal.numbers)}`;
  }
  return undefined;
}

/** A policy holds without the ledger's asking the filters: the sums of the places tell what it has done. */
function heldFault({ task, choice }: Start, places: readonly PlaceAccount[], ledger: Ledger): string | undefined {
  const placement = choice?.placement;
  const ids = placement === undefined ? [] : placeIdsOf(placement);
  const isThere = ids.length === places.length && places.every(({ id }) => ids.includes(id));
  if (placement === undefined || !isThere || ledger.placementOf(task) !== placement)
    return 'by a placement that it does not hold there';
  const { shareClass, smRequest, smLimit, memoryMiB } = placement.share;
  const isShare = shareClasses.includes(shareClass) && smRequest > 0 && smRequest <= smLimit && smLimit <= 1;
  if (!isShare || !(memoryMiB >= 0)) return `with a placement of ${JSON.stringify(placement.share)}`;
  // What an instance that is there holds was given to it before.
  if (choice?.reuses !== undefined) return undefined;
  for (const { id, mode, availableMiB, clients, clientLimit, busy } of places) {
    if (availableMiB < 0) return `on '${id}', which lacks ${-availableMiB} MiB for it`;
    if (mode === 'exclusive' && busy > 1) return `on '${id}', which serves one process at a time`;
    if (clients > mostClients({ mode, clientLimit })) return `on '${id}', which has as many clients as MPS serves`;
  }
  return undefined;
}

function numbersOf(numbers: Record<string, number>): string {
  const told = Object.entries(numbers).map(([name, value]) => `${name} ${value}`);
  return told.length === 0 ? '' : ` (${told.join(', ')})`;
}
