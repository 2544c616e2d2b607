import type { Quotas } from '../quota/quotas.js';
import { outlookOf, residentsOf, setShares, sufficientShare } from './sub-queue.js';
import type { Member, SubQueue } from './sub-queue.js';

/** The shares that those who start now get, by member, and where they come from. */
export interface FinalShares {
  shares: number[];
  /** `owner`: fixed by them all; `sufficient`: what each can use; `smallest`: what their SLOs need. */
  source: 'hit' | 'nearest' | 'owner' | 'sufficient' | 'smallest';
}

/**
 * The shares of a sub-queue's members, what runs there keeping its own: those that the quota stage has measured or knows
 * from the most alike set, unless somebody is predicted to be late for them; else all that each can use, if nobody is late
 * for that and they end no later on average; else the smallest. The queue is changed accordingly.
 */
export function finalShares(queue: SubQueue, quotas: Quotas | undefined): FinalShares {
  const smallest = queue.members.map(({ share }) => share);
  if (queue.members.every(({ task }) => task.share !== undefined)) return { shares: smallest, source: 'owner' };
  const before = outlookOf(queue);
  const proposed = fromTable(queue, quotas);
  if (proposed !== undefined) {
    setShares(queue, proposed.shares);
    if (outlookOf(queue).late <= before.late) return proposed;
  }
  const shares = queue.members.map(({ task, share }) => task.share ?? Math.max(share, sufficientShare(task)));
  setShares(queue, shares);
  const { late, sumAt } = outlookOf(queue);
  if (late < before.late || (late === before.late && sumAt <= before.sumAt)) return { shares, source: 'sufficient' };
  setShares(queue, smallest);
  return { shares: smallest, source: 'smallest' };
}

/** What the quota stage knows; undefined where it knows no more than the smallest shares. */
function fromTable(queue: SubQueue, quotas: Quotas | undefined): FinalShares | undefined {
  if (quotas === undefined) return undefined;
  const { gpu, running, members, startsAt } = queue;
  const all = [...residentsOf(queue), ...members];
  const budgetsMs = all.map(({ deadline, startMs }) => deadline - startsAt - startMs);
  const { shares, source } = quotas.shareFor(all.map(jobOf), gpu.type, gpu.mode, budgetsMs);
  if (source === 'guardrail') return undefined;
  return { shares: members.map(({ task }, at) => task.share ?? shares[running.length + at]!), source };
}

function jobOf({ task }: Member): Parameters<Quotas['shareFor']>[0][number] {
  const { function: name, version, batch, soloMs, features } = task;
  return {
    ...{ function: name, version, batch },
    ...(soloMs !== undefined && { soloMs }),
    ...(features !== undefined && { features }),
  };
}
