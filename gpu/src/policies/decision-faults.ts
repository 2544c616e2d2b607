import type { Action } from '../view/action.js';
import type { Decision } from '../view/decision.js';
import type { Task, View } from '../view/view.js';
import { overfull } from './overfull.js';

/** What a decision was made on, and what it has left in the ledger. */
export interface DecidedOn {
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
export function faultOf(decision: Decision, { view, tasks, held }: DecidedOn): string | undefined {
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
  const { starts, refused, bestEffort, order, rejected, actions = [] } = decision;
  const lists = { starts, refused, bestEffort, order, rejected, actions };
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

function startsFault({ starts }: Decision, view: View, tasks: ReadonlyMap<string, Task>): string | undefined {
  const isPlace = placesIn(view);
  for (const { task, gpu, alsoOn = [], share, request = share } of starts) {
    const fault = startFault(tasks.get(task)!, [gpu, ...alsoOn], { share, request }, isPlace);
    if (fault !== undefined) return `task '${task}' is started ${fault}`;
  }
  return view.ledger && overfull(starts, tasks, view.ledger.ledger);
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
      const { function: name, namespace, gpus, share } = action;
      return isText(name) && isText(namespace) && areTexts(gpus) && gpus.length > 0 && isFraction(share);
    }
    case 'retire':
      return isText(action.instance) && (action.graceMs === undefined || action.graceMs >= 0);
    case 'reshare': {
      const { instance, request, limit } = action;
      return isText(instance) && isFraction(limit) && isFraction(request) && request <= limit;
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
  { gpus }: Task,
  places: readonly string[],
  { share, request }: { share: number; request: number },
  isPlace: (id: string) => boolean,
): string | undefined {
  const unknown = places.find((id) => !isPlace(id));
  if (unknown !== undefined) return `on '${unknown}', which is not there`;
  if (new Set(places).size !== gpus) return `on ${new Set(places).size} places, and needs ${gpus}`;
  if (!(share > 0 && share <= 1)) return `with a share of ${share}`;
  if (!(request > 0 && request <= share)) return `with a request of ${request} and a share of ${share}`;
  return undefined;
}

function placesIn(view: View): (id: string) => boolean {
  const { ledger } = view;
  if (ledger !== undefined) return (id) => ledger.ledger.account(id) !== undefined;
  const ids = new Set(view.gpus.map(({ id }) => id));
  return (id) => ids.has(id);
}
