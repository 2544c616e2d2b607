// Contention of the stand-in for a GPU, fitted to the licensed data sets: T1's form, by what the stand-in observes of a kernel.
import { meanOf, median, percentile } from '@gpuwhisk/bench/statistics';
import type { Features } from './features.js';
import { fitPressure } from './pressure.js';
import type { Kinds, Linear, PressureModel } from './pressure.js';
import { overlapOf, sidesOf, workloadName } from './sets.js';
import type { MeasuredSet, Member, Side } from './sets.js';
import type { Measured } from './sources.js';

/** Batch at which a model fills the device, and the error of its times alone in slices by it. */
export interface FullBatch {
  source: string;
  model: string;
  variant: string;
  fullBatch: number;
  points: number;
  /** Mean absolute logarithm of predicted over measured time alone. */
  log: number;
}

const [smallestBatch, largestBatch, batchStep] = [0.25, 2048, 1.02];
const [smallestFill, largestFill] = [0.01, 1];

/** The value of a geometric grid with the least error, and that error. */
function bestOf(from: number, to: number, errorOf: (value: number) => number): { value: number; error: number } {
  let best = { value: from, error: Infinity };
  for (let value = from; value <= to; value *= batchStep) {
    const error = errorOf(value);
    if (error < best.error) best = { value, error };
  }
  return best;
}
/** Absolute logarithm of the time alone of one that fills `fill` of the device, max(1, fill / share), over the measured one. */
const aloneError = (fill: number, share: number, stretch: number): number =>
  Math.abs(Math.log(Math.max(1, fill / share) / stretch));

/** Times alone below which no batch is fitted. */
const leastPoints = 4;

/**
 * The batch at which each model fills the device, by its times alone in slices: a batch of b fills F = min(1, b / fullBatch)
 * of the device, and takes max(1, F / share) of its time there. The best of a geometric grid by the mean absolute logarithm.
 * Models with fewer than four measured slices have none.
 */
export function fullBatches(sets: readonly MeasuredSet[]): FullBatch[] {
  const points = new Map<string, { batch: number; share: number; stretch: number }[]>();
  for (const { mode, members } of sets) {
    const [only] = members;
    if (mode !== 'mig' || members.length > 1 || only?.stretch === undefined || only.share === 1) continue;
    const { source, model, variant, batch } = workloadName(only.workload);
    // A sequence is work of the batch, so that batches of one length are one model.
    const key = [source, model, variant].join('|');
    const { share, stretch } = only;
    points.set(key, [...(points.get(key) ?? []), { batch, share, stretch }]);
  }
  return [...points].flatMap(([key, own]): FullBatch[] => {
    if (own.length < leastPoints) return [];
    const [source = '', model = '', variant = ''] = key.split('|');
    const { value: fullBatch, error: log } = bestOf(smallestBatch, largestBatch, (value) =>
      meanOf(own.map(({ batch, share, stretch }) => aloneError(Math.min(1, batch / value), share, stretch))),
    );
    return [{ source, model, variant, fullBatch, log, points: own.length }];
  });
}

/** Dense FP32 operations per second: NVIDIA's data sheets of the V100 SXM2 and the P100 PCIe. */
const peak: Readonly<Record<string, number>> = { v100: 15.7e12, p100: 9.3e12 };
/** Assumed: a training step has three times the operations of a forward pass, and a GPU that is full reaches half of its peak. */
const [passes, reached] = [3, 0.5];
const feature = 'logFill';

/**
 * Sides of Gavel and ParvaGPU in which each process has the whole device or slice, with the logarithm of the fill of each: the SMs
 * that its kernels would fill over those that there are. Of ParvaGPU it follows from times alone in slices (`fullBatches`),
 * of Gavel from counted operations per second, which is an estimate. Gavel is taken for MPS with 100 % each: its worker
 * starts MPS, and its V100 pairs do more work than turns could.
 */
