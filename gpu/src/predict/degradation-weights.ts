// Weights of SMORE's multi-way predictor (equations 3.4 and 3.5) and their online update (3.7).
import type { MemberKind, PairModelKey } from './pair-degradation.js';

/** Neighbours from this number on share one weight. */
export const mostNeighbours = 8;
const step = 0.1;
/** Keeps steps finite where all pair degradations are near 0. */
const floor = 0.01;
const mostWeight = 4;
const mostResidual = 1;

/** A weight's place and roles: γ for workloads, α for functions beside a workload, β beside a function. */
export type WeightGroup = PairModelKey;

/** A term to weigh. */
export interface WeightTerm {
  group: WeightGroup;
  /** Names of the models. */
  victim: string;
  neighbour: string;
  /** D of the two alone together, ≥ 0. */
  pair: number;
}

/** The weights of one pair: for any number of neighbours at index 0, for k neighbours at index k. Absent: undefined. */
interface Entry {
  group: GroupWeights;
  victim: string;
  neighbour: string;
  weights: (number | undefined)[];
}

interface GroupWeights {
  key: WeightGroup;
  pairs: Map<string, Map<string, Entry>>;
  /** Weights for k neighbours of any pair, at index k. */
  byCount: (number | undefined)[];
  entries: number;
}

/** Weights as plain data, least recently updated pairs first. */
export interface WeightsState {
  version: 1;
  groups: readonly (WeightGroup & { byCount: readonly (number | null)[] })[];
  /** Index of the group, models of victim and neighbour, weights by index as above. */
  pairs: readonly [number, string, string, readonly (number | null)[]][];
}

/**
 * Weights by (GPU type, mode, kinds, victim, neighbour, number of neighbours). A weight that was never updated falls back to that of
 * the pair for any number, then to that of the number for any pair, then to 1 (the paper's start: a plain sum). There are at most
 * `most` weights of pairs: beyond, pairs that were not updated for longest are forgotten.
 */
export class DegradationWeights {
  private readonly groups = new Map<string, Map<string, GroupWeights>>();
  /** Least recently updated first. */
  private readonly entries = new Set<Entry>();
  private count = 0;

  /** Throws RangeError for a state of another version. */
  constructor(
    private readonly most: number,
    state?: WeightsState,
  ) {
    if (state === undefined) return;
    if ((state.version as number) !== 1) {
      throw new RangeError(`Weights of version ${String(state.version)} cannot be read: version 1 was expected.`);
    }
    const groups = state.groups.map((key) => {
      const group = this.groupOf(key, true);
      group.byCount = key.byCount.map(sound);
      return group;
    });
    for (const [at, victim, neighbour, weights] of state.pairs) {
      const group = groups[at];
      if (group === undefined) throw new RangeError(`Weights name a group ${at} of ${groups.length}.`);
      weights.forEach((weight, k) => {
        const value = sound(weight);
        if (value !== undefined && k <= mostNeighbours) this.set(this.entryOf(group, victim, neighbour), k, value);
      });
    }
    this.trim();
  }

  /** Number of weights of pairs. */
  get size(): number {
    return this.count;
  }

  /** Weight of a term of a member that has `neighbours` of them. */
  weight(group: WeightGroup, victim: string, neighbour: string, neighbours: number): number {
    const found = this.groupOf(group, false);
    if (found === undefined) return 1;
    const k = Math.min(neighbours, mostNeighbours);
    const entry = found.pairs.get(victim)?.get(neighbour);
    return entry?.weights[k] ?? entry?.weights[0] ?? found.byCount[k] ?? 1;
  }

  /**
   * Moves the weights of `terms`, all terms of one member, towards `measured` D by a step of gradient descent (equation 3.7,
   * normalised): γ ← clip(γ + 0.1·r·D/(0.01 + ΣD²), 0, 4), with r = measured − predicted in [−1, 1]. The weights of exact
   * number, of pair and of number each follow their own prediction, so that each level is the best that it can be alone.
   */
  update(terms: readonly WeightTerm[], measured: number): void {
    const k = Math.min(terms.length, mostNeighbours);
    const used = terms.filter(({ pair }) => pair > 0);
    if (used.length === 0) return;
    const places = used.map(({ group, victim, neighbour, pair }) => {
      const found = this.groupOf(group, true);
      return { entry: this.entryOf(found, victim, neighbour), pair, group: found };
    });
    const exact = moved(
      places.map(({ entry, pair, group }) => [entry.weights[k] ?? entry.weights[0] ?? group.byCount[k] ?? 1, pair]),
      measured,
    );
    const ofPair = moved(
      places.map(({ entry, pair, group }) => [entry.weights[0] ?? group.byCount[k] ?? 1, pair]),
      measured,
    );
    const ofCount = moved(
      places.map(({ pair, group }) => [group.byCount[k] ?? 1, pair]),
      measured,
    );
    // Terms of one group share its weight of the number: their steps are averaged, as all start from the same value.
    const sums = new Map<GroupWeights, { sum: number; terms: number }>();
    places.forEach(({ entry, group }, i) => {
      this.set(entry, k, exact[i] ?? 1);
      this.set(entry, 0, ofPair[i] ?? 1);
      const { sum, terms: before } = sums.get(group) ?? { sum: 0, terms: 0 };
      sums.set(group, { sum: sum + (ofCount[i] ?? 1), terms: before + 1 });
      this.entries.delete(entry);
      this.entries.add(entry);
    });
    for (const [group, { sum, terms: members }] of sums) group.byCount[k] = sum / members;
    this.trim();
  }

