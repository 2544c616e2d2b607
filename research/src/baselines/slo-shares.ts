// Implementations of the stage `share` that go by a task's SLO and its predicted times at each share.
import type { GpuKind } from '@gpuwhisk/common/gpu';
import type { CandidatePlace } from '@gpuwhisk/gpu/stages/place/place';
import type { Task } from '@gpuwhisk/gpu/view/view';
import { classFractions, fillingShare, granted, refused } from '@gpuwhisk/gpu/stages/share/share';
import type { ShareOut } from '@gpuwhisk/gpu/stages/share/share';
import { hasShare } from './shares.js';
import type { overcommitDefaults } from './shares.js';
import type { SlowdownPredictor, WorkloadFeatures } from '@gpuwhisk/gpu/predict/slowdown-predictor';

/** Shares whose throughput per share is so close to the best, which predictors err by, are as good; the largest of them ends soonest. */
const tolerance = 0.15;

/**
 * The share with the most throughput for what it takes among those that meet the SLO, by the throughput that a function's
 * profile gives at each (FaST-GShare, Gu and others, ICPP 2023).
 */
export function mostEfficient(
  predictorOf: Parameters<typeof soloTimes>[0],
  { maxLoad }: typeof overcommitDefaults,
): ShareOut {
  const soloMsAt = soloTimes(predictorOf);
  const efficient = (task: Task, candidate: CandidatePlace, at: number): number => {
    const budget = budgetMs(task, at);
    const rated = classFractions
      .map((share) => ({ share, ms: soloMsAt(task, share, candidate.kind) }))
      .filter(({ ms }) => ms <= budget && Number.isFinite(ms))
      .map(({ share, ms }) => ({ share, efficacy: 1 / (ms * share) }));
    const best = Math.max(...rated.map(({ efficacy }) => efficacy));
    return rated.findLast(({ efficacy }) => efficacy >= best * (1 - tolerance))?.share ?? fillingShare(task);
  };
  return (task, candidate, at) => {
    const share = task.share ?? efficient(task, candidate, at);
    return hasShare(candidate, share, maxLoad)
      ? granted(share)
      : refused('no rectangle is left', { load: candidate.account.load, share });
  };
}

/** Of an A100 or H100, as parts of the GPU. */
const slices = [1 / 7, 2 / 7, 3 / 7, 4 / 7, 1];

/**
 * The smallest slice of MIG's sizes that meets a task's SLO (or, without one, that holds the SMs that it uses); else the
 * largest fragment that is left, as long as that still meets its SLO (or is at least half of what it would take), which is
 * what the pipelines over fragments of FluidFaaS (Hui and others, HPDC 2025) are for. Functions here are of one stage, so
 * that none is spread over several GPUs. The slices are MPS shares on GPUs without MIG, which isolate SMs but not memory
 * traffic.
 */
export function migSizes(
  predictorOf: Parameters<typeof soloTimes>[0],
  { maxLoad }: typeof overcommitDefaults,
): ShareOut {
  const soloMsAt = soloTimes(predictorOf);
  const meets = (task: Task, share: number, candidate: CandidatePlace, at: number): boolean =>
    soloMsAt(task, share, candidate.kind) <= budgetMs(task, at);
  const wanted = (task: Task, candidate: CandidatePlace, at: number): number => {
    const isEnough =
      task.sloMs === undefined
        ? (share: number): boolean => share >= fillingShare(task)
        : (share: number): boolean => meets(task, share, candidate, at);
    return slices.find(isEnough) ?? 1;
  };
  return (task, candidate, at) => {
    const best = task.share ?? wanted(task, candidate, at);
    if (hasShare(candidate, best, maxLoad)) return granted(best);
    const fragment = slices.findLast((slice) => hasShare(candidate, slice, maxLoad));
    if (fragment === undefined || task.share !== undefined) {
      return refused('no slice is left', { load: candidate.account.load, share: best });
    }
    const isEnough = task.sloMs === undefined ? fragment >= best / 2 : meets(task, fragment, candidate, at);
    if (isEnough) return { share: fragment, lacks: best - fragment };
    return refused('the fragments are too small', { load: candidate.account.load, fragment, share: best });
  };
}

/** What is left for a task's start and run, ms; Infinity for best effort and for one that is late anyway. */
function budgetMs({ arrivedAt, sloMs, startMs = 0 }: Task, at: number): number {
  if (sloMs === undefined) return Infinity;
  const left = arrivedAt + sloMs - at - startMs;
  return left > 0 ? left : Infinity;
}

/** A task with its measurements. */
interface Measured {
  soloMs?: number;
  features?: WorkloadFeatures;
}

/** Predicted time alone at `share`, ms; Infinity where the task has not been measured. */
type SoloTime = (task: Measured, share: number, gpu: GpuKind) => number;

const mostRemembered = 10_000;

/** Slowdowns alone by share: by the object of the features, which needs no key, and by their values. */
interface Remembered {
  byObject: WeakMap<WorkloadFeatures, Map<number, number>>;
  byValue: Map<string, number>;
}

/** Solo times by predictors. What was asked before is remembered, as long as the predictor is the same. */
function soloTimes(predictorOf: (gpu: GpuKind) => SlowdownPredictor): SoloTime {
  const known = new WeakMap<SlowdownPredictor, Remembered>();
  return ({ soloMs, features }, share, gpu) => {
    if (soloMs === undefined || !features) return Infinity;
    const predictor = predictorOf(gpu);
    let memory = known.get(predictor);
    if (!memory || memory.byValue.size >= mostRemembered) {
      known.set(predictor, (memory = { byObject: new WeakMap(), byValue: new Map() }));
    }
    let shares = memory.byObject.get(features);
    if (shares === undefined) memory.byObject.set(features, (shares = new Map()));
    let slowdown = shares.get(share);
    if (slowdown === undefined) {
      const key = `${features.smUtil} ${features.dramUtil} ${features.l2Util} ${share}`;
      slowdown = memory.byValue.get(key) ?? predictor.slowdown({ features, share }, []);
      memory.byValue.set(key, slowdown);
      shares.set(share, slowdown);
    }
    return soloMs * slowdown;
  };
}
