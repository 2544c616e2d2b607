// What a newcomer would cost on a place by prediction: sums of terms, each computed once a minute.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- numbers of members are indices of `members`; a place has a bound and a sum for each of its workloads */
import { kindName, type GpuKind } from '@gpuwhisk/common/gpu';
import { groupedBy } from '@gpuwhisk/common/collections';
import { ofTime } from '../../predict/degradation.js';
import type { DegradationModel, SetMember } from '../../predict/degradation.js';
import { workloadOf } from '../../predict/slowdown-predictor.js';
import type { FeatureRecord } from '../../predict/slowdown-predictor.js';
import { kindOf } from '../../ledger/places.js';
import type { PlaceAccount } from '../../ledger/account.js';
import type { Occupant } from '../../ledger/occupancy.js';
import type { WorkloadState } from '../../view/view.js';

/** The model of a type of GPU in one mode. */
export type ModelOf = (gpu: GpuKind) => DegradationModel;

/** Predicted degradations (D) with a newcomer on a place. */
export interface Effect {
  /** A workload is slower than it tolerates already, or has stopped reporting; nothing else is told then. */
  suffers: boolean;
  /** The largest of its workloads; 0: there is none. */
  train: number;
  /** Of the newcomer. */
  own: number;
  /** Of the first workload that would be beyond its bound, with that bound; both 0: none would be. */
  beyond: number;
  bound: number;
}

/** The workloads of a device. */
interface Standing {
  /** Their numbers. */
  models: readonly number[];
  /** The greatest D of each. */
  bounds: readonly number[];
  /** One is slower than it tolerates already, or has stopped reporting. */
  suffers: boolean;
}

/** What runs on a place, with the sums of its terms; it stays as it is when the place goes on. */
export interface Members extends Standing {
  terms: Terms;
  /** Numbers of its running functions. */
  functions: readonly number[];
  /** What the others on the place are predicted to cost each workload beside a newcomer. */
  sums: readonly number[];
  /** The parts of the SMs that they fill, in sum. */
  fill: number;
}

/** The members of a place as of its list of occupants and its list of workloads. */
interface Counted {
  members: Members;
  account: PlaceAccount;
  stamp: number;
  occupants: readonly Occupant[];
  workloads: readonly WorkloadState[];
}

/** Figures of functions by the keys of their instances. */
export type SavedFigures = readonly (readonly [string, FeatureRecord])[];

/** Members that are told apart; then all are forgotten. */
const maxMembers = 4096;
/** Functions of which figures are remembered; then all are forgotten. */
const maxFunctions = 10_000;
/** How long predictions are used though models learn, ms. */
const renewMs = 60_000;

const none: readonly WorkloadState[] = [];
const noWorkloads: Standing = { models: [], bounds: [], suffers: false };

/** Terms of one type of GPU in one mode, by number of neighbours, victim and neighbour; NaN: not computed yet. */
class Terms {
  private rows: Float64Array[][] = [];
  private readonly fills: (number | undefined)[] = [];

  constructor(
    private readonly model: DegradationModel,
    private readonly members: readonly SetMember[],
    private readonly countsExcess: boolean,
  ) {}

  /** The part of the SMs that a member fills; 0 where that is not known, as its pairs say enough then. */
  fillOf(number: number): number {
    const known = this.fills[number];
    if (known !== undefined) return known;
    const { record, share } = this.members[number]!;
    return (this.fills[number] = Math.min(workloadOf(record)?.smUtil ?? 0, share));
  }

  /** The least D of members that fill `fill` of the SMs together: above 1 they wait for each other, even if each pair fits. */
  leastOf(fill: number): number {
    return this.countsExcess ? Math.max(0, fill - 1) : 0;
  }

  of(victim: number, neighbour: number, neighbours: number): number {
    const rows = (this.rows[neighbours] ??= []);
    let row = rows[victim];
    if (row === undefined || neighbour >= row.length) {
      const longer = new Float64Array(Math.max(64, 2 * neighbour)).fill(NaN);
      if (row !== undefined) longer.set(row);
      row = rows[victim] = longer;
    }
    const known = row[neighbour]!;
    if (!Number.isNaN(known)) return known;
    return (row[neighbour] = this.model.term(this.members[victim]!, this.members[neighbour]!, neighbours));
  }
}

