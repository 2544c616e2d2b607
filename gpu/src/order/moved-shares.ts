// Limits of running tasks, moved while they run: where kernel tokens hold them, tasks can be held back for a time.
import type { Action } from '../view/decision.js';
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
  if (all.length < 2) return undefined;
  const free = outlookBy(queue, (together) => slowdownsOf(queue, together));
  if (free.late === 0 && minGain >= 1) return undefined;
  const { predictions, startsAt } = queue;
  const timeOf = ({ sumAt }: Outlook): number => sumAt - all.length * startsAt;
  let best: Hold | undefined;
  let [late, ms] = [free.late, timeOf(free) * (1 - minGain)];
  for (const held of heldSets(queue.running.length, all.length)) {
    for (const limit of heldBack) {
      const limits = all.map(({ share }, at) => (held.includes(at) ? Math.min(share, limit) : share));
      const kinds = all.map(({ task, kind, share }, at) => {
        const own = limits[at] ?? share;
        return own === share ? kind : predictions.kindOf(task.features, own);
      });
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

/** By instance, the limit that was asked for, and when. */
export type SavedMoves = readonly (readonly [string, { limit: number; at: number }])[];

/** How long a limit may take to come about before it is asked for again, ms. */
const patienceMs = 1000;

/** Moves limits of running tasks. Remembers what was asked for in the last second, and nothing else. */
export class ShareMoves {
  private asked = new Map<string, { limit: number; at: number }>();

  /**
   * The actions that give the tasks which run on a GPU their limits until the next of them ends or another starts: their
   * classes, but for those of the best hold. Notes in the queue what is predicted of them. Tasks that start now keep
   * their shares until the next decision.
   */
  on(queue: SubQueue, minGain: number, at: number): Action[] {
    const hold = bestHold(queue, minGain);
    queue.heldKinds = hold?.kinds;
    const limits = hold?.limits ?? membersOf(queue).map(({ share }) => share);
    return queue.running.flatMap(({ instance, share }, index): Action[] => {
      const limit = limits[index] ?? share;
      if (instance === undefined || Math.abs(limit - share) < smallestMove) return [];
      if (this.asked.get(instance)?.limit === limit) return [];
      this.asked.set(instance, { limit, at });
      const { id } = queue.gpu;
      const reason =
        limit < share ? `held back so that others on ${id} end sooner` : `its share of ${id} is free again`;
      return [{ kind: 'reshare', instance, request: limit, limit, whileBusy: true, reason }];
    });
  }

  /** The state, for `restore`. */
  saved(): SavedMoves {
    return [...this.asked];
  }

  /** Takes the state of another one. */
  restore(asked: SavedMoves): void {
    this.asked = new Map(asked);
  }

  /** Forgets what was asked for too long ago. */
  expire(at: number): void {
    for (const [instance, one] of this.asked) {
      // The clock may have been set back.
      if (Math.abs(at - one.at) >= patienceMs) this.asked.delete(instance);
    }
  }
}
