// Measured pairs of one kind of victim and neighbour on one kind of GPU, of bounded number: what pair models are learned from.
import { keepNewest } from '@gpuwhisk/common/collections';
import { believedFeatures, commonSets, featureSetNames, type FeatureSet } from './degradation-features.js';
import { degradationFault, type PairSample } from './pair-degradation.js';
import type { FeatureRecord } from './slowdown-predictor.js';

/** One side of a measured pair. */
export interface MeasuredSide {
  /** That of a workload, or `/namespace/action`. */
  name: string;
  /** Of a function. */
  version?: string;
  /** Fraction of the SMs that it was held to, 0 < share ≤ 1. */
  share: number;
  /** Known figures by name, at the time of the measurement. */
  features: FeatureRecord;
}

/** Source of a measurement: a run of a function, the report of a workload, or samples that were run for it. */
export type PairSource = 'run' | 'report' | 'sample';

/** A measurement of a pair. */
export interface MeasuredPair {
  victim: MeasuredSide;
  neighbour: MeasuredSide;
  /** D of the victim, a fraction that may exceed 1. */
  degradation: number;
  /** Epoch ms. */
  at: number;
  from: PairSource;
}

/** A pair with its last measurements, oldest first. */
type KnownPair = Pick<MeasuredPair, 'victim' | 'neighbour'> & {
  measured: Pick<MeasuredPair, 'degradation' | 'at' | 'from'>[];
};

/** A set of pairs as plain data, least recently measured first. */
export interface PairSamplesState {
  version: 1;
  pairs: readonly KnownPair[];
  /** Pairs that came since the last training, and whether anything was measured since. */
  fresh: number;
  isChanged: boolean;
}

/** What became of a measurement. */
export interface PairOutcome {
  /** Whether the set is another than before. */
  isTaken: boolean;
  /** Why it was refused; absent if it was taken, or came too soon after the last one. */
  refused?: string;
}

/** Measurements that are kept of a pair. */
const mostMeasurements = 8;
/** Pairs that are kept. More take longer to learn from and make a model larger than a document should be. */
export const mostPairs = 500;
/** Shortest time between two kept measurements of a pair, ms: a workload reports each second, and says the same each time. */
const leastGapMs = 60_000;
const longestName = 1024;

/**
 * The last eight measurements of each pair, of the 500 pairs that were measured last. Sides count as the same if name, version and
 * share are; a pair has the figures of its last measurement.
 */
export class PairSamples {
  private readonly pairs = new Map<string, KnownPair>();
  private freshPairs = 0;
  private changed = false;

  /** Measurements of `state` that are at fault are left out. Throws RangeError for a state of another version. */
  constructor(state?: PairSamplesState) {
    if (state === undefined) return;
    if ((state.version as number) !== 1) {
      throw new RangeError(`Pairs of version ${String(state.version)} cannot be read: version 1 was expected.`);
    }
    this.addAll(state);
    this.freshPairs = Math.min(state.fresh, this.pairs.size);
    this.changed = state.isChanged;
  }

  /** Number of pairs. */
  get size(): number {
    return this.pairs.size;
  }

  /** Number of measurements. */
  get measurements(): number {
    return [...this.pairs.values()].reduce((sum, { measured }) => sum + measured.length, 0);
  }

  /** Number of pairs that came since the last training. */
  get fresh(): number {
    return this.freshPairs;
  }

  /** Whether anything was measured since the last training. */
  get isChanged(): boolean {
    return this.changed;
  }

  /** Takes a measurement, unless it is at fault or comes within a minute of the last one of its pair. */
  add(pair: MeasuredPair): PairOutcome {
    const refused = faultOf(pair);
    if (refused !== undefined) return { isTaken: false, refused };
    const name = nameOf(pair.victim, pair.neighbour);
    const last = this.pairs.get(name)?.measured.at(-1);
    if (last !== undefined && Math.abs(pair.at - last.at) < leastGapMs) return { isTaken: false };
    this.insert(name, pair);
    this.changed = true;
    return { isTaken: true };
  }

