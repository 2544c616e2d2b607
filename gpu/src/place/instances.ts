import type { Share } from '@gpuwhisk/common/gpu';
import type { Start } from '../view/decision.js';
import type { Occupant } from '../view/occupancy.js';
import { classAtOrAbove } from '../view/shares.js';
import type { Task } from '../view/view.js';
import { mayShare } from './fact-filters.js';
import type { Account, PlacementRequest } from '../view/account.js';

/** The instance that a request would run in: one that idles, or else one that runs a batch while the next one gathers. */
export function instanceFor(occupants: readonly Occupant[], request: PlacementRequest): Occupant | undefined {
  const most = request.batch > 1 ? 2 * request.batch : 0;
  let joined: Occupant | undefined;
  for (const one of occupants) {
    if (one.action !== request.action || !isInstanceOf(one, request)) continue;
    if (one.users === 0 && one.container !== undefined) return one;
    if (joined === undefined && one.users < most) joined = one;
  }
  return joined;
}

function isInstanceOf(occupant: Occupant, { namespace, subject, share, gpus }: PlacementRequest): boolean {
  return (
    occupant.namespace === namespace &&
    occupant.subject === subject &&
    occupant.gpus === gpus &&
    occupant.shareClass === share.shareClass &&
    occupant.memoryMiB >= share.memoryMiB
  );
}

/** Instances that may not be beside the request; of a place that facts do not forbid it, all of them idle. */
export function unwantedOn(
  { mode, occupants }: Account & { occupants: readonly Occupant[] },
  request: PlacementRequest,
  joined: Occupant | undefined,
): Occupant[] {
  return occupants.filter((one) => one !== joined && !mayShare(mode, one, request));
}

/** Whether there are any. */
export function hasUnwanted(
  { mode, occupants }: Account & { occupants: readonly Occupant[] },
  request: PlacementRequest,
  joined: Occupant | undefined,
): boolean {
  for (const one of occupants) if (one !== joined && !mayShare(mode, one, request)) return true;
  return false;
}

/** The idle instances that go so that `lackingMiB` more are free, `unwanted` ones in any case. */
export function reclaimable(
  occupants: readonly Occupant[],
  unwanted: readonly Occupant[],
  lackingMiB: number,
): Occupant[] {
  const gone = [...unwanted];
  let lacking = unwanted.reduce((left, { memoryMiB }) => left - memoryMiB, lackingMiB);
  if (lacking <= 0) return gone;
  const idle = occupants.filter((one) => one.users === 0 && one.container !== undefined && !gone.includes(one));
  // Least saved loading time per MiB first; where that is not known, those without an action, then the largest.
  const savedPerMiB = ({ loadMs = 0, memoryMiB }: Occupant): number => loadMs / memoryMiB;
  idle.sort(
    (one, other) =>
      savedPerMiB(one) - savedPerMiB(other) ||
      Number(one.action !== undefined) - Number(other.action !== undefined) ||
      other.memoryMiB - one.memoryMiB,
  );
  for (const one of idle) {
    if (lacking <= 0) break;
    gone.push(one);
    lacking -= one.memoryMiB;
  }
  return gone;
}

/** The instances of a task's function that idle. */
export function idleInstances(occupants: readonly Occupant[], task: Pick<Task, 'function' | 'namespace'>): Occupant[] {
  return occupants.filter(
    ({ users, action, namespace }) => users === 0 && action === task.function && namespace === task.namespace,
  );
}

/**
 * `asked` with the share of a start: in the instance of the task's function that idles there, of the smallest class at or
 * above the limit, else in a new instance.
 */
export function shareInInstance(
  occupants: readonly Occupant[],
  task: Task,
  { share: limit, request = limit }: Pick<Start, 'share' | 'request'>,
  asked: Share,
): Share {
  const { maxShare = 1 } = task;
  const decided = Math.min(limit, maxShare);
  const classes = idleInstances(occupants, task)
    .map(({ shareClass }) => shareClass / 100)
    .filter((share) => share >= decided && share <= maxShare);
  const fraction = classes.length > 0 ? Math.min(...classes) : decided;
  return { ...asked, shareClass: classAtOrAbove(fraction), smRequest: Math.min(request, decided), smLimit: fraction };
}
