/* eslint-disable @typescript-eslint/no-non-null-assertion -- keys are taken from the maps that they are looked up in */
// Errors of the truths on parts that they were not fitted to.
import { hashOf } from '@gpuwhisk/gpu/numeric/hash';
import { median, meanOf, percentile } from '@gpuwhisk/bench/statistics';
import { Curves } from './curves.js';
import { featuresOf } from './features.js';
import type { Features } from './features.js';
import { memberKey, overlapOf, setKey, sidesOf, workloadName } from './sets.js';
import type { Alone, MeasuredSet, Member, Mode, Side } from './sets.js';
import { forms, leastSides, modelOf } from './truth.js';
import type { Form } from './truth.js';

/**
 * Parts that are left out of a fit: all sets with a model, or its sets of three and more (`larger`), all sets of a number of
 * processes, of a quota or slice, or a fifth of the sets of known models.
 */
export type Split = 'models' | 'larger' | 'processes' | 'quotas' | 'sets';

/** A part of the sides that is left out together. */
interface Fold {
  train: Side[];
  test: Side[];
}

const setFolds = 5;

const modelsOf = ({ members }: MeasuredSet): string[] => [
  ...new Set(members.map(({ workload }) => workloadName(workload).model)),
];

/** Names of the parts that a side belongs to. All sides of a part are left out at once. */
const partsOf: Record<Split, (side: Side) => readonly string[]> = {
  models: ({ set }) => modelsOf(set),
  larger: ({ set }) => (set.members.length > 2 ? modelsOf(set) : []),
  processes: ({ set }) => [String(set.members.length)],
  quotas: ({ set }) => [
    set.members
      .map(({ share }) => share)
      .sort((a, b) => a - b)
      .join(' '),
  ],
  sets: ({ set }) => [
    String(
      hashOf(
        set.members
          .map(({ workload }) => workload)
          .sort()
          .join(' + '),
      ) % setFolds,
    ),
  ],
};

/** Folds of the sides of one source; no fold if there is but one part. */
function foldsOf(sides: readonly Side[], split: Split): Fold[] {
  const parts = [...new Set(sides.flatMap(partsOf[split]))].sort();
  if (parts.length < 2) return [];
  return parts
    .map((part) => ({
      train: sides.filter((side) => !partsOf[split](side).includes(part)),
      test: sides.filter((side) => partsOf[split](side).includes(part)),
    }))
    .filter(({ train }) => train.length >= leastSides);
}

/** Kinds of sets whose errors are told apart. */
export function kindOf(mode: Mode, { set }: Pick<Side, 'set'>): string {
  const size = set.members.length;
  if (mode !== 'mps') return `${size}`;
  const overlap = overlapOf(
    mode,
    set.members.map(({ share }) => share),
  );
  return overlap > 0 ? `${size} whole` : `${size} disjoint`;
}

/**
 * Ways to predict a contention: the truths; the median of the kind (`constant`); for three and more the product of the
 * contentions of measured pairs (`multiplied`), 1 and the sum of their excesses (`added`), and the products of pairs as the
 * truths predict them (`T1 multiplied`, `T2 multiplied`).
 */
export type Predictor = Form | 'constant' | 'multiplied' | 'added' | `${Form} multiplied`;

/** Errors of one way to predict the contention of one kind of sets. */
export interface Errors {
  split: Split;
  kind: string;
  predictor: Predictor;
  /** `all`: all sides; `paired`: those all of whose pairs were measured, by which pairs can predict them. */
  among: 'all' | 'paired';
  sides: number;
  /** Mean absolute error of the contention. */
  mae: number;
  /** Mean and 90th percentile of the absolute logarithm of predicted over measured. */
  log: number;
  logP90: number;
}

/** Errors and repeatability of one source on one GPU type in one mode. */
export interface SourceErrors {
  source: string;
  gpu: string;
  mode: Mode;
  errors: Errors[];
  /** Sides that are too few for a model. */
  refused: number;
}

/** Contention of measured pairs of whole devices, by own workload and neighbour: the median of repeated measurements. */
function wholePairs(sides: readonly Side[], mode: Mode): Map<string, number> {
  const values = new Map<string, number[]>();
  for (const { set, own, others } of sides) {
    if (
      others.length !== 1 ||
      overlapOf(
        mode,
        set.members.map(({ share }) => share),
      ) < 1
    )
      continue;
    const key = pairKey(own, others[0]!);
    values.set(key, [...(values.get(key) ?? []), own.contention]);
  }
  return new Map([...values].map(([key, all]) => [key, median(all)]));
}

const pairKey = (own: Member, other: Member): string => `${memberKey(own)}\n${memberKey(other)}`;

