// Limits of running tasks, moved while they run: where kernel tokens hold them, tasks can be held back for a time.
import type { Action } from '../../view/decision.js';
import { membersOf, outlookBy, outlookOf, slowdownsOf } from './sub-queue.js';
import type { Member, Outlook, SubQueue } from './sub-queue.js';

/** Limits of tasks that are held back, fractions of the GPU. */
const heldBack = [0.1, 0.2, 0.3, 0.5];
/** Among so many tasks every set of them is tried as those held back; among more, all running ones but one. */
const mostInFull = 4;
/** A task is held back only if it meets its deadline even where it takes longer than predicted by this part. */
const margin = 0.5;
/** Shares are kept in thousandths. */
const smallestMove = 0.0005;

/** Running tasks that are held back until the next end on their GPU. */
export interface Hold {
  /** Of residents and members: the limit, fraction of the GPU. */
  limits: readonly number[];
  /** The limits as kinds for predictions. */
  kinds: readonly number[];
  /** With these limits until the next end, and the classes from then on. */
  outlook: Outlook;
}

/**
 * The best set of running tasks to hold back, in comparison with none held back: fewer tasks are late, or as
 * many and the mean completion is lower by `minGain` (1: only lateness counts). Undefined: holding back is no better.
 */
export function bestHold(queue: SubQueue, minGain: number): Hold | undefined {
  const all = membersOf(queue);
  // What a pair of which nothing is measured does at other limits is not known.
  if (all.length < 2 || queue.firstShare?.slowdowns(queue.place, all, queue.startsAt) !== undefined) return undefined;
  const free = outlookBy(queue, (together) => slowdownsOf(queue, together));
  if (free.late === 0 && minGain >= 1) return undefined;
  const { predictions, startsAt } = queue;
  const timeOf = ({ sumAt }: Outlook): number => sumAt - all.length * startsAt;
  let best: Hold | undefined;
  let [late, ms] = [free.late, timeOf(free) * (1 - minGain)];
  for (const held of heldSets(queue.running.length, all.length)) {
    for (const limit of heldBack) {
      const limits = all.map(({ share }, at) => (held.includes(at) ? Math.min(share, limit) : share));
      const kinds = kindsOf(queue, limits);
      const first = predictions.slowdowns(kinds);
      const outlook = outlookBy(queue, (together) =>
        together.length === all.length ? first : slowdownsOf(queue, together),
      );
      if (held.some((at) => isTight(all[at], outlook.endsAt[at], startsAt))) continue;
      if (outlook.late > late || (outlook.late === late && timeOf(outlook) >= ms)) continue;
      best = { limits, kinds, outlook };
      [late, ms] = [outlook.late, timeOf(outlook)];
    }
  }
  return best;
}

/** Kinds of residents and members at limits in their order. */
function kindsOf(queue: SubQueue, limits: readonly number[]): number[] {
  return membersOf(queue).map(({ task, kind, share }, at) => {
    const own = limits[at] ?? share;
    return own === share ? kind : queue.predictions.kindOf(task.features, own);
  });
}

function isTight(member: Member | undefined, endsAt = 0, at = 0): boolean {
  return member !== undefined && at + (endsAt - at) * (1 + margin) > member.deadline;
}

/** Sets of running tasks, as their indexes: not all of those on the GPU. */
function heldSets(running: number, all: number): number[][] {
  const indexes = Array.from({ length: running }, (_, at) => at);
  if (all > mostInFull) return indexes.map((one) => indexes.filter((other) => other !== one));
  let found: number[][] = [[]];
  for (const at of indexes) found = found.flatMap((set) => [set, [...set, at]]);
  return found.filter(({ length }) => length > 0 && length < all);
}

/** Expects with a sub-queue's outlook that tasks are held back where fewer are late then. */
export function expectHold(queue: SubQueue): Outlook {
  const hold = bestHold(queue, 1);
  if (hold === undefined) return outlookOf(queue);
  queue.heldKinds = hold.kinds;
  return (queue.outlook = hold.outlook);
}

