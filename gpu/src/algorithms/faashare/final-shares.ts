// The shares with which a sub-queue's members start.
import { membersOf, outlookBy, residentsOf, setShares, slowdownsOf, unmeasuredMs } from './sub-queue.js';
import type { Member, Outlook, SubQueue } from './sub-queue.js';
import { jobOf } from '../../share/quotas.js';
import type { QuotaChoice, Quotas } from '../../share/quotas.js';
import { isUnknown } from '../../stages/place/first-share.js';
import type { Sharing } from '../../view/decision.js';

/** What can be set of the choice of shares. */
export interface ShareOptions {
  /** Shares of a hit have to lower the mean completion by this part: a share is fixed for the whole of a run. */
  minShareGain: number;
  /** 1: the answers on a miss are taken even where no task is late without them, unless more tasks are late; 0: they are not. */
  takeEveryMiss: number;
}

/**
 * Shares with which fewer tasks are late may lengthen the mean completion by this part: a cap that saves one deadline
 * otherwise holds a long neighbour back for hours.
 */
const mostCost = 0.5;

/**
 * Decides the shares of a sub-queue's members and changes the queue accordingly; running tasks keep theirs. Members get
 * the shares that they fill, except in two cases:
 * - The table has measured this very set (a hit), and with those shares fewer tasks are late, or as many and all end
 *   sooner on average. Measurements decide this, also of the shares that the tasks fill if those were measured.
 * - Without a hit, tasks are predicted to be late with the shares that they fill, and fewer are with those of the nearest
 *   row or of the guardrail.
 *
 * Pairs of which nothing is measured (`FirstShare`) keep the shares that they fill.
 */
export function finalShares(
  queue: SubQueue,
  quotas: Quotas | undefined,
  { minShareGain, takeEveryMiss }: ShareOptions,
): Sharing {
  const { place, running, members } = queue;
  const planned = members.map(({ share }) => share);
  const isOpen = members.some(({ task }) => task.share === undefined);
  // Those that are held back get their classes again: no share is fixed for the whole of a run.
  const isMoved = queue.heldKinds !== undefined;
  const asked = isOpen && !isMoved && quotas !== undefined ? ask(queue, quotas) : undefined;
  const isUnmeasured = queue.firstShare?.isUnmeasured(place, membersOf(queue), queue.startsAt) === true;
  if (isUnmeasured && quotas !== undefined) askForFills(queue, quotas);
  const filling = take(queue, planned, quotas);
  const fillingMs = timeOf(queue, filling);
  const byFilling: Sharing = {
    gpu: place.id,
    tasks: running.length + members.length,
    ...(asked && { answer: asked.source }),
    source: isOpen ? 'filling' : 'owner',
    chosenMs: fillingMs,
    fillingMs,
  };
  if (asked === undefined || isUnmeasured) return byFilling;
  const isHit = asked.source === 'hit';
  if (!isHit && filling.late === 0 && takeEveryMiss !== 1) return byFilling;
  const shares = asked.shares.slice(running.length);
  if (shares.some((share, at) => share > (members[at]?.task.maxShare ?? 1))) return byFilling;
  const answered = take(queue, shares, quotas);
  const chosenMs = timeOf(queue, answered);
  const keepsMore = answered.late < filling.late && chosenMs <= fillingMs * (1 + mostCost);
  const isTaken = isHit ? chosenMs < fillingMs * (1 - minShareGain) : takeEveryMiss === 1;
  if (keepsMore || (isTaken && answered.late === filling.late)) return { ...byFilling, source: asked.source, chosenMs };
  setShares(queue, planned);
  queue.outlook = filling;
  return byFilling;
}

/** Gives the members these shares. The outlook goes by measurements of those that run together, else by predictions. */
function take(queue: SubQueue, shares: readonly number[], quotas: Quotas | undefined): Outlook {
  setShares(queue, shares);
  const { place, firstShare, startsAt } = queue;
  queue.outlook = outlookBy(queue, (together) =>
    firstShare?.isUnmeasured(place, together, startsAt) === true
      ? slowdownsOf(queue, together)
      : (measuredOf(queue, together, quotas) ?? slowdownsOf(queue, together)),
  );
  return queue.outlook;
}

/** The measured slowdowns of tasks that run together; undefined where they were not measured with their shares. */
function measuredOf(
  { place }: SubQueue,
  together: readonly Member[],
  quotas: Quotas | undefined,
): number[] | undefined {
  if (quotas === undefined || together.length < 2) return undefined;
  const jobs = together.map(({ task }) => jobOf(task));
  return quotas.slowdownsAt(
    jobs,
    place,
    together.map(({ share }) => share),
  );
}

/** The sum of the times from now to the ends, ms. */
function timeOf({ startsAt }: SubQueue, { sumAt, endsAt }: Outlook): number {
  return sumAt - endsAt.length * startsAt;
}

/** Asks for each unknown member alone, too, so that its fill is looked for as if it had the GPU to itself. */
function askForFills({ place, members }: SubQueue, quotas: Quotas): void {
  for (const { task } of members) if (isUnknown(task)) quotas.shareFor([jobOf(task)], place, [Infinity]);
}

/** The quota stage's answer for all that will be on the GPU: residents, then members. */
function ask(queue: SubQueue, quotas: Quotas): QuotaChoice {
  const { place, running, members, startsAt } = queue;
  const all = [...residentsOf(queue), ...members];
  const budgetsMs = all.map(({ task, deadline, startMs, leftMs }) => {
    const { soloMs = unmeasuredMs } = task;
    // The quota stage compares with the whole solo time, of which a running task has only a part ahead of it.
    return ((deadline - startsAt - startMs) * soloMs) / leftMs;
  });
  const fixed = [...running.map(({ share }) => share), ...members.map(({ task }) => task.share)];
  const leftMs = all.map((member) => member.leftMs);
  const jobs = all.map(({ task }) => jobOf(task));
  return quotas.shareFor(jobs, place, budgetsMs, fixed, leftMs);
}
