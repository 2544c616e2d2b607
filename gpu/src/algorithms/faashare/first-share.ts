// The rule by which functions of which nothing is measured share a GPU from their first call.
import type { GpuKind } from '@gpuwhisk/common/gpu';
import { idleInstances } from '../../stages/place/candidate.js';
import type { Refusal } from '../../stages/place/fact-filters.js';
import { functionKeyOf } from '../../ledger/occupancy.js';
import { holdsToShares } from '../../view/shares.js';
import type { SeenPlace } from '../../view/running.js';
import type { Task } from '../../view/view.js';
import { jobOf } from '../../share/quotas.js';
import type { Quotas } from '../../share/quotas.js';

/** A task with its share, fraction of the GPU. */
export interface Sharer {
  task: Task;
  share: number;
}

/** Measurements of a pair from which on they stand in the place of the rule. */
const enoughMeasurements = 5;
/** Tasks on a GPU, at most, while a member is unknown. */
const mostTogether = 2;
/** Start of an instance that was never measured, on a real and on a simulated GPU, ms: the stand-in takes 252 for a context and a module. */
const [unmeasuredStartMs, simulatedStartMs] = [5000, 300];

/** Whether nothing is known of what a task does to others: best effort without figures, in runs of one request on one GPU. */
export function isUnknown({ sloMs, gpus, batch, features, version }: Task): boolean {
  // A run that another controller has started has no version here: it may be anything.
  return sloMs === undefined && gpus === 1 && batch === 1 && features === undefined && version !== '';
}

/** Whether it has the whole GPU as its class: neither its owner nor its namespace bounds it. */
function isUnbounded({ share = 1, maxShare = 1 }: Task): boolean {
  return share >= 1 && maxShare >= 1;
}

const isStrict = ({ sloMs }: Task): boolean => sloMs !== undefined;

/**
 * Two best-effort tasks on a GPU that holds processes to their shares, at least one of them unknown, are taken to slow each
 * other down by `slowdown`, until the pair was measured five times. More than two do not run together, nor does an unknown
 * one beside one with an SLO. With 1.35 two do 1.48 times the work of turns: the median of pairs under MPS at 100 % each on an
 * A100 (Abacus, SC 2021); KACE measured 1.61 on a V100.
 */
export class FirstShare {
  constructor(
    private readonly slowdown: number,
    private readonly quotas: Pick<Quotas, 'slowdownsAt'> | undefined,
  ) {}

  /** How much slower than alone the tasks of a pair are, in their order; undefined: the rule is not about them. */
  slowdowns(gpu: GpuKind, together: readonly Sharer[]): readonly number[] | undefined {
    if (!isPair(gpu, together)) return undefined;
    return this.measured(gpu, together) ?? together.map(() => this.slowdown);
  }

  /** Whether tasks that run together are a pair which the rule is about and which was not measured five times. */
  isUnmeasured(gpu: GpuKind, together: readonly Sharer[]): boolean {
    return isPair(gpu, together) && this.measured(gpu, together) === undefined;
  }

  /** Why a task may not start beside `there`; undefined: the rule allows it. `waitMs`: see `mayStartSecond`. */
  refusal(place: SeenPlace, there: readonly Task[], task: Task, waitMs: () => number): Refusal | undefined {
    const isNew = isUnknown(task);
    if (isNew && there.some(isStrict)) return { reason: besideStrict, numbers: { beside: there.length } };
    const beside = there.filter(isUnknown).length;
    if (isStrict(task) && beside > 0) return { reason: besideUnknown, numbers: { beside } };
    if (!holdsToShares(place.mode)) return undefined;
    const isOpen = [task, ...there].some((one) => isUnknown(one) && isUnbounded(one));
    if (isOpen && there.length >= mostTogether) return { reason: noThird, numbers: { beside: there.length } };
    const own = functionKeyOf(task);
    if (!isNew || !there.some((one) => functionKeyOf(one) === own)) return undefined;
    return mayStartSecond(place, task, waitMs());
  }

  private measured(gpu: GpuKind, together: readonly Sharer[]): readonly number[] | undefined {
    const jobs = together.map(({ task }) => jobOf(task));
    const shares = together.map(({ share }) => share);
    return this.quotas?.slowdownsAt(jobs, gpu, shares, enoughMeasurements);
  }
}

/** The rule with a setting's slowdown; undefined with 0. */
export function firstShareOf(
  slowdown: number,
  quotas: Pick<Quotas, 'slowdownsAt'> | undefined,
): FirstShare | undefined {
  return slowdown > 0 ? new FirstShare(slowdown, quotas) : undefined;
}

const besideStrict = 'nothing is measured of it, and a task with an SLO is there';
const besideUnknown = 'it has an SLO, and nothing is measured of what is there';
const noThird = 'at most two run together while nothing is measured of one of them';

function isPair({ mode }: GpuKind, together: readonly Sharer[]): boolean {
  if (together.length !== mostTogether || !holdsToShares(mode)) return false;
  let unknown = 0;
  for (const { task } of together) {
    if (task.sloMs !== undefined || task.gpus !== 1 || task.batch !== 1 || task.version === '') return false;
    if (!isUnknown(task)) continue;
    if (!isUnbounded(task)) return false;
    unknown += 1;
  }
  return unknown > 0;
}

/** A further instance of a function starts where the last of its requests would wait (`waitMs`) for longer than that takes. */
function mayStartSecond({ account }: SeenPlace, task: Task, waitMs: number): Refusal | undefined {
  if (idleInstances(account.occupants, task).length > 0) return undefined;
  const startMs = task.startMs ?? (account.place.device.simulated ? simulatedStartMs : unmeasuredStartMs);
  if (waitMs > startMs) return undefined;
  return {
    reason: 'its function runs there and is free sooner than another instance of it starts',
    numbers: { waitMs, startMs },
  };
}