  /** Forgets all weights of a group. */
  forgetGroup(key: WeightGroup): void {
    const group = this.groupOf(key, false);
    if (group === undefined) return;
    for (const entry of this.entries) {
      if (entry.group !== group) continue;
      this.entries.delete(entry);
      this.count -= entry.weights.filter((weight) => weight !== undefined).length;
    }
    this.forget(group);
  }

  /** The weights as plain data. */
  state(): WeightsState {
    const groups = [...this.groups.values()].flatMap((byRole) => [...byRole.values()]);
    const index = new Map(groups.map((group, at) => [group, at]));
    return {
      version: 1,
      groups: groups.map(({ key, byCount }) => ({ ...key, byCount: plain(byCount) })),
      pairs: [...this.entries].map(({ group, victim, neighbour, weights }) => [
        index.get(group) ?? 0,
        victim,
        neighbour,
        plain(weights),
      ]),
    };
  }

  private groupOf(key: WeightGroup, make: true): GroupWeights;
  private groupOf(key: WeightGroup, make: boolean): GroupWeights | undefined;
  private groupOf({ gpuType, mode, victim, neighbour }: WeightGroup, make: boolean): GroupWeights | undefined {
    const role = roles[mode]?.[victim][neighbour] ?? `${mode}/${victim}/${neighbour}`;
    const found = this.groups.get(gpuType)?.get(role);
    if (found !== undefined || !make) return found;
    const made = { key: { gpuType, mode, victim, neighbour }, pairs: new Map(), byCount: [], entries: 0 };
    const byRole = this.groups.get(gpuType) ?? new Map<string, GroupWeights>();
    this.groups.set(gpuType, byRole.set(role, made));
    return made;
  }

  private entryOf(group: GroupWeights, victim: string, neighbour: string): Entry {
    const byNeighbour = group.pairs.get(victim) ?? new Map<string, Entry>();
    group.pairs.set(victim, byNeighbour);
    const found = byNeighbour.get(neighbour);
    if (found !== undefined) return found;
    const made = { group, victim, neighbour, weights: [] };
    byNeighbour.set(neighbour, made);
    group.entries += 1;
    this.entries.add(made);
    return made;
  }

  private set(entry: Entry, k: number, weight: number): void {
    if (entry.weights[k] === undefined) this.count += 1;
    entry.weights[k] = weight;
  }

  /** Forgets pairs beyond the limit, and groups without pairs. */
  private trim(): void {
    for (const entry of this.entries) {
      if (this.count <= this.most) return;
      const { group, victim, neighbour, weights } = entry;
      this.entries.delete(entry);
      this.count -= weights.filter((weight) => weight !== undefined).length;
      const byNeighbour = group.pairs.get(victim);
      byNeighbour?.delete(neighbour);
      if (byNeighbour?.size === 0) group.pairs.delete(victim);
      group.entries -= 1;
      if (group.entries === 0) this.forget(group);
    }
  }

  private forget(group: GroupWeights): void {
    for (const [gpuType, byRole] of this.groups) {
      for (const [role, found] of byRole) if (found === group) byRole.delete(role);
      if (byRole.size === 0) this.groups.delete(gpuType);
    }
  }
}

/** The new weights of [weight, D] terms: equation 3.7. */
function moved(terms: readonly (readonly [number, number])[], measured: number): number[] {
  const predicted = terms.reduce((sum, [weight, pair]) => sum + weight * pair, 0);
  const squares = terms.reduce((sum, [, pair]) => sum + pair * pair, 0);
  const residual = Math.min(Math.max(measured - predicted, -mostResidual), mostResidual);
  return terms.map(([weight, pair]) =>
    Math.min(Math.max(weight + (step * residual * pair) / (floor + squares), 0), mostWeight),
  );
}

const sound = (weight: number | null): number | undefined =>
  weight !== null && weight >= 0 && weight <= mostWeight ? weight : undefined;

const plain = (weights: readonly (number | undefined)[]): (number | null)[] =>
  Array.from(weights, (weight) => weight ?? null);

/** Names of roles by mode and kinds, so that a look-up builds no text. */
const roles: Readonly<Partial<Record<string, Record<MemberKind, Record<MemberKind, string>>>>> = Object.fromEntries(
  ['exclusive', 'timeslice', 'mps', 'mig'].map((mode) => [
    mode,
    {
      workload: { workload: `${mode}/workload/workload`, function: `${mode}/workload/function` },
      function: { workload: `${mode}/function/workload`, function: `${mode}/function/function` },
    },
  ]),
);
