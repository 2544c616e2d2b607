// Tasks by deadline, each on the place that a rule chooses: baselines beside training jobs (SMORE, paper section VIII-D).
import { reservationOf, startOf } from '@gpuwhisk/gpu/stages/place/bind';
import { placeByDegradation } from '@gpuwhisk/gpu/stages/place/by-degradation';
import type { DegradationSearch } from '@gpuwhisk/gpu/stages/place/by-degradation';
import { placeByUse } from './by-use.js';
import type { PlacementLimits, PlacementStamp } from '@gpuwhisk/gpu/stages/place/candidate';
import { PlaceCosts } from '@gpuwhisk/gpu/stages/place/place-costs';
import { SetEffects } from '@gpuwhisk/gpu/stages/place/set-effects';
import type { ModelOf, SavedFigures } from '@gpuwhisk/gpu/stages/place/set-effects';
import type { FeatureRecord } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import { isPlaced } from '@gpuwhisk/gpu/ledger/account';
import type { PlacementChoice, PlacementRequest } from '@gpuwhisk/gpu/ledger/account';
import type { Start, TaskRejection } from '@gpuwhisk/gpu/view/decision';
import type { Ledger } from '@gpuwhisk/gpu/ledger/ledger';
import { functionKey } from '@gpuwhisk/gpu/ledger/occupancy';
import type { Task } from '@gpuwhisk/gpu/view/view';
import { dueFirst } from '@gpuwhisk/gpu/stages/order/earliest-deadline';
import type { Pass, Planned, Planner } from '@gpuwhisk/gpu/stages/order/plan';
import { requestAtFill } from '@gpuwhisk/gpu/stages/order/request-at-fill';

/** Settings of `deadlineDegradationPlan`. */
export const deadlineDegradationDefaults = {
  /** Weight of the workloads' degradation against the function's, 0 to 1. */
  trainWeight: 0.5,
  /** Part of the memory that is given away where processes share a place, 0 to 1. */
  memoryPart: 0.95,
};

/** Settings of `deadlineUsePlan`. */
export const deadlineUseDefaults = {
  /** Greatest use of a place's SMs by its workloads and a newcomer together, fraction. */
  mostUse: 0.8,
};

/** Tasks that a pass tries without finding a place, at most. */
const mostFailures = 64;

/**
 * The earliest deadline first, on the place of least predicted degradation where workloads stay within their bounds and
 * the task within its deadline: ElasticFlow's order and its greedy choice, with SMORE's admission.
 */
export function deadlineDegradationPlan(modelOf: ModelOf, settings: typeof deadlineDegradationDefaults): Planner {
  const effects = new SetEffects(modelOf);
  const weights = { ...settings, perRequest: 0, warmFirst: 1 };
  const search: DegradationSearch = {
    effects,
    costs: new PlaceCosts(effects, weights),
    settings: weights,
    takesFirst: false,
    risky: new Set(),
  };
  return {
    plan(pass) {
      effects.begin(pass.view.at, pass.view.workloads);
      return byDeadline(pass, 'least degradation', (task, request, ledger, limits, stamp) => {
        effects.learn(functionKey(request), task.featureRecord ?? (task.features as FeatureRecord | undefined));
        return placeByDegradation(ledger, task, request, limits, stamp, search);
      });
    },
    saved: () => effects.saved(),
    restore: (saved) => void effects.restore(saved as SavedFigures),
  };
}

/**
 * The earliest deadline first, where the use of the SMs by a place's workloads and by the task alone stays within a bound.
 * Functions that run there do not count, as in the thesis (section 5.5.1).
 */
export function deadlineUsePlan({ mostUse }: typeof deadlineUseDefaults): Planner {
  return {
    plan(pass) {
      const used = new Map<string, number>();
      // A workload without figures is taken to use all of the GPU.
      for (const { device, features } of pass.view.workloads ?? []) {
        used.set(device, (used.get(device) ?? 0) + (features?.['smUtil'] ?? 1));
      }
      return byDeadline(pass, 'use within the bound', (task, request, ledger, limits, stamp) => {
        return placeByUse(ledger, request, limits, stamp, { used, use: task.features?.smUtil ?? 1, mostUse });
      });
    },
  };
}

type PlaceOne = (
  task: Task,
  request: PlacementRequest,
  ledger: Ledger,
  limits: PlacementLimits,
  stamp: PlacementStamp,
) => PlacementChoice;

function byDeadline({ view, tasks }: Pass, reason: string, placeOne: PlaceOne): Planned {
  const { ledger, isOpen, epoch } = view.ledger;
  const stamp = { epoch, at: view.at };
  const kept = new Set<string>();
  const starts: Start[] = [];
  const order: string[] = [];
  const rejected: TaskRejection[] = [];
  for (const { task } of dueFirst(tasks, view.at)) {
    if (order.length >= mostFailures) {
      order.push(task.id);
      continue;
    }
    const request = requestAtFill(task);
    const { allowed } = task;
    const choice = placeOne(task, request, ledger, { kept, isOpen, ...(allowed && { allowed }) }, stamp);
    if (isPlaced(choice)) {
      ledger.hold(reservationOf(task.id, request, choice), Infinity);
      starts.push(startOf(task.id, choice, reason));
      continue;
    }
    order.push(task.id);
    for (const one of choice.rejected) rejected.push({ ...one, task: task.id });
  }
  return { starts, order, rejected };
}
