// The normal form of measured sets, whatever file they come from.

/** Device mode of a measurement. `unstated`: the source does not say how its processes shared the device. */
export type Mode = 'mps' | 'timeslice' | 'mig' | 'unstated';

/** One process of a measured set. */
export interface Member {
  /** Key of its workload (`workloadKey`). */
  workload: string;
  /** MPS percentage as a fraction, or the part of the compute slices that its MIG slice has; 0 < share ≤ 1. */
  share: number;
  /** Time beside the others over the time alone at the same share. Absent: no trusted time alone, or nothing beside it. */
  contention?: number;
  /** Time alone at this share over the time alone on the whole device. Absent: not measured. */
  stretch?: number;
}

/** Processes that were measured together, or one alone. */
export interface MeasuredSet {
  /** Name of the data set. */
  source: string;
  /** File and line of the measurement. */
  row: string;
  /** GPU type, as in `v100` or `a100-40`. */
  gpu: string;
  mode: Mode;
  members: readonly Member[];
  /** Two or more whole inferences that started together: time of all over that of the longest alone, and of their sum. */
  makespan?: { overLongest: number; overSum: number };
}

/** A workload alone on the whole device. */
export interface Alone {
  /** Key of the workload. */
  workload: string;
  source: string;
  gpu: string;
  /** Figures that a platform can observe; the same names for all workloads of a source on a GPU. */
  features: Readonly<Record<string, number>>;
}

/** Parts of a workload's name. `variant`: data set, precision or sequence length; empty if there is none. */
export interface WorkloadName {
  source: string;
  model: string;
  variant: string;
  batch: number;
  task: 'training' | 'inference';
}

/** The key of a workload: workloads of two sources never have the same key. */
export function workloadKey({ source, model, variant, batch, task }: WorkloadName): string {
  return [source, model, variant, batch, task].join('|');
}

/** The parts of a key that `workloadKey` made. Throws RangeError for another text. */
export function workloadName(key: string): WorkloadName {
  const [source, model, variant, batch, task] = key.split('|');
  if (
    source === undefined ||
    model === undefined ||
    variant === undefined ||
    (task !== 'training' && task !== 'inference')
  )
    throw new RangeError(`'${key}' is no key of a workload`);
  return { source, model, variant, batch: Number(batch), task };
}

/** Name of a member with its share, as in a key of a set. */
export const memberKey = ({ workload, share }: Pick<Member, 'workload' | 'share'>): string =>
  `${workload}@${Math.round(1000 * share)}`;

/** Name of a set of members, whatever their order. */
export const setKey = (members: readonly Pick<Member, 'workload' | 'share'>[]): string =>
  members.map(memberKey).sort().join(' + ');

/** A process of a set, beside the others. */
export interface Side {
  set: MeasuredSet;
  own: Member & { contention: number };
  others: readonly Member[];
}

/** Every process of a set of two or more whose contention was measured. */
export function sidesOf(sets: readonly MeasuredSet[]): Side[] {
  return sets.flatMap((set) =>
    set.members.flatMap((own, at): Side[] => {
      const { contention } = own;
      if (contention === undefined || set.members.length < 2) return [];
      return [{ set, own: { ...own, contention }, others: set.members.filter((_, other) => other !== at) }];
    }),
  );
}

/**
 * How far the quotas of a set overlap: 0 where they add up to at most 1, 1 where each is the whole device, in between in
 * proportion. Slices never overlap, and members of one slice always do.
 */
export function overlapOf(mode: Mode, shares: readonly number[]): number {
  if (mode !== 'mps') return 1;
  const sum = shares.reduce((total, share) => total + share, 0);
  if (shares.length < 2 || sum <= 1 + 1e-9) return 0;
  return Math.min(1, (sum - 1) / (shares.length - 1));
}
