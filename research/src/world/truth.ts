/* eslint-disable @typescript-eslint/no-non-null-assertion -- indices of members and of what belongs to them are the same */
// How much slower processes are beside each other: the measurement where the set was measured, a fitted model elsewhere.
import { median } from '@gpuwhisk/bench/statistics';
import { Curves } from './curves.js';
import type { Stretch } from './curves.js';
import { featuresOf } from './features.js';
import type { Features } from './features.js';
import { nearestModel } from './nearest.js';
import { fitPressure } from './pressure.js';
import { memberKey, overlapOf, setKey, sidesOf, workloadName } from './sets.js';
import type { Alone, MeasuredSet, Member, Mode, Side } from './sets.js';

/** The two models: `T1`, pressures fitted to all sets; `T2`, the nearest measured sets. */
export const forms = ['T1', 'T2'] as const;
export type Form = (typeof forms)[number];

/** Sides of a source below which no model is fitted to it. */
export const leastSides = 24;

/** How quotas that overlap in part are priced, which no data has: as disjoint ones, or as the whole device for each. */
export type Bracket = 'disjoint' | 'whole';

/** A process that is asked about. */
export type Asked = Pick<Member, 'workload' | 'share'>;

/** The answer for one process of a set. */
export interface Answer {
  /** Time beside the others over the time alone on the whole device. */
  slowdown: number;
  /** Whether any factor of it comes from a model; else all were measured. */
  extrapolated: boolean;
  /** Rows of the set's measurements; empty if it was not measured. */
  rows: readonly string[];
}

/** Contention of a process by a model. */
type Model = (own: Member, others: readonly Member[], overlap: number) => number;

/** A model of one GPU type and mode in one form. Sources with fewer than `leastSides` sides have none; a set of theirs throws RangeError. */
export function modelOf(form: Form, sides: readonly Side[], mode: Mode, features: Features): Model {
  const bySource = new Map<string, Side[]>();
  for (const side of sides) bySource.set(side.set.source, [...(bySource.get(side.set.source) ?? []), side]);
  const enough = new Map([...bySource].filter(([, own]) => own.length >= leastSides));
  const sourceOf = (workload: string): string => {
    const { source } = workloadName(workload);
    if (enough.has(source)) return source;
    const count = bySource.get(source)?.length ?? 0;
    throw new RangeError(
      `${source} has ${count} measured processes beside others in this mode; a model needs ${leastSides}`,
    );
  };
  if (form === 'T2') {
    const all = [...enough.values()].flat();
    const model = all.length === 0 ? undefined : nearestModel(all, mode, features);
    return (own, others, overlap) => {
      for (const { workload } of [own, ...others]) sourceOf(workload);
      return model!.contention(own, others, overlap);
    };
  }
  const models = new Map([...enough].map(([source, own]) => [source, fitPressure(own, mode, features)]));
  return (own, others, overlap) => {
    const pressures = others.map(({ workload }) => models.get(sourceOf(workload))!.pressureOf(workload));
    return models.get(sourceOf(own.workload))!.contention(own, others, pressures, overlap);
  };
}

/** Measured sets of one GPU type in one mode, whose sets of one may come from any mode of that type. */
export class Truth {
  private readonly measured = new Map<string, MeasuredSet[]>();
  private readonly curves: Curves;
  private readonly known: ReadonlySet<string>;
  private readonly largest: number;
  private readonly features: Features;
  private readonly sides: readonly Side[];
  private model: Model | undefined;

  /** `sets` and `alone`: all that was measured on any GPU in any mode; the truth takes those of its own. */
  constructor(
    readonly gpu: string,
    readonly mode: Mode,
    readonly form: Form,
    sets: readonly MeasuredSet[],
    alone: readonly Alone[],
  ) {
    const onGpu = sets.filter((set) => set.gpu === gpu);
    const own = onGpu.filter((set) => set.mode === mode && set.makespan === undefined);
    for (const set of own) {
      const key = setKey(set.members);
      this.measured.set(key, [...(this.measured.get(key) ?? []), set]);
    }
    // A time alone at a share is the same in MPS and in time slices only on the whole device.
    this.curves = new Curves(onGpu.filter((set) => set.mode === mode));
    this.known = new Set(own.flatMap(({ members }) => members.map(({ workload }) => workload)));
    this.largest = Math.max(0, ...own.map(({ members }) => members.length));
    this.features = featuresOf(
      alone.filter((one) => one.gpu === gpu),
      onGpu,
    );
    this.sides = sidesOf(own);
  }