/** What was decided for the tasks on a GPU. */
interface Decided {
  /** The tasks, and how many of them run. */
  set: string;
  minGain: number;
  /** When the first of them is predicted to end, ms: later than that the prediction was wrong. */
  until: number;
  /** Of residents and members, fractions of the GPU; undefined: none is held back. */
  limits?: readonly number[];
}

/** State of a ShareMoves. */
export interface SavedMoves {
  /** By instance, the limit that was asked for, and when. */
  asked: readonly (readonly [string, { limit: number; at: number }])[];
  /** By GPU. */
  decided: readonly (readonly [string, Decided])[];
}

/** How long a limit may take to come about before it is asked for again, ms. */
const patienceMs = 1000;

/** How long a decision stands at least, so that short tasks that hang do not cost a decision each ms. */
const soonestMs = 100;

/** Moves limits of running tasks. Remembers the decision for each GPU, and what was asked for in the last second. */
export class ShareMoves {
  private asked = new Map<string, { limit: number; at: number }>();
  private decided = new Map<string, Decided>();

  /**
   * The actions that give the tasks which run on `queues`' GPUs their limits until the next of them ends or another
   * starts: their classes, but for those of the best hold. Notes in the queues what is predicted of them. Tasks that
   * start now keep their shares until the next decision.
   */
  on(queues: readonly SubQueue[], minGain: number, at: number): Action[] {
    this.expire(at);
    const known = this.decided;
    this.decided = new Map();
    return queues.flatMap((queue) => {
      const { length: running } = queue.running;
      if (running === 0 || running + queue.members.length < 2) return this.actionsFor(queue, undefined, at);
      const decided = this.decisionFor(queue, known.get(queue.place.id), minGain, at);
      this.decided.set(queue.place.id, decided);
      return this.actionsFor(queue, decided.limits, at);
    });
  }

  /**
   * When to decide again though nothing ends, ms: a task that others are held back for takes longer than predicted then.
   * Undefined: none is held back.
   */
  nextAt(): number | undefined {
    let next: number | undefined;
    for (const { limits, until } of this.decided.values()) {
      if (limits !== undefined && !(until >= (next ?? Infinity))) next = until;
    }
    return next;
  }

  /** The state, for `restore`. */
  saved(): SavedMoves {
    return { asked: [...this.asked], decided: [...this.decided] };
  }

  /** Takes the state of another one. */
  restore({ asked, decided }: SavedMoves): void {
    this.asked = new Map(asked);
    this.decided = new Map(decided);
  }

  /** The last decision, if it was for the same tasks and its predictions still stand. */
  private decisionFor(queue: SubQueue, last: Decided | undefined, minGain: number, at: number): Decided {
    const set = `${queue.running.length} ${membersOf(queue)
      .map(({ task }) => task.id)
      .join(' ')}`;
    if (last?.set === set && last.minGain === minGain && at < last.until) return last;
    const hold = bestHold(queue, minGain);
    const until = Math.max(at + soonestMs, Math.min(...(hold?.outlook ?? outlookOf(queue)).endsAt));
    return { set, minGain, until, ...(hold && { limits: hold.limits }) };
  }

  private actionsFor(queue: SubQueue, limits: readonly number[] | undefined, at: number): Action[] {
    queue.heldKinds = limits && kindsOf(queue, limits);
    const all = membersOf(queue);
    return queue.running.flatMap(({ instance, share }, index): Action[] => {
      const limit = limits?.[index] ?? all[index]?.share ?? share;
      if (instance === undefined || Math.abs(limit - share) < smallestMove) return [];
      if (this.asked.get(instance)?.limit === limit) return [];
      this.asked.set(instance, { limit, at });
      const { id } = queue.place;
      const reason =
        limit < share ? `held back so that others on ${id} end sooner` : `its share of ${id} is free again`;
      return [{ kind: 'reshare', instance, request: limit, limit, whileBusy: true, reason }];
    });
  }

  /** Forgets what was asked for too long ago. */
  private expire(at: number): void {
    for (const [instance, one] of this.asked) {
      // The clock may have been set back.
      if (Math.abs(at - one.at) >= patienceMs) this.asked.delete(instance);
    }
  }
}
