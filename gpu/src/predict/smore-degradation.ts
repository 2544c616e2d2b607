// SMORE's degradation predictor: pair-wise models and their table, multi-way weights, and drift (paper, section IV).
import type { GpuKind } from '@gpuwhisk/common/gpu';
import { PairDrifts, type DriftsState } from './degradation-drift.js';
import {
  degradationBases,
  type DegradationBasis,
  type DegradationTerm,
  type MeasuredDegradation,
  type Member,
  type MemberDegradation,
  type ObservedDegradation,
  type PairDrift,
  type SharedPlace,
} from './degradation-predictor.js';
import { DegradationTable } from './degradation-table.js';
import { DegradationWeights, type WeightGroup, type WeightsState } from './degradation-weights.js';
import {
  degradationFault,
  figuresDegradation,
  pairDegradation,
  pairModelName,
  unknownDegradation,
  type MemberKind,
  type PairModel,
  type PairModelKey,
} from './pair-degradation.js';
import { decodePairModel, encodePairModel, type PairModelDocument } from './pair-model-codec.js';

/** Settings; the defaults stand beside them. */
export interface SmoreDegradationOptions {
  /** D of a pair of which nothing is known: 1. */
  unknownDegradation?: number;
  /** D of a pair with a side that has no features, where there is a model: by default the mean of its samples. */
  featureless?: 'mean' | 'figures';
  /** Pairs of a GPU type and mode that the table holds: 250 000, 9 bytes each. */
  mostPairs?: number;
}

/** The predictor as plain JSON. */
export interface SmoreDegradationState {
  format: string;
  formatVersion: number;
  models: readonly PairModelDocument[];
  weights: WeightsState;
  drifts: DriftsState;
  /** Observations that were refused. */
  refused: number;
}

/** Size of a table that was computed. */
export interface PrecomputedPairs {
  pairs: number;
  /** Pairs that were left out as the table would have become too large: predicted when asked for. */
  leftOut: number;
}

const format = 'gpuwhisk smore degradation';
const formatVersion = 1;
/** Weights that are kept, and pairs that are watched for drift. */
const [mostWeights, mostDrifts] = [20_000, 5_000];

/** What holds for one GPU type and mode. */
interface Kind {
  groups: Readonly<Record<MemberKind, Record<MemberKind, WeightGroup>>>;
  models: Partial<Record<string, PairModel>>;
  tables: Partial<Record<string, DegradationTable>>;
}

/** A member's neighbours and their terms, for prediction and update. */
interface WeighedTerm extends DegradationTerm {
  group: WeightGroup;
  neighbour: string;
}

/**
 * Predicts and learns degradations by equations 3.4 and 3.5 of the thesis; k is the number of neighbours. Pure: no clock, no I/O;
 * equal calls in equal order give equal answers.
 */
export class SmoreDegradation {
  private readonly kinds = new Map<string, Map<string, Kind>>();
  private readonly weights: DegradationWeights;
  private readonly watched: PairDrifts;
  private readonly unknown: number;
  private readonly featureless: NonNullable<SmoreDegradationOptions['featureless']>;
  private readonly mostPairs: number;
  private refusedCount: number;

  /**
   * `state`: what an earlier predictor's `state()` gave. Throws RangeError for a state of another format or version, and
   * ModelFormatError for a model that cannot be read.
   */
  constructor(options: SmoreDegradationOptions = {}, state?: SmoreDegradationState) {
    const { mostPairs = 250_000 } = options;
    if (state !== undefined && (state.format !== format || state.formatVersion !== formatVersion)) {
      throw new RangeError(
        `A state of format '${state.format}', version ${state.formatVersion}, cannot be read: '${format}', version ` +
          `${formatVersion}, was expected.`,
      );
    }
    this.unknown = options.unknownDegradation ?? unknownDegradation;
    this.featureless = options.featureless ?? 'mean';
    this.mostPairs = mostPairs;
    this.weights = new DegradationWeights(mostWeights, state?.weights);
    this.watched = new PairDrifts(mostDrifts, state?.drifts);
    this.refusedCount = state?.refused ?? 0;
    for (const document of state?.models ?? []) this.put(decodePairModel(document));
  }

  /** Observations that were refused. */
  get refused(): number {
    return this.refusedCount;
  }

  /**
   * Takes a model over, unless it is older than the one of its key. Returns whether it did. The table of its key is dropped until the
   * next `precompute`.
   */
  put(model: PairModel): boolean {
    const kind = this.kindOf(model, true);
    const role = `${model.victim}/${model.neighbour}`;
    if ((kind.models[role]?.version ?? -Infinity) > model.version) return false;
    kind.models[role] = model;
    delete kind.tables[role];
    return true;
  }