/** Predicts what newcomers do to places. */
export class SetEffects {
  private members: SetMember[] = [];
  /** Numbers of functions, by key and by thousandths of their share. */
  private readonly functions = new Map<string, Map<number, number>>();
  private readonly models = new Map<string, number>();
  /** By list of workloads. */
  private standings = new WeakMap<readonly WorkloadState[], Standing>();
  private readonly terms = new Map<string, Terms>();
  /** By the order of the places. */
  private counted: (Counted | undefined)[] = [];
  /** Counts the changes of the lists of workloads. */
  stamp = 0;
  /** Counts how often all was forgotten: numbers of newcomers, and what was computed with them, hold while it stays. */
  generation = 0;
  /** What `effectOn` gives, the same object each time: a decision asks about every place. */
  private readonly effect: Effect = { suffers: false, train: 0, own: 0, beyond: 0, bound: 0 };
  private readonly records = new Map<string, FeatureRecord>();
  private seen: readonly WorkloadState[] | undefined;
  private lists: ReadonlyMap<string, WorkloadState[]> = new Map();
  private madeAt = -Infinity;

  /** `countsExcess`: members get slower at least by what they fill beyond the GPU together, whatever their pairs say. */
  constructor(
    private readonly modelOf: ModelOf,
    private readonly countsExcess = true,
  ) {}

  /** Begins a decision at `at` (ms) beside these workloads. */
  begin(at: number, workloads: readonly WorkloadState[] | undefined): void {
    if (this.seen !== workloads) this.take(workloads);
    // The clock may have been set back.
    if (Math.abs(at - this.madeAt) < renewMs && this.members.length <= maxMembers) return;
    this.madeAt = at;
    this.members = [];
    this.functions.clear();
    this.models.clear();
    this.standings = new WeakMap();
    this.terms.clear();
    this.recount();
    if (this.records.size > maxFunctions) this.records.clear();
  }

  /** Takes a list of workloads; those of a device stay the same list where they stand as they did. */
  private take(workloads: readonly WorkloadState[] = none): void {
    const lists = groupedBy(workloads, ({ device }) => device);
    let isSame = lists.size === this.lists.size;
    for (const [device, list] of lists) {
      const known = this.lists.get(device);
      if (known !== undefined && standAlike(known, list)) lists.set(device, known);
      else isSame = false;
    }
    this.seen = workloads;
    this.lists = lists;
    if (!isSame) this.stamp += 1;
  }

  private recount(): void {
    this.counted = [];
    this.generation += 1;
  }

  /** Takes notice of a function's figures, by the key of its instances. */
  learn(key: string, record: FeatureRecord | undefined): void {
    const known = this.records.get(key);
    if (record === undefined || (known !== undefined && areSame(known, record))) return;
    this.records.set(key, record);
    this.functions.delete(key);
    this.recount();
  }

  /** The figures of functions that were noticed, for `restore`. */
  saved(): SavedFigures {
    return [...this.records];
  }

  /** Takes the figures that another one noticed. */
  restore(figures: SavedFigures): void {
    this.records.clear();
    for (const [key, record] of figures) this.records.set(key, record);
    this.madeAt = -Infinity;
  }

  /** The number of a function at a share (thousandths), for `effectOn`; it holds until the next `begin` or `learn`. */
  newcomer(key: string, limit: number): number {
    let numbers = this.functions.get(key);
    if (numbers === undefined) this.functions.set(key, (numbers = new Map()));
    let number = numbers.get(limit);
    if (number === undefined) {
      const record = this.records.get(key);
      number = this.members.push({ kind: 'function', name: key, share: limit / 1000, ...(record && { record }) }) - 1;
      numbers.set(limit, number);
    }
    return number;
  }

  /** The workloads of a place. */
  workloadsOn({ id }: { id: string }): readonly WorkloadState[] {
    return this.lists.get(id) ?? none;
  }

  /** The effect of a newcomer on a place. The result holds until the next call. */
  effectOn(account: PlaceAccount, newcomer: number): Effect {
    return effectOf(this.membersOf(account), newcomer, this.effect);
  }

  /** What runs on a place. */
  membersOf(account: PlaceAccount): Members {
    const { order, occupants } = account;
    const known = this.counted[order];
    // The ledger makes the list of occupants again when it counts a place.
    if (known?.account === account && known.occupants === occupants) {
      if (known.stamp === this.stamp || known.workloads === this.workloadsOn(account)) {
        known.stamp = this.stamp;
        return known.members;
      }
    }
    return (this.counted[order] = this.count(account)).members;
  }

  private count(account: PlaceAccount): Counted {
    const { occupants, place } = account;
    const workloads = this.workloadsOn(account);
    const functions: number[] = [];
    for (const { users, functionKey: key = '', limit } of occupants) {
      if (users > 0) functions.push(this.newcomer(key, limit));
    }
    const members = this.membersWith(kindOf(place), workloads, functions);
    return { account, stamp: this.stamp, occupants, workloads, members };
  }