export function standInSides({ sets, alone }: Pick<Measured, 'sets' | 'alone'>): { sides: Side[]; features: Features } {
  const batches = new Map(fullBatches(sets).map((one) => [`${one.source}|${one.model}`, one.fullBatch]));
  const rates = new Map(
    alone.flatMap(({ source, gpu, workload, features }) =>
      source === 'gavel' ? [[`${gpu} ${workload}`, Math.exp(features.logFlopsPerS ?? NaN)] as const] : [],
    ),
  );
  const vectors = new Map<string, Float64Array>();
  const placed = (set: MeasuredSet, member: Member): Member | undefined => {
    const { source, model, batch } = workloadName(member.workload);
    const fullBatch = batches.get(`${source}|${model}`);
    const top = peak[set.gpu];
    const rate = rates.get(`${set.gpu} ${member.workload}`);
    const fill =
      source === 'parvagpu' && fullBatch !== undefined
        ? Math.min(1, batch / fullBatch) / member.share
        : source === 'gavel' && top !== undefined && rate !== undefined
          ? (passes * rate) / (reached * top)
          : NaN;
    if (!(fill > 0)) return undefined;
    const workload = `${member.workload}|${set.gpu}|${member.share}`;
    vectors.set(workload, Float64Array.of(Math.log(fill)));
    return { ...member, workload, share: 1 };
  };
  const whole = sets.flatMap((set): MeasuredSet[] => {
    if (set.members.length < 2 || set.makespan !== undefined) return [];
    const members = set.members.map((member) => placed(set, member));
    return members.every((member) => member !== undefined) ? [{ ...set, mode: 'mps', members }] : [];
  });
  const names = new Map([...new Set(whole.map(({ source }) => source))].map((source) => [source, [feature]]));
  return { sides: sidesOf(whole), features: { vectors, names, filled: 0 } };
}

/** No deviation: the fill was measured. With the estimated fill of a training job, its sensitivity and pressure may deviate. */
const [fixed, training]: [Kinds, Kinds] = [
  [1e4, 1e4, 1e4],
  [1e4, 0.5, 0.5],
];

/** Demand and pressure are likely in proportion to the fill, and the sensitivity the same for all. */
const weights: Kinds = [1, 0, 1];

/** T1's form by the fill. Throws RangeError for no sides. */
export const fitStandIn = (sides: readonly Side[], features: Features): PressureModel =>
  fitPressure(sides, 'mps', features, {
    stiffnessOf: (workload) => (workload.startsWith('gavel|') ? training : fixed),
    weights,
  });

/** By what the sensitivity and the pressure of a model's training differ from those of its fill: geometric means over its batches. */
export function trainingFactors({ parameters }: PressureModel, features: Features, model: string): number[] {
  const own = [...features.vectors.keys()].filter((key) => key.startsWith(`gavel|${model}|`));
  if (own.length === 0) throw new RangeError(`Gavel has no pairs of ${model}`);
  return [1, 2].map((kind) => Math.exp(meanOf(own.map((key) => parameters.deviationOf(key)[kind] ?? 0))));
}

/** Error on sides that were left out. `log`, `logP90`: mean and 90th percentile of the absolute logarithm of predicted over measured. */
export interface StandInError {
  source: string;
  gpu: string;
  processes: number;
  leftOut: 'models' | 'processes';
  sides: number;
  log: number;
  logP90: number;
  constantLog: number;
  constantLogP90: number;
}

const modelsOf = ({ set }: Side): string[] => set.members.map(({ workload }) => workload.split('|')[1] ?? '');

/** Contention of a side by a model. */
export function contentionOf(model: PressureModel, { own, others }: Pick<Side, 'own' | 'others'>): number {
  return model.contention(
    own,
    others,
    others.map(({ workload }) => model.pressureOf(workload)),
    1,
  );
}

/**
 * Errors with each model of each source left out in turn, and with each of ParvaGPU's numbers of processes, beside those of a
 * constant, the median of the other sides of that kind (of the other numbers where the number is left out).
 */
export function standInErrors(sides: readonly Side[], features: Features): StandInError[] {
  const kindOf = ({ set }: Side): string => `${set.source}|${set.gpu}|${set.members.length}`;
  const found = new Map<string, { fitted: number; constant: number }[]>();
  const judge = (leftOut: StandInError['leftOut'], isLeft: (side: Side) => boolean): void => {
    const rest = sides.filter((side) => !isLeft(side));
    const model = fitStandIn(rest, features);
    const constants = new Map<string, number>();
    for (const side of sides.filter(isLeft)) {
      const kind = kindOf(side);
      const like = (one: Side): boolean =>
        leftOut === 'models' ? kindOf(one) === kind : one.set.source === side.set.source;
      if (!constants.has(kind)) constants.set(kind, median(rest.filter(like).map(({ own }) => own.contention)));
      const key = `${leftOut}|${kind}`;
      const errors = found.get(key) ?? [];
      found.set(key, errors);
      errors.push({
        fitted: Math.abs(Math.log(contentionOf(model, side) / side.own.contention)),
        constant: Math.abs(Math.log((constants.get(kind) ?? NaN) / side.own.contention)),
      });
    }
  };
  for (const model of new Set(sides.flatMap(modelsOf))) judge('models', (side) => modelsOf(side).includes(model));
  for (const size of new Set(sides.filter(({ set }) => set.source === 'parvagpu').map(({ set }) => set.members.length)))
    judge('processes', ({ set }) => set.source === 'parvagpu' && set.members.length === size);
  return [...found].map(([key, errors]): StandInError => {
    const [leftOut, source = '', gpu = '', processes] = key.split('|');
    const [fitted, constant] = [errors.map((one) => one.fitted), errors.map((one) => one.constant)];
    return {
      ...{
        source,
        gpu,
        processes: Number(processes),
        leftOut: leftOut as StandInError['leftOut'],
        sides: errors.length,
      },
      ...{ log: meanOf(fitted), logP90: percentile(fitted, 90) },
      ...{ constantLog: meanOf(constant), constantLogP90: percentile(constant, 90) },
    };
  });
}