/** Errors of both truths and of simple rules on the parts of one source that were left out. */
export function leftOutErrors(
  { source, gpu, mode }: { source: string; gpu: string; mode: Mode },
  sets: readonly MeasuredSet[],
  alone: readonly Alone[],
  splits: readonly Split[],
): SourceErrors {
  const own = sets.filter((set) => set.source === source && set.gpu === gpu);
  const sides = sidesOf(own.filter((set) => set.mode === mode && set.makespan === undefined));
  if (sides.length < leastSides) return { source, gpu, mode, errors: [], refused: sides.length };
  const features = featuresOf(
    alone.filter((one) => one.gpu === gpu && one.source === source),
    own,
  );
  const pairs = wholePairs(sides, mode);
  const errors = splits.flatMap((split) => {
    const collected = new Collected();
    for (const { train, test } of foldsOf(sides, split)) judge({ train, test }, mode, features, pairs, collected);
    return collected.errors(split);
  });
  return { source, gpu, mode, errors, refused: 0 };
}

/** Errors by kind, predictor and choice of sides. */
class Collected {
  private readonly values = new Map<string, { absolute: number; log: number }[]>();

  add(kind: string, predictor: Predictor, among: Errors['among'], predicted: number, measured: number): void {
    const key = `${kind}\n${predictor}\n${among}`;
    const values = this.values.get(key) ?? [];
    this.values.set(key, values);
    values.push({ absolute: Math.abs(predicted - measured), log: Math.abs(Math.log(predicted / measured)) });
  }

  errors(split: Split): Errors[] {
    return [...this.values].map(([key, values]) => {
      const [kind, predictor, among] = key.split('\n') as [string, Predictor, Errors['among']];
      const logs = values.map(({ log }) => log);
      return {
        ...{ split, kind, predictor, among, sides: values.length },
        ...{ mae: meanOf(values.map(({ absolute }) => absolute)), log: meanOf(logs), logP90: percentile(logs, 90) },
      };
    });
  }
}

function judge(
  { train, test }: Fold,
  mode: Mode,
  features: Features,
  pairs: ReadonlyMap<string, number>,
  into: Collected,
): void {
  const models = forms.map((form) => [form, modelOf(form, train, mode, features)] as const);
  const medians = new Map<string, number>();
  const constantOf = (side: Side): number => {
    const kind = kindOf(mode, side);
    const same = train.filter((one) => kindOf(mode, one) === kind);
    const known = medians.get(kind) ?? median((same.length > 0 ? same : train).map((one) => one.own.contention));
    medians.set(kind, known);
    return known;
  };
  for (const side of test) {
    const { set, own, others } = side;
    const overlap = overlapOf(
      mode,
      set.members.map(({ share }) => share),
    );
    const kind = kindOf(mode, side);
    const of = others.map((other) => pairs.get(pairKey(own, other)));
    const paired = others.length > 1 && of.every((one) => one !== undefined) ? of : undefined;
    const add = (predictor: Predictor, predicted: number): void => {
      into.add(kind, predictor, 'all', predicted, own.contention);
      if (paired !== undefined) into.add(kind, predictor, 'paired', predicted, own.contention);
    };
    for (const [form, model] of models) {
      add(form, model(own, others, overlap));
      if (others.length > 1)
        add(
          `${form} multiplied`,
          others.reduce((product, other) => product * model(own, [other], overlap), 1),
        );
    }
    add('constant', constantOf(side));
    if (paired === undefined) continue;
    into.add(
      kind,
      'multiplied',
      'paired',
      paired.reduce((product, one) => product * one, 1),
      own.contention,
    );
    into.add(
      kind,
      'added',
      'paired',
      paired.reduce((sum, one) => sum + one - 1, 1),
      own.contention,
    );
  }
}

/**
 * Errors of times alone at a share that was left out, between measured ones: absolute logarithms of interpolated over measured.
 * Shares at the ends of a curve are refused, not interpolated.
 */
export function aloneErrors(sets: readonly MeasuredSet[]): number[] {
  const single = sets.filter(({ members }) => members.length === 1);
  return single.flatMap(({ members }) => {
    const { workload, share, stretch } = members[0]!;
    const own = single.filter((set) => set.members[0]!.workload === workload);
    const shares = own.map((set) => set.members[0]!.share);
    if (stretch === undefined || share === 1 || share === Math.min(...shares) || share === Math.max(...shares))
      return [];
    const { value } = new Curves(own.filter((set) => set.members[0]!.share !== share)).at(workload, share);
    return [Math.abs(Math.log(value / stretch))];
  });
}

/** How far repeated measurements of one set differ: absolute logarithms of all ratios of two; empty if none was repeated. */
export function repeats(sets: readonly MeasuredSet[]): number[] {
  const values = new Map<string, number[]>();
  for (const set of sets) {
    if (set.members.length < 2) continue;
    for (const member of set.members) {
      // Equal members of one set are two processes, no repetition.
      const isEqual = set.members.filter((one) => memberKey(one) === memberKey(member)).length > 1;
      if (member.contention === undefined || isEqual) continue;
      const key = `${set.gpu}\n${set.mode}\n${setKey(set.members)}\n${memberKey(member)}`;
      values.set(key, [...(values.get(key) ?? []), member.contention]);
    }
  }
  return [...values.values()].flatMap((all) =>
    all.flatMap((one, i) => all.slice(i + 1).map((other) => Math.abs(Math.log(one / other)))),
  );
}