  /** Takes the measurements of another set that are newer than those of their pair here. */
  addAll({ pairs }: Pick<PairSamplesState, 'pairs'>): void {
    for (const { measured, ...sides } of pairs) {
      const name = nameOf(sides.victim, sides.neighbour);
      for (const one of measured) {
        const pair = { ...sides, ...one };
        const isNewer = pair.at > (this.pairs.get(name)?.measured.at(-1)?.at ?? -Infinity);
        if (isNewer && faultOf(pair) === undefined) this.insert(name, pair);
      }
    }
  }

  /** Whether a pair was measured. */
  has(victim: Omit<MeasuredSide, 'features'>, neighbour: Omit<MeasuredSide, 'features'>): boolean {
    return this.pairs.has(nameOf(victim, neighbour));
  }

  /** A sample for each pair, with the median of its measurements; `share` is among the features. */
  samples(): PairSample[] {
    return Array.from(this.pairs.values(), ({ victim, neighbour, measured }) => ({
      victim: sideOf(victim),
      neighbour: sideOf(neighbour),
      degradation: median(measured.map(({ degradation }) => degradation)),
    }));
  }

  /** All that is known was learned from. `fresh`: as it was when the training began. */
  trained(fresh: number): void {
    this.freshPairs = Math.max(0, this.freshPairs - fresh);
    this.changed = this.freshPairs > 0;
  }

  /** Forgets the pairs of a function or workload. Returns whether there were any. */
  forget(name: string): boolean {
    const before = this.pairs.size;
    for (const [key, { victim, neighbour }] of this.pairs) {
      if (victim.name === name || neighbour.name === name) this.pairs.delete(key);
    }
    this.freshPairs = Math.min(this.freshPairs, this.pairs.size);
    return this.pairs.size < before;
  }

  /** The set as plain data. */
  state(): PairSamplesState {
    return { version: 1, pairs: [...this.pairs.values()], fresh: this.freshPairs, isChanged: this.changed };
  }

  private insert(name: string, { victim, neighbour, ...one }: MeasuredPair): void {
    const known = this.pairs.get(name);
    if (known === undefined) this.freshPairs += 1;
    const measured = [...(known?.measured ?? []), one].slice(-mostMeasurements);
    keepNewest(this.pairs, name, { victim: kept(victim), neighbour: kept(neighbour), measured }, mostPairs);
    this.freshPairs = Math.min(this.freshPairs, this.pairs.size);
  }
}

/** The greatest number of `samples` that have one set of features on both sides. */
export function learnable(samples: readonly PairSample[]): number {
  const counts = new Map<FeatureSet, number>(featureSetNames.map((set) => [set, 0]));
  for (const { victim, neighbour } of samples) {
    for (const set of commonSets(victim.features, neighbour.features)) counts.set(set, (counts.get(set) ?? 0) + 1);
  }
  return Math.max(...counts.values());
}

function faultOf({ victim, neighbour, degradation, at }: MeasuredPair): string | undefined {
  const fault = degradationFault(degradation);
  if (fault !== undefined) return fault;
  if (!Number.isFinite(at)) return `a time of ${at}`;
  for (const { name, share } of [victim, neighbour]) {
    if (!(share > 0 && share <= 1)) return `a share of ${share} is not above 0 and at most 1`;
    if (name.length > longestName) return `a name has more than ${longestName} characters`;
  }
  if (commonSets(victim.features, neighbour.features).length > 0) return undefined;
  return 'the two sides have no set of figures in common that can be believed';
}

const kept = ({ name, version, share, features }: MeasuredSide): MeasuredSide => ({
  name,
  ...(version !== undefined && { version }),
  share,
  features: believedFeatures(features),
});

const sideOf = ({ name, share, features }: MeasuredSide): PairSample['victim'] => ({
  model: name,
  features: { ...features, share },
});

function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = sorted.length >> 1;
  const [lower = 0, upper = 0] = [sorted[sorted.length % 2 === 0 ? middle - 1 : middle], sorted[middle]];
  return (lower + upper) / 2;
}

const nameOf = (victim: Omit<MeasuredSide, 'features'>, neighbour: Omit<MeasuredSide, 'features'>): string =>
  JSON.stringify([victim, neighbour].map(({ name, version = '', share }) => [name, version, share]));