  /** Workloads on a GPU beside functions, which go by their numbers. */
  membersWith(gpu: GpuKind, workloads: readonly WorkloadState[], functions: readonly number[]): Members {
    const terms = this.termsOf(gpu);
    const { models, bounds, suffers } = this.standingOf(workloads);
    const neighbours = functions.length + models.length;
    const sums: number[] = [];
    for (let at = 0; at < models.length; at += 1) {
      let sum = 0;
      for (let other = 0; other < models.length; other += 1) {
        if (other !== at) sum += terms.of(models[at]!, models[other]!, neighbours);
      }
      for (const one of functions) sum += terms.of(models[at]!, one, neighbours);
      sums.push(sum);
    }
    let fill = 0;
    for (const one of models) fill += terms.fillOf(one);
    for (const one of functions) fill += terms.fillOf(one);
    return { terms, functions, models, bounds, sums, fill, suffers };
  }

  private standingOf(workloads: readonly WorkloadState[]): Standing {
    if (workloads === none) return noWorkloads;
    let standing = this.standings.get(workloads);
    if (standing === undefined) {
      standing = {
        models: workloads.map((one) => this.modelOfWorkload(one)),
        bounds: workloads.map(({ tolerated }) => ofTime(tolerated)),
        suffers: workloads.some(isSuffering),
      };
      this.standings.set(workloads, standing);
    }
    return standing;
  }

  private modelOfWorkload(workload: WorkloadState): number {
    const member = workloadMember(workload);
    let number = this.models.get(member.name);
    if (number === undefined) {
      number = this.members.push(member) - 1;
      this.models.set(member.name, number);
    }
    return number;
  }

  private termsOf(gpu: GpuKind): Terms {
    const name = kindName(gpu);
    let terms = this.terms.get(name);
    if (terms === undefined)
      this.terms.set(name, (terms = new Terms(this.modelOf(gpu), this.members, this.countsExcess)));
    return terms;
  }
}

/**
 * What a newcomer, by its number, is predicted to do to those on a place, and to suffer there (equations 3.4 and 3.5, which add
 * up pairs), written into `effect`.
 */
export function effectOf(
  { terms, functions, models, bounds, sums, fill, suffers }: Members,
  newcomer: number,
  effect: Effect = { suffers: false, train: 0, own: 0, beyond: 0, bound: 0 },
): Effect {
  effect.suffers = suffers;
  effect.train = effect.own = effect.beyond = effect.bound = 0;
  if (suffers) return effect;
  const neighbours = functions.length + models.length;
  const least = terms.leastOf(fill + terms.fillOf(newcomer));
  for (let at = 0; at < models.length; at += 1) {
    const degradation = Math.max(least, sums[at]! + terms.of(models[at]!, newcomer, neighbours));
    const bound = bounds[at]!;
    if (degradation > bound && effect.beyond === 0) {
      effect.beyond = degradation;
      effect.bound = bound;
    }
    if (degradation > effect.train) effect.train = degradation;
    effect.own += terms.of(newcomer, models[at]!, neighbours);
  }
  for (let at = 0; at < functions.length; at += 1) effect.own += terms.of(newcomer, functions[at]!, neighbours);
  if (neighbours > 0) effect.own = Math.max(least, effect.own);
  return effect;
}

/** One that has stopped reporting may be worse off than is known. */
function isSuffering({ measured, estimated, tolerated, state }: WorkloadState): boolean {
  return state === 'stale' || (measured ?? estimated ?? 0) > tolerated;
}

/** Whether newcomers have the same effect beside both lists. */
function standAlike(some: readonly WorkloadState[], others: readonly WorkloadState[]): boolean {
  return some.length === others.length && some.every((one, at) => isAlike(one, others[at]!));
}

function isAlike(one: WorkloadState, other: WorkloadState): boolean {
  const { features = noFeatures } = one;
  return (
    one.id === other.id &&
    one.name === other.name &&
    one.tolerated === other.tolerated &&
    isSuffering(one) === isSuffering(other) &&
    areSame(features, other.features ?? noFeatures)
  );
}

const noFeatures: FeatureRecord = {};

function areSame(one: FeatureRecord, other: FeatureRecord): boolean {
  if (one === other) return true;
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => Object.is(one[name], other[name]));
}

/** A workload as a member of a set. Workloads of one name with different figures are different models. */
export function workloadMember({
  id,
  name = id,
  features,
}: Pick<WorkloadState, 'name' | 'id' | 'features'>): SetMember {
  if (features === undefined) return { kind: 'workload', name, share: 1 };
  return { kind: 'workload', name: `${name} ${JSON.stringify(features)}`, share: 1, record: features };
}