  /** Key of the truth in seeds and results. */
  get name(): string {
    return `${this.gpu}/${this.mode}/${this.form}`;
  }

  /**
   * Slowdown of each member beside the others. `bracket` is needed where quotas overlap in part. Throws RangeError for a
   * workload that was not measured on this GPU type in this mode, for more members than any measured set has, for a share
   * beyond the measured ones, for a source with too few measurements, and for a partial overlap without a bracket.
   */
  answer(members: readonly Asked[], bracket?: Bracket): Answer[] {
    for (const { workload } of members)
      if (!this.known.has(workload))
        throw new RangeError(`${workload} was not measured on ${this.gpu} in mode ${this.mode}`);
    if (members.length > this.largest)
      throw new RangeError(
        `${members.length} processes together were not measured on ${this.gpu} in mode ${this.mode}: at most ${this.largest}`,
      );
    if (this.mode === 'mig' && new Set(members.map(({ share }) => share)).size > 1)
      throw new RangeError('members of a set in mode mig are in one slice; slices are isolated from each other');
    const overlap = overlapOf(
      this.mode,
      members.map(({ share }) => share),
    );
    const exact = this.measured.get(setKey(members));
    const isPartial = overlap > 0 && overlap < 1 && exact === undefined;
    if (isPartial && bracket === undefined)
      throw new RangeError('quotas that overlap in part were not measured: name the bracket to price them in');
    if (isPartial && bracket === 'whole') {
      const whole = members.map(({ workload }) => ({ workload, share: 1 }));
      return this.answerAt(whole, 1, true, this.measured.get(setKey(whole)));
    }
    return this.answerAt(members, isPartial ? 0 : overlap, isPartial, exact);
  }

  private answerAt(
    asked: readonly Asked[],
    overlap: number,
    isPriced: boolean,
    exact?: readonly MeasuredSet[],
  ): Answer[] {
    const stretches = asked.map(({ workload, share }): Stretch => {
      if (this.mode === 'mig' || this.mode === 'mps') return this.curves.at(workload, share);
      if (share !== 1) throw new RangeError(`quotas have no effect in mode ${this.mode}`);
      return { value: 1, isMeasured: true };
    });
    const members = asked.map(({ workload, share }, i): Member => ({ workload, share, stretch: stretches[i]!.value }));
    return members.map((own, i): Answer => {
      const measured = exact?.flatMap((set) =>
        set.members.flatMap((member) =>
          memberKey(member) === memberKey(own) && (member.contention !== undefined || asked.length === 1)
            ? [{ set, member }]
            : [],
        ),
      );
      const { value, isMeasured } = stretches[i]!;
      if (measured !== undefined && measured.length > 0) {
        const contention = asked.length === 1 ? 1 : median(measured.map(({ member }) => member.contention!));
        const rows = [...new Set(measured.map(({ set }) => set.row))];
        return { slowdown: contention * value, extrapolated: isPriced || !isMeasured, rows };
      }
      if (asked.length === 1) return { slowdown: value, extrapolated: !isMeasured, rows: [] };
      this.checkOverlap(own.workload, overlap);
      this.model ??= modelOf(this.form, this.sides, this.mode, this.features);
      const others = members.filter((_, other) => other !== i);
      return { slowdown: value * this.model(own, others, overlap), extrapolated: true, rows: [] };
    });
  }

  /** Throws RangeError if quotas overlap and none of the source's sets has such, or the other way round. */
  private checkOverlap(workload: string, overlap: number): void {
    const { source } = workloadName(workload);
    const isLike = this.sides.some(({ set }) => {
      const shares = set.members.map(({ share }) => share);
      return set.source === source && overlapOf(this.mode, shares) > 0 === overlap > 0;
    });
    if (!isLike)
      throw new RangeError(
        `${source} has no set in mode ${this.mode} whose quotas ${overlap > 0 ? 'overlap' : 'are disjoint'}`,
      );
  }
}