  /** Takes a model out of force: its pairs are predicted by their figures. Returns whether there was one. */
  withdraw(key: PairModelKey): boolean {
    const kind = this.kindOf(key, false);
    const role = roleNames[key.victim][key.neighbour];
    if (kind?.models[role] === undefined) return false;
    delete kind.models[role];
    delete kind.tables[role];
    return true;
  }

  /** Forgets weights and drifts of a kind of pair, as they say how far its former predictions were off. */
  forgetCorrections({ gpuType, mode, victim, neighbour }: PairModelKey): void {
    const group = groupOf({ gpuType, mode }, victim, neighbour);
    this.weights.forgetGroup(group);
    this.watched.forgetGroup(group);
  }

  /** Models in force, by GPU type, mode and kinds. */
  models(): PairModel[] {
    return [...this.kinds.values()]
      .flatMap((byMode) => [...byMode.values()])
      .flatMap(({ models }) => Object.values(models).flatMap((model) => model ?? []))
      .sort((one, other) => (pairModelName(one) < pairModelName(other) ? -1 : 1));
  }

  /**
   * Computes the complete table of pairs of known workloads and functions (paper, section III: a look-up instead of a
   * prediction on the request path), both sides of each pair. Pairs of functions and of workloads come last and are left out where the
   * table would exceed its limit. Members of equal `model` count once.
   */
  precompute(key: GpuKind, workloads: readonly Member[], functions: readonly Member[]): PrecomputedPairs {
    const kind = this.kindOf(key, true);
    const of = { workload: distinct(workloads), function: distinct(functions) };
    const result = { pairs: 0, leftOut: 0 };
    for (const [victim, neighbour] of roleOrder) {
      const size = of[victim].length * of[neighbour].length;
      delete kind.tables[`${victim}/${neighbour}`];
      if (result.pairs + size > this.mostPairs) {
        result.leftOut += size;
        continue;
      }
      result.pairs += size;
      kind.tables[`${victim}/${neighbour}`] = DegradationTable.of(of[victim], of[neighbour], (one, other) =>
        this.fresh(kind, one, other),
      );
    }
    return result;
  }

  /** D of `victim` beside `neighbour` alone: from the table, else predicted. */
  pair(key: GpuKind, victim: Member, neighbour: Member): { degradation: number; basis: DegradationBasis } {
    return this.pairIn(this.kindOf(key, false), victim, neighbour);
  }

  /** The term of equation 3.4 or 3.5 that `neighbour` adds to a victim with so many neighbours: weight times D of the pair. */
  term(key: GpuKind, victim: Member, neighbour: Member, neighbours: number): number {
    const kind = this.kindOf(key, false);
    const { degradation } = this.pairIn(kind, victim, neighbour);
    const group = kind?.groups[victim.kind][neighbour.kind] ?? groupOf(key, victim.kind, neighbour.kind);
    return degradation * this.weights.weight(group, victim.model, neighbour.model, neighbours);
  }

  /**
   * Predicted D of every member of `place` with `newcomer` beside them, members first, in their order. Without
   * `newcomer`, of the place as it is. With m members it takes m·(m − 1) pairs: at most 1 µs each where the pair is in the
   * table, else 10 µs. Equal ids count as different members.
   */
  predict(place: SharedPlace, newcomer?: Member): MemberDegradation[] {
    const members = newcomer === undefined ? place.members : [...place.members, newcomer];
    return members.map((member, at) => {
      const terms = this.termsOf(place, members, at);
      return {
        id: member.id,
        degradation: sumOf(terms),
        ...(terms.length > 0 && { basis: weakest(terms) }),
        terms: terms.map(({ from, pair, weight, basis }) => ({ from, pair, weight, basis })),
      };
    });
  }

  /**
   * Learns from degradations that were measured while exactly `place.members` shared the place. NaN, infinite, below −0.5
   * and above 1000 are refused, and counted; from −0.5 to 0 counts as 0.
   */
  observe(place: SharedPlace, measured: readonly MeasuredDegradation[]): ObservedDegradation[] {
    return measured.map(({ id, degradation }) => {
      const at = place.members.findIndex((one) => one.id === id);
      const member = place.members[at];
      const refused = member === undefined ? `there is no member '${id}'` : degradationFault(degradation);
      if (member === undefined || refused !== undefined) {
        this.refusedCount += 1;
        return { id, refused: refused ?? '' };
      }
      const terms = this.termsOf(place, place.members, at);
      const predicted = sumOf(terms);
      const real = Math.max(0, degradation);
      const { model: victim } = member;
      if (terms.length > 0) {
        const seen = terms.map(({ group, neighbour, pair, weight }) => {
          return { group, victim, neighbour, pair, contribution: weight * pair };
        });
        this.watched.observe(seen, predicted, real);
        this.weights.update(seen, real);
      }
      return { id, predicted, measured: real };
    });
  }

