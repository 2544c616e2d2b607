// Protection of workloads under every policy: functions stay away from devices whose workloads are slower than they tolerate.
import { workloadGuard, workloadGuardDefaults } from '../stages/preempt/workload-guard.js';
import { mostRejections } from '../view/decision.js';
import type { Decision } from '../view/decision.js';
import type { Task, View } from '../view/view.js';
import type { Policy } from './policy.js';

/** How long functions stay away after a workload has suffered, first and at most, ms; each time twice as long. */
const [firstRestMs, longestRestMs] = [60_000, 3_600_000];
/** Multiple of the last rest without suffering after which the next one is short again. */
const forgottenAfter = 10;
/** How long a run that gives way may go on, ms: at half of its rate a workload loses 1 % of ten minutes meanwhile. */
const graceMs = 10_000;

/** A device that functions stay away from. */
interface Rest {
  until: number;
  restMs: number;
}

/** The state of a protecting policy. */
interface SavedProtection {
  resting: (readonly [string, Rest])[];
  own: unknown;
}

/**
 * `policy`, under which no function starts on a device while a workload there is slower than it tolerates, and for a minute
 * to an hour after that; runs beside it give way as `workloadGuard` has it. So a set of a workload and functions of which nothing
 * is known is tried, and costs the workload less each time.
 */
export function protectingWorkloads(policy: Policy): Policy {
  const guard = workloadGuard({ ...workloadGuardDefaults, graceMs });
  const resting = new Map<string, Rest>();

  /** The devices that take no function now, each with the time until which that holds. */
  function closedAt({ at, workloads = [] }: View): Map<string, number> {
    for (const { device, measured = 0, tolerated } of workloads) {
      const known = resting.get(device);
      if (measured <= tolerated || (known !== undefined && at < known.until)) continue;
      const isFresh = known === undefined || at > known.until + forgottenAfter * known.restMs;
      const restMs = isFresh ? firstRestMs : Math.min(longestRestMs, 2 * known.restMs);
      resting.set(device, { until: at + restMs, restMs });
    }
    const there = new Set(workloads.map(({ device }) => device));
    const closed = new Map<string, number>();
    for (const [device, { until, restMs }] of resting) {
      // The workload has ended, or nothing has happened for long.
      if (!there.has(device) || at > until + forgottenAfter * restMs) resting.delete(device);
      else if (at < until) closed.set(device, until);
    }
    return closed;
  }

  function decide(view: View, closed: ReadonlyMap<string, number>, event: Parameters<Policy['decide']>[1]): Decision {
    const open = new Set<string>();
    const shut = new Map<string, number>();
    for (const { id, place } of view.ledger.ledger.accounts()) {
      const until = closed.get(place.device.uuid);
      if (until === undefined) open.add(id);
      else shut.set(id, until);
    }
    const waiting = view.waiting.map((task): Task => {
      const { allowed } = task;
      return { ...task, allowed: allowed === undefined ? open : new Set([...allowed].filter((id) => open.has(id))) };
    });
    const decision = policy.decide(
      Object.create(view, { waiting: { value: waiting, enumerable: true } }) as View,
      event,
    );
    const rejected = decision.rejected.filter(({ what }) => !shut.has(what));
    const told = new Map<string, number>();
    for (const { task } of rejected) told.set(task, (told.get(task) ?? 0) + 1);
    const before = new Map(view.waiting.map((task) => [task.id, task]));
    for (const task of decision.order) {
      const allowed = before.get(task)?.allowed;
      let left = mostRejections - (told.get(task) ?? 0);
      for (const [what, until] of shut) {
        if (left <= 0) break;
        if (allowed?.has(what) === false) continue;
        rejected.push({ task, what, reason: suffered, numbers: { leftMs: until - view.at } });
        left -= 1;
      }
    }
    return { ...decision, rejected };
  }

  return {
    ...policy,
    protects: true,
    decide(view, event) {
      const closed = (view.workloads ?? []).length === 0 && resting.size === 0 ? undefined : closedAt(view);
      if (event.kind === 'report') {
        const decision = policy.decide(view, event);
        return { ...decision, actions: [...(decision.actions ?? []), ...guard(view, [], event)] };
      }
      if (closed === undefined || closed.size === 0 || event.kind === 'tick' || event.kind === 'procure') {
        return policy.decide(view, event);
      }
      return decide(view, closed, event);
    },
    saved: (): SavedProtection => ({ resting: [...resting], own: policy.saved?.() }),
    restore(saved) {
      resting.clear();
      // A view that was saved before policies protected workloads has the state of the policy alone.
      if (!isSavedProtection(saved)) {
        policy.restore?.(saved);
        return;
      }
      const { resting: kept, own } = saved;
      for (const [device, rest] of kept) resting.set(device, { ...rest });
      if (own !== undefined) policy.restore?.(own);
    },
  };
}

function isSavedProtection(saved: unknown): saved is SavedProtection {
  return typeof saved === 'object' && saved !== null && 'resting' in saved;
}

const suffered = 'a workload there is slower than it tolerates beside functions, or was just now';
