import type { Quotas } from '../share/quotas.js';
import { outlookOf, residentsOf, setShares } from './sub-queue.js';
import type { Member, SubQueue } from './sub-queue.js';

/** The shares that those who start now get, by member, and where they come from. */
export interface FinalShares {
  shares: number[];
  /** `owner`: fixed by them all; `filling`: what each can use. */
  source: 'hit' | 'nearest' | 'owner' | 'filling';
}

/** Another choice has to lower the mean completion by this part: a share is fixed for the whole of a run. */
const worthwhile = 0.02;

/**
 * The shares of a sub-queue's members, what runs there keeping its own: those that the quota stage has measured or knows
 * from the most alike set, unless fewer are predicted to be late at the shares that they fill, or they end sooner on
 * average. The queue is changed accordingly.
 */
export function finalShares(queue: SubQueue, quotas: Quotas | undefined): FinalShares {
  const planned = queue.members.map(({ share }) => share);
  if (queue.members.every(({ task }) => task.share !== undefined)) return { shares: planned, source: 'owner' };
  const filling: FinalShares = { shares: planned, source: 'filling' };
  const known = fromTable(queue, quotas);
  if (known === undefined) return filling;
  const [byTable, byPlan] = [outlookWith(queue, known), outlookWith(queue, filling)];
  const isSooner = known.source === 'hit' && byTable.takesMs < byPlan.takesMs * (1 - worthwhile);
  const chosen = byTable.late < byPlan.late || (byTable.late === byPlan.late && isSooner) ? known : filling;
  setShares(queue, chosen.shares);
  return chosen;
}

/** How many would be late with these shares, and how long all take from now on, summed up. */
function outlookWith(queue: SubQueue, { shares }: FinalShares): { late: number; takesMs: number } {
  setShares(queue, shares);
  const { late, sumAt, endsAt } = outlookOf(queue);
  return { late, takesMs: sumAt - endsAt.length * queue.startsAt };
}

/** What the quota stage knows; undefined where it knows no more than the guardrail. */
function fromTable(queue: SubQueue, quotas: Quotas | undefined): FinalShares | undefined {
  if (quotas === undefined) return undefined;
  const { gpu, running, members, startsAt } = queue;
  const all = [...residentsOf(queue), ...members];
  const budgetsMs = all.map(({ deadline, startMs }) => deadline - startsAt - startMs);
  const fixed = [...running.map(({ share }) => share), ...members.map(({ task }) => task.share)];
  const { shares, source } = quotas.shareFor(all.map(jobOf), gpu.type, gpu.mode, budgetsMs, fixed);
  if (source === 'guardrail') return undefined;
  const own = shares.slice(running.length);
  return members.some(({ task: { maxShare = 1 } }, at) => own[at]! > maxShare) ? undefined : { shares: own, source };
}

function jobOf({ task }: Member): Parameters<Quotas['shareFor']>[0][number] {
  const { function: name, version, batch, soloMs, features } = task;
  return {
    ...{ function: name, version, batch },
    ...(soloMs !== undefined && { soloMs }),
    ...(features !== undefined && { features }),
  };
}
