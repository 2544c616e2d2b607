import type { Action } from '../view/action.js';
import { allWait } from '../view/decision.js';
import type { Decision } from '../view/decision.js';
import type { SchedulingEvent, Task, View } from '../view/view.js';
import type { Policy } from './policy.js';

/**
 * `policy`; where it throws or decides what cannot be, `spare` decides instead, `onFault` is told why and on which view, and
 * nothing that it has held is held any more. Where `spare` fails too, everybody waits.
 */
export function guarded(policy: Policy, spare: Policy, onFault: (fault: string, view: View) => void): Policy {
  const decideBy = (one: Policy, view: View, event: SchedulingEvent): Decision | undefined => {
    let fault: string | undefined;
    try {
      const decision = one.decide(view, event);
      fault = faultOf(decision, view);
      if (fault === undefined) return decision;
      for (const { task } of decision.starts) one.returned?.(task);
    } catch (error) {
      fault = error instanceof Error ? (error.stack ?? error.message) : String(error);
    }
    for (const { id } of view.waiting) view.ledger?.ledger.release(id);
    onFault(fault, view);
    return undefined;
  };
  return {
    name: policy.name,
    decide: (view, event) => decideBy(policy, view, event) ?? decideBy(spare, view, event) ?? allWait(view),
    observe: (run) => policy.observe?.(run),
    returned: (task) => policy.returned?.(task),
    saved: () => policy.saved?.(),
    restore: (saved) => policy.restore?.(saved),
  };
}

/** Why a decision cannot be carried out; undefined if it can. Whether places have room is seen when they are bound. */
function faultOf({ starts, refused, bestEffort, order, actions = [] }: Decision, view: View): string | undefined {
  const tasks = new Map(view.waiting.map((task) => [task.id, task]));
  const decided = new Set<string>();
  for (const { task } of [...starts, ...refused]) {
    if (!tasks.has(task)) return `task '${task}' does not wait`;
    if (decided.has(task)) return `task '${task}' is decided about twice`;
    decided.add(task);
  }
  for (const task of [...bestEffort, ...order]) if (!tasks.has(task)) return `task '${task}' does not wait`;
  const isPlace = placesIn(view);
  for (const { task, gpu, alsoOn = [], share, request = share } of starts) {
    const fault = startFault(tasks.get(task)!, [gpu, ...alsoOn], { share, request }, isPlace);
    if (fault !== undefined) return `task '${task}' is started ${fault}`;
  }
  return actions.map(actionFault).find((fault) => fault !== undefined);
}

/** Whether what an action is about is still there is seen when it is carried out. */
function actionFault(action: Action): string | undefined {
  const isFraction = (value: number): boolean => value > 0 && value <= 1;
  if (action.kind === 'launch' && (action.gpus.length === 0 || !isFraction(action.share))) {
    return `an instance is launched on ${action.gpus.length} places with a share of ${action.share}`;
  }
  if (
    action.kind === 'reshare' &&
    !(isFraction(action.limit) && isFraction(action.request) && action.request <= action.limit)
  ) {
    return `an instance is to have a request of ${action.request} and a limit of ${action.limit}`;
  }
  return undefined;
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

/** Tasks and GPUs of a view that are logged, at most. */
const mostLogged = 100;

/** A view as plain data, for a log. */
export function savedView({ at, gpus, waiting }: View): object {
  const plain = ({ allowed, ...task }: Task): object => ({ ...task, ...(allowed && { allowed: [...allowed] }) });
  return {
    ...{ at, tasks: waiting.length, gpuCount: gpus.length },
    waiting: waiting.slice(0, mostLogged).map(plain),
    gpus: gpus.slice(0, mostLogged),
  };
}