  /** Pairs that drift, the largest mean excess first. */
  drifts(): PairDrift[] {
    return this.watched.list();
  }

  /** The predictor as plain JSON, or only what it learned beside its models; tables are computed again by `precompute`. */
  state(withModels = true): SmoreDegradationState {
    return {
      format,
      formatVersion,
      models: withModels ? this.models().map(encodePairModel) : [],
      weights: this.weights.state(),
      drifts: this.watched.state(),
      refused: this.refusedCount,
    };
  }

  /** Terms of equation 3.4 for a workload, of 3.5 for a function. */
  private termsOf(key: GpuKind, members: readonly Member[], at: number): WeighedTerm[] {
    const victim = members[at];
    if (victim === undefined) return [];
    const kind = this.kindOf(key, false);
    return members.flatMap((neighbour, other) => {
      if (other === at) return [];
      const { degradation: pair, basis } = this.pairIn(kind, victim, neighbour);
      const group = kind?.groups[victim.kind][neighbour.kind] ?? groupOf(key, victim.kind, neighbour.kind);
      const weight = this.weights.weight(group, victim.model, neighbour.model, members.length - 1);
      return [{ from: neighbour.id, neighbour: neighbour.model, pair, weight, basis, group }];
    });
  }

  private pairIn(
    kind: Kind | undefined,
    victim: Member,
    neighbour: Member,
  ): { degradation: number; basis: DegradationBasis } {
    const found = kind?.tables[roleNames[victim.kind][neighbour.kind]]?.find(victim, neighbour);
    return found ?? this.fresh(kind, victim, neighbour);
  }

  private fresh(
    kind: Kind | undefined,
    victim: Member,
    neighbour: Member,
  ): { degradation: number; basis: DegradationBasis } {
    const model = kind?.models[roleNames[victim.kind][neighbour.kind]];
    const predicted = model && pairDegradation(model, victim.features ?? {}, neighbour.features ?? {});
    if (predicted !== undefined && (predicted.basis !== 'mean' || this.featureless === 'mean')) return predicted;
    const degradation = figuresDegradation(victim.features, neighbour.features);
    return degradation === undefined
      ? { degradation: this.unknown, basis: 'default' }
      : { degradation, basis: 'capacity' };
  }

  private kindOf(key: GpuKind, make: true): Kind;
  private kindOf(key: GpuKind, make: false): Kind | undefined;
  private kindOf({ gpuType, mode }: GpuKind, make: boolean): Kind | undefined {
    const found = this.kinds.get(gpuType)?.get(mode);
    if (found !== undefined || !make) return found;
    const groups = (victim: MemberKind): Record<MemberKind, WeightGroup> => ({
      workload: groupOf({ gpuType, mode }, victim, 'workload'),
      function: groupOf({ gpuType, mode }, victim, 'function'),
    });
    const made = { groups: { workload: groups('workload'), function: groups('function') }, models: {}, tables: {} };
    this.kinds.set(gpuType, (this.kinds.get(gpuType) ?? new Map<string, Kind>()).set(mode, made));
    return made;
  }
}

const roleNames: Readonly<Record<MemberKind, Record<MemberKind, string>>> = {
  workload: { workload: 'workload/workload', function: 'workload/function' },
  function: { workload: 'function/workload', function: 'function/function' },
};

/** Victim and neighbour, the paper's pairs first. */
const roleOrder: readonly (readonly [MemberKind, MemberKind])[] = [
  ['workload', 'function'],
  ['function', 'workload'],
  ['workload', 'workload'],
  ['function', 'function'],
];

const groupOf = ({ gpuType, mode }: GpuKind, victim: MemberKind, neighbour: MemberKind): WeightGroup => ({
  gpuType,
  mode,
  victim,
  neighbour,
});

const sumOf = (terms: readonly DegradationTerm[]): number =>
  terms.reduce((sum, { weight, pair }) => sum + weight * pair, 0);

function weakest(terms: readonly DegradationTerm[]): DegradationBasis {
  const worst = Math.max(...terms.map(({ basis }) => degradationBases.indexOf(basis)));
  return degradationBases[worst] ?? 'default';
}

const distinct = (members: readonly Member[]): Member[] => [
  ...new Map(members.map((member) => [member.model, member])).values(),
];
