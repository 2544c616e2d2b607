// What a newcomer would cost on a place by prediction, remembered per set of workloads and functions.
import type { DeviceMode } from '@gpuwhisk/common/gpu';
import { ofTime } from '../predict/degradation.js';
import type { DegradationModel, SetMember } from '../predict/degradation.js';
import type { FeatureRecord } from '../predict/slowdown-predictor.js';
import { gpuTypeOf } from '../view/places.js';
import type { PlaceAccount } from '../view/account.js';
import type { Occupant } from '../view/occupancy.js';
import type { WorkloadState } from '../view/view.js';

/** The model of a type of GPU in one mode. */
export type PredictorOf = (gpu: { type: string; mode: DeviceMode }) => DegradationModel;

/** Predicted degradations (D) with a newcomer on a place. */
interface Effect {
  /** Of each workload, in the order of the place's list. */
  workloads: Float64Array;
  /** The largest of them; 0: there is none. */
  train: number;
  /** Of the newcomer. */
  own: number;
}

/** What runs on places that are alike, and what newcomers would do there. */
interface PlaceSet {
  predictor: DegradationModel;
  workloads: readonly SetMember[];
  functions: readonly SetMember[];
  /** By the number of the newcomer. */
  effects: Map<number, Effect>;
}

/** The set of a place, as of its list of occupants and its list of workloads. */
interface Counted {
  occupants: readonly Occupant[];
  workloads: readonly WorkloadState[];
  set: PlaceSet;
  standing: Standing;
}

/** The workloads of a place beside their bounds. */
interface Standing {
  /** The greatest D of each workload. */
  bounds: readonly number[];
  /** A workload is slower than it tolerates already, or has stopped reporting. */
  suffers: boolean;
}

/** A newcomer by number, and the figures of functions that run. */
interface KnownMember {
  number: number;
  member: SetMember;
}

/** Sets that are remembered; then all are forgotten. */
const maxSets = 10_000;
/** Functions of which figures are remembered; then all are forgotten. */
const maxFunctions = 10_000;
/** How long predictions are used though models learn, ms. */
const renewMs = 1000;

const none: readonly WorkloadState[] = [];

/** Predicts what newcomers do to places, each set of workloads and functions once a second. */
export class SetEffects {
  private readonly sets = new Map<string, PlaceSet>();
  private counted = new WeakMap<PlaceAccount, Counted>();
  private readonly records = new Map<string, FeatureRecord | undefined>();
  private readonly members = new Map<string, KnownMember>();
  private byDevice: { of: readonly WorkloadState[] | undefined; lists: ReadonlyMap<string, readonly WorkloadState[]> } =
    {
      of: undefined,
      lists: new Map(),
    };
  private madeAt = -Infinity;

  constructor(private readonly predictorOf: PredictorOf) {}

  /** Begins a decision at `at` (ms) beside these workloads. */
  begin(at: number, workloads: readonly WorkloadState[] | undefined): void {
    if (this.byDevice.of !== workloads) {
      const lists = new Map<string, WorkloadState[]>();
      for (const one of workloads ?? []) lists.set(one.device, [...(lists.get(one.device) ?? []), one]);
      this.byDevice = { of: workloads, lists };
    }
    // The clock may have been set back.
    if (Math.abs(at - this.madeAt) < renewMs && this.sets.size <= maxSets) return;
    this.madeAt = at;
    this.sets.clear();
    this.counted = new WeakMap();
    if (this.members.size > maxFunctions) this.members.clear();
    if (this.records.size > maxFunctions) this.records.clear();
  }

  /** Takes notice of a function's figures, by the key of its instances. */
  learn(key: string, record: FeatureRecord | undefined): void {
    if (record !== undefined) this.records.set(key, record);
  }

  /** A function at a share (thousandths) as a newcomer. */
  newcomer(key: string, limit: number): KnownMember {
    const record = this.records.get(key);
    const name = `${key} ${limit}`;
    const known = this.members.get(name);
    if (known?.member.record === record && known !== undefined) return known;
    const member: SetMember = { name: key, share: limit / 1000, ...(record && { record }) };
    const fresh = { number: known?.number ?? this.members.size, member };
    // Effects of the same number with other figures do not hold.
    if (known !== undefined) for (const { effects } of this.sets.values()) effects.delete(known.number);
    this.members.set(name, fresh);
    return fresh;
  }

  /** The workloads of a place with their bounds. */
  standingOf(account: PlaceAccount): Standing {
    return this.countedOf(account).standing;
  }

  /** The workloads of a place. */
  workloadsOn({ id }: Pick<PlaceAccount, 'id'>): readonly WorkloadState[] {
    return this.byDevice.lists.get(id) ?? none;
  }

  /** What a newcomer is predicted to do to a place. */
  effectOn(account: PlaceAccount, { number, member }: KnownMember): Effect {
    const { set } = this.countedOf(account);
    let effect = set.effects.get(number);
    if (effect === undefined) {
      const { predictor, workloads, functions } = set;
      const all = predictor.degradations({ workloads, functions: [...functions, member] });
      const ofWorkloads = all.subarray(0, workloads.length);
      effect = { workloads: ofWorkloads, train: Math.max(0, ...ofWorkloads), own: all[all.length - 1] ?? 0 };
      set.effects.set(number, effect);
    }
    return effect;
  }

  /** The degradations of what is on a place now: of its workloads, then of its running functions. */
  presentOn(account: PlaceAccount): Float64Array {
    const { predictor, workloads, functions } = this.countedOf(account).set;
    return predictor.degradations({ workloads, functions });
  }

  private countedOf(account: PlaceAccount): Counted {
    const workloads = this.workloadsOn(account);
    const known = this.counted.get(account);
    // The ledger makes the list of occupants again when it counts a place.
    if (known?.occupants === account.occupants && known.workloads === workloads) return known;
    const counted: Counted = {
      occupants: account.occupants,
      workloads,
      set: this.setOf(account, workloads),
      standing: standingOf(workloads),
    };
    this.counted.set(account, counted);
    return counted;
  }

  private setOf({ occupants, place }: PlaceAccount, workloads: readonly WorkloadState[]): PlaceSet {
    const running: Occupant[] = [];
    for (const one of occupants) if (one.users > 0) running.push(one);
    const type = gpuTypeOf(place.device, place.slice);
    const { mode } = place.device;
    const names = running.map(({ functionKey: name = '', limit }) => `${name} ${limit}`).sort();
    const members = workloads.map(workloadMember);
    const key = JSON.stringify([type, mode, members.map(({ name }) => name), names]);
    const known = this.sets.get(key);
    if (known !== undefined) return known;
    const functions = running.map(({ functionKey: name = '', limit }) => this.newcomer(name, limit).member);
    const set = { predictor: this.predictorOf({ type, mode }), workloads: members, functions, effects: new Map() };
    this.sets.set(key, set);
    return set;
  }
}

/** A workload as a member of a set. Workloads of one name with different figures are different models. */
export function workloadMember({
  id,
  name = id,
  features,
}: Pick<WorkloadState, 'name' | 'id' | 'features'>): SetMember {
  if (features === undefined) return { name, share: 1 };
  return { name: `${name} ${JSON.stringify(features)}`, share: 1, record: features };
}

function standingOf(workloads: readonly WorkloadState[]): Standing {
  const bounds = workloads.map(({ tolerated }) => ofTime(tolerated));
  // One that has stopped reporting may be worse off than anyone knows.
  const suffers = workloads.some(({ measured, estimated, tolerated, state }) => {
    return state === 'stale' || (measured ?? estimated ?? 0) > tolerated;
  });
  return { bounds, suffers };
}
