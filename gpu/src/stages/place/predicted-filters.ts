// The predicted filters: what measurements and predictions forbid work a place that facts allow it.
import { kindOf } from '../../ledger/places.js';
import type { PlaceAccount } from '../../ledger/account.js';
import type { Occupant } from '../../ledger/occupancy.js';
import { tasksOn } from '../../view/running.js';
import type { KnownRuns, Task } from '../../view/view.js';
import type { Refusal } from './fact-filters.js';
import type { FirstShare } from './first-share.js';
import type { PassView } from './place.js';

/** Why a place that facts allow would not do; undefined: it will. `joined`: the instance that the work would run in. */
export type PredictedFilter = (account: PlaceAccount, joined: Occupant | undefined) => Refusal | undefined;

/** The filter of one task at a share (fraction of the SMs); undefined: the policy asks none. */
export type PredictedFilters = (task: Task, share: number) => PredictedFilter | undefined;

/** The filters of one pass, in which `tasks` may have been placed before. */
export function predictedFilters(
  rule: FirstShare | undefined,
  view: PassView,
  tasks: Iterable<Task>,
): PredictedFilters {
  if (rule === undefined) return () => undefined;
  const { at, ledger } = view;
  const placed = new Map<string, Task>();
  for (const task of tasks) placed.set(task.id, task);
  const runs: KnownRuns = (id) => {
    const task = placed.get(id);
    return view.runs(id) ?? (task && { task, startedAt: at });
  };
  // Nothing is known of the instances that are free: a second one of a function starts where the place is.
  const when = { at, waitMs: () => Infinity };
  return (task, share) => {
    if (task.gpus > 1) return undefined;
    return (account, joined) => {
      // A request that joins a batch is no other run.
      if (joined !== undefined && joined.users > 0) return undefined;
      if (account.busy === 0 && !rule.isAboutEmptyPlaces) return undefined;
      const there = account.busy === 0 ? [] : tasksOn({ at, ledger, runs }, account);
      return rule.refusal({ id: account.id, account, ...kindOf(account.place) }, there, { task, share }, when);
    };
  };
}
