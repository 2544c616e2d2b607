import { hasShare } from '../place/place.js';
import type { Seat } from '../place/place.js';
import { soloTimes } from '../predict/solo-times.js';
import type { Task } from '../view/view.js';
import { budgetMs } from './budget.js';
import { fillingShare } from './filling.js';
import { granted, refused } from './share.js';
import type { ShareOut } from './share.js';

/** Of an A100 or H100, as parts of the GPU. */
const slices = [1 / 7, 2 / 7, 3 / 7, 4 / 7, 1];

/**
 * The smallest slice of MIG's sizes that meets a task's SLO (or, without one, that holds the SMs that it uses); else the
 * largest fragment that is left, as long as that still meets its SLO (or is at least half of what it would take), which is
 * what the pipelines over fragments of FluidFaaS (Hui and others, HPDC 2025) are for. Functions here are of one stage, so
 * that none is spread over several GPUs. The slices are MPS shares on GPUs without MIG, which isolate SMs but not memory
 * traffic.
 */
export function migSizes(predictorOf: Parameters<typeof soloTimes>[0]): ShareOut {
  const soloMsAt = soloTimes(predictorOf);
  const meets = (task: Task, share: number, seat: Seat, at: number): boolean =>
    soloMsAt(task, share, seat.gpu) <= budgetMs(task, at);
  const wanted = (task: Task, seat: Seat, at: number): number => {
    const isEnough =
      task.sloMs === undefined
        ? (share: number): boolean => share >= fillingShare(task)
        : (share: number): boolean => meets(task, share, seat, at);
    return slices.find(isEnough) ?? 1;
  };
  return (task, seat, at) => {
    const best = task.share ?? wanted(task, seat, at);
    if (hasShare(seat, best)) return granted(best);
    const fragment = slices.findLast((slice) => hasShare(seat, slice));
    if (fragment === undefined || task.share !== undefined) {
      return refused('no slice is left', { load: seat.load, share: best });
    }
    const isEnough = task.sloMs === undefined ? fragment >= best / 2 : meets(task, fragment, seat, at);
    if (isEnough) return { share: fragment, lacks: best - fragment };
    return refused('the fragments are too small', { load: seat.load, fragment, share: best });
  };
}
