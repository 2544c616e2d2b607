/* eslint-disable @typescript-eslint/no-non-null-assertion -- kinds are indices of `kinds`, and a set has a slowdown for each of its kinds */
import { kindName, type GpuKind } from '@gpuwhisk/common/gpu';
import type { CoLocated, SlowdownPredictor, WorkloadFeatures } from '../../predict/slowdown-predictor.js';

/** Assumed of functions that were not profiled: they use all of the GPU. */
const unprofiled: WorkloadFeatures = { smUtil: 1, dramUtil: 1, l2Util: 1 };
/** Sets and kinds that are remembered; then all are forgotten. They take a few MiB. */
const maxSets = 10_000;

/** A path of kinds in rising order; at its end is what was predicted of them. */
interface SetNode {
  next: Map<number, SetNode> | undefined;
  slowdowns: Float64Array | undefined;
}

const emptySet = (): SetNode => ({ next: undefined, slowdowns: undefined });

/**
 * What a model predicts of tasks that share a GPU, each set computed once. A task's kind is a number that stands for its
 * features and its share; the sets are kept in a tree, since a key of text costs as much as a small prediction.
 */
export class SetPredictions {
  private readonly kinds: CoLocated[] = [];
  /** Profiles are the same objects from one decision to the next, as a rule. */
  private byObject = new WeakMap<WorkloadFeatures, Map<number, number>>();
  private readonly byValue = new Map<string, number>();
  private readonly singles: number[] = [];
  private root = emptySet();
  private sets = 0;
  /** Predictions that were no numbers, and in whose place an estimate was used. */
  distrusted = 0;

  constructor(readonly predictor: SlowdownPredictor) {}

  /** The kind of a task at a share; features are assumed where there are none. */
  kindOf(features: WorkloadFeatures = unprofiled, share: number): number {
    let byShare = this.byObject.get(features);
    if (byShare === undefined) {
      byShare = new Map();
      this.byObject.set(features, byShare);
    }
    let kind = byShare.get(share);
    if (kind === undefined) {
      kind = this.kindByValue(features, share);
      byShare.set(share, kind);
    }
    return kind;
  }

  /** The slowdown of each of `kinds`, in their order, if they run together. */
  slowdowns(kinds: readonly number[]): number[] {
    const sorted = inOrder(kinds);
    let node = this.root;
    for (const kind of sorted) {
      let next = node.next?.get(kind);
      if (next === undefined) {
        next = emptySet();
        (node.next ??= new Map()).set(kind, next);
        this.sets += 1;
      }
      node = next;
    }
    const known = (node.slowdowns ??= this.predict(sorted));
    return kinds.map((kind) => known[sorted.indexOf(kind)]!);
  }

  /** The slowdown of a task that has the GPU to itself. */
  alone(features: WorkloadFeatures | undefined, share: number): number {
    const kind = this.kindOf(features, share);
    return (this.singles[kind] ??= this.predictOne(this.kinds[kind]!, []));
  }

  /** Forgets everything once there is too much of it. Kinds that were asked for before are void then. */
  trim(): void {
    if (this.sets <= maxSets && this.kinds.length <= maxSets) return;
    this.root = emptySet();
    this.sets = 0;
    this.kinds.length = 0;
    this.singles.length = 0;
    this.byValue.clear();
    this.byObject = new WeakMap();
  }

  private kindByValue(features: WorkloadFeatures, share: number): number {
    const { smUtil, dramUtil, l2Util } = features;
    const key = `${smUtil} ${dramUtil} ${l2Util} ${share}`;
    const known = this.byValue.get(key);
    if (known !== undefined) return known;
    this.byValue.set(key, this.kinds.length);
    return this.kinds.push({ features, share }) - 1;
  }

  private predict(sorted: readonly number[]): Float64Array {
    const set = sorted.map((kind) => this.kinds[kind]!);
    const slowdowns = new Float64Array(set.length);
    set.forEach((one, at) => {
      const isAsBefore = at > 0 && sorted[at] === sorted[at - 1];
      slowdowns[at] = isAsBefore ? slowdowns[at - 1]! : this.predictOne(one, set.toSpliced(at, 1));
    });
    return slowdowns;
  }

  private predictOne(one: CoLocated, others: readonly CoLocated[]): number {
    const predicted = this.predictor.slowdown(one, others);
    if (Number.isFinite(predicted)) return Math.max(1, predicted);
    this.distrusted += 1;
    // As if all of them took turns.
    return (others.length + 1) / one.share;
  }
}

/** Sorted by insertion: sets are small, and most are in order. */
function inOrder(kinds: readonly number[]): readonly number[] {
  if (kinds.length < 2 || (kinds.length === 2 && kinds[0]! <= kinds[1]!)) return kinds;
  const sorted = kinds.slice();
  for (let end = 1; end < sorted.length; end += 1) {
    const kind = sorted[end]!;
    let at = end;
    for (; at > 0 && sorted[at - 1]! > kind; at -= 1) sorted[at] = sorted[at - 1]!;
    sorted[at] = kind;
  }
  return sorted;
}

/** Predictions for every type and mode of GPU. */
export class PredictionCache {
  private readonly byModel = new Map<string, SetPredictions>();

  constructor(private readonly predictorOf: (gpu: GpuKind) => SlowdownPredictor) {}

  /** What the model that is in force predicts for such a GPU; kinds are good for one decision. */
  of(gpu: GpuKind): SetPredictions {
    const name = kindName(gpu);
    const predictor = this.predictorOf(gpu);
    const known = this.byModel.get(name);
    if (known?.predictor === predictor) {
      known.trim();
      return known;
    }
    const fresh = new SetPredictions(predictor);
    this.byModel.set(name, fresh);
    return fresh;
  }
}
