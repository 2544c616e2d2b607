import { allWait } from '../view/decision.js';
import type { Decision, Start } from '../view/decision.js';
import type { SchedulingEvent, View } from '../view/view.js';
import { faultOf } from './decision-faults.js';
import type { Policy } from './policy.js';

/** A view and the event on which a policy failed; absent: it failed outside of a decision. */
export interface FaultyPass {
  view: View;
  event: SchedulingEvent;
}

/** Called with why a policy failed. */
export type OnFault = (fault: string, pass?: FaultyPass) => void;

/**
 * `policy`; where it throws, uses the ledger beyond what a pass may, or decides what cannot be carried out, `spare` decides
 * instead and nothing is held that the policy has held. Where `spare` fails too, all tasks wait. Every failure is told.
 */
export function guarded(policy: Policy, spare: Policy, onFault: OnFault): Policy {
  const decideBy = (one: Policy, view: View, event: SchedulingEvent): Decision | undefined => {
    const { decision, held, fault } = attempt(one, view, event);
    if (fault === undefined) return decision;
    for (const id of held) view.ledger?.ledger.release(id);
    onFault(fault, { view, event });
    giveBack(one, decision, onFault);
    return undefined;
  };
  const told = (what: () => void): void => {
    const fault = faultIn(what);
    if (fault !== undefined) onFault(fault);
  };
  return {
    ...{ name: policy.name, scales: policy.scales ?? false },
    decide: (view, event) => decideBy(policy, view, event) ?? decideBy(spare, view, event) ?? allWait(view),
    observe: (run) => told(() => policy.observe?.(run)),
    returned: (task) => told(() => policy.returned?.(task)),
    saved: () => policy.saved?.(),
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
  const ledger = view.ledger?.ledger;
  const tasks = new Map(view.waiting.map((task) => [task.id, task]));
  const result: Attempt = { decision: undefined, held: new Set(), fault: undefined };
  ledger?.beginPass(mostCallsOn(view), tasks);
  result.fault = faultIn(() => {
    result.decision = policy.decide(view, event);
  });
  result.held = ledger?.endPass() ?? result.held;
  const { decision, held } = result;
  if (result.fault !== undefined) return result;
  const thrown = faultIn(() => {
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
  const places = ledger?.ledger.accounts().length ?? 0;
  return callsPerPass + callsPerTask * waiting.length + callsPerPlace * (places + allowed);
}
