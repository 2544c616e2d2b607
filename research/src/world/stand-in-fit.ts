// Contention of the stand-in for a GPU, fitted to the licensed data sets: T1's form, by what the stand-in observes of a kernel.
import { meanOf, median, percentile } from '@gpuwhisk/bench/statistics';
import type { Features } from './features.js';
import { fitPressure } from './pressure.js';
import type { Kinds, PressureModel } from './pressure.js';
import { sidesOf, workloadName } from './sets.js';
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
    let best = { fullBatch: smallestBatch, log: Infinity };
    for (let fullBatch = smallestBatch; fullBatch <= largestBatch; fullBatch *= batchStep) {
      const errors = own.map(({ batch, share, stretch }) =>
        Math.abs(Math.log(Math.max(1, Math.min(1, batch / fullBatch) / share) / stretch)),
      );
      if (meanOf(errors) < best.log) best = { fullBatch, log: meanOf(errors) };
    }
    return [{ source, model, variant, ...best, points: own.length }];
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