/** Error of the fit on one kind of sets that it was not fitted to, and may not be. */
export interface OutsideError {
  source: string;
  gpu: string;
  mode: string;
  kind: string;
  sides: number;
  log: number;
  logP90: number;
  /** Errors of the median of these very sides. */
  constantLog: number;
  constantLogP90: number;
}

/**
 * Errors on the sets of sources that are not licensed. The fill of a workload follows from its times alone at quotas. Disjoint quotas are
 * taken to lose nothing, and turns to take as many times as long as there are processes. Sides without a fill are left out.
 */
export function outsideErrors(model: PressureModel, sets: readonly MeasuredSet[]): OutsideError[] {
  const points = new Map<string, { share: number; stretch: number }[]>();
  for (const { gpu, mode, members } of sets) {
    const [only] = members;
    if (mode !== 'mps' || members.length > 1 || only?.stretch === undefined || only.share === 1) continue;
    const key = `${gpu} ${only.workload}`;
    points.set(key, [...(points.get(key) ?? []), { share: only.share, stretch: only.stretch }]);
  }
  const fills = new Map(
    [...points].map(([key, own]) => {
      const errorOf = (fill: number): number =>
        meanOf(own.map(({ share, stretch }) => aloneError(fill, share, stretch)));
      return [key, bestOf(smallestFill, largestFill, errorOf).value];
    }),
  );
  const found = new Map<string, { predicted: number; measured: number }[]>();
  for (const { set, own, others } of sidesOf(sets.filter((one) => one.makespan === undefined))) {
    if (set.mode === 'mig' || set.mode === 'unstated') continue;
    const overlap = overlapOf(
      set.mode,
      set.members.map(({ share }) => share),
    );
    if (overlap > 0 && overlap < 1) continue;
    const fill = ({ workload }: Member): number | undefined => fills.get(`${set.gpu} ${workload}`);
    const predicted =
      set.mode === 'timeslice' ? set.members.length : overlap === 0 ? 1 : byFill(model, fill(own), others.map(fill));
    if (predicted === undefined) continue;
    const kind = set.mode === 'mps' ? (overlap === 0 ? 'disjoint' : 'whole') : '';
    const key = [set.source, set.gpu, set.mode, `${set.members.length}${kind}`].join('|');
    found.set(key, [...(found.get(key) ?? []), { predicted, measured: own.contention }]);
  }
  return [...found].map(([key, pairs]): OutsideError => {
    const [source = '', gpu = '', mode = '', kind = ''] = key.split('|');
    const typical = median(pairs.map(({ measured }) => measured));
    const errors = pairs.map(({ predicted, measured }) => Math.abs(Math.log(predicted / measured)));
    const constant = pairs.map(({ measured }) => Math.abs(Math.log(typical / measured)));
    return {
      ...{ source, gpu, mode, kind, sides: pairs.length },
      ...{ log: meanOf(errors), logP90: percentile(errors, 90) },
      ...{ constantLog: meanOf(constant), constantLogP90: percentile(constant, 90) },
    };
  });
}

/** Contention by fills; undefined if one is unknown. */
function byFill(
  model: PressureModel,
  own: number | undefined,
  others: readonly (number | undefined)[],
): number | undefined {
  if (own === undefined || others.some((fill) => fill === undefined)) return undefined;
  const { sharpness, bound, demand, sensitivity, pressure } = model.parameters;
  const value = ({ intercept, weights: [weight = 0] }: Linear, fill: number): number =>
    Math.exp(bound * Math.tanh((intercept + weight * Math.log(fill)) / bound));
  const d = value(demand, own);
  const x =
    d + value(sensitivity, own) * others.reduce<number>((sum, fill) => sum + value(pressure, fill as number), 0);
  return ((1 + x ** sharpness) / (1 + d ** sharpness)) ** (1 / sharpness);
}
