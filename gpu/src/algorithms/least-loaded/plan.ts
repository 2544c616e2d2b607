import { requestOfTask } from '../../view/requests.js';
import type { FirstShare } from '../../stages/place/first-share.js';
import { placeLeastLoaded } from '../../stages/place/least-loaded.js';
import type { Placing } from '../../stages/place/place.js';
import { dueFirst } from '../../stages/order/earliest-deadline.js';
import { placedInTurns } from '../../stages/order/ledger-turns.js';
import type { Planner } from '../../stages/order/plan.js';

/** Places of which the best is looked for; of more, the first one found among those loaded least. */
const mostForBestFit = 1024;

const placing: Placing = {
  requestOf: requestOfTask,
  begin({ ledger: { ledger } }) {
    const fit = ledger.accounts().length > mostForBestFit ? 'first' : 'best';
    return (request, limits, stamp) => placeLeastLoaded(ledger, request, { ...limits, fit }, stamp);
  },
};

/**
 * Places the earliest deadline first, on the place with the least share given away. It predicts nothing: a share is the one
 * that the task's owner has fixed, else the whole GPU. Starts are held in the view's ledger.
 */
export function leastLoadedPlan(rule: FirstShare | undefined): Planner {
  const how = { placing, reason: 'least given away there', rule };
  return { plan: ({ view, tasks }) => placedInTurns(view, dueFirst(tasks, view.at), how) };
}
