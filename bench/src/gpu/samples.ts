// Reads measured samples of a GPU as training data of predictors, and as a table of contention.
import type { GpuKind } from '@gpuwhisk/common/gpu';
import type { SharedPlace, MeasuredDegradation } from '@gpuwhisk/gpu/predict/degradation-predictor';
import type { MemberKind, PairSample } from '@gpuwhisk/gpu/predict/pair-degradation';
import { sampleFault, type SlowdownSample } from '@gpuwhisk/gpu/predict/samples';
import { workloadOf, type FeatureRecord } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import { soloId, type Member } from './plan.js';
import { deviceName, type MeasuredMember, type Sample } from './sample-file.js';
import { isTraining } from './workloads.js';

/** Whole samples of one device in one mode. */
export interface SampleSet extends GpuKind {
  /** Whether the device is the stand-in's; its `gpuType` says so, too. */
  simulated: boolean;
  samples: readonly Sample[];
}

/** A set for each device and mode; samples that failed are left out. */
export function sampleSets(samples: Iterable<Sample>): SampleSet[] {
  const sets = new Map<string, SampleSet & { samples: Sample[] }>();
  for (const sample of samples) {
    if (sample.failed !== undefined) continue;
    const { device, mode, simulated } = sample;
    const name = `${device}/${mode}/${simulated}`;
    const set = sets.get(name) ?? { gpuType: deviceName(device), mode, simulated, samples: [] };
    sets.set(name, set);
    set.samples.push(sample);
  }
  return [...sets.values()];
}

/** Figures of workloads alone. */
class Solos {
  private readonly solos: ReadonlyMap<string, Sample>;
  private readonly records = new Map<string, FeatureRecord>();

  constructor({ samples }: SampleSet) {
    this.solos = new Map(samples.filter(({ members }) => members.length === 1).map((sample) => [sample.id, sample]));
  }

  /** Median time of an iteration alone at the member's percentage, ms; undefined if it was not measured. */
  medianMs(mode: Sample['mode'], member: Member): number | undefined {
    return this.solos.get(soloId(mode, member))?.members[0]?.medianMs;
  }

  /**
   * Activity alone on the whole device, time alone at the member's percentage, share and batch; without activity if the
   * device tells none. The same object for the same member.
   */
  record(mode: Sample['mode'], { workload, percent }: Member): FeatureRecord {
    const name = soloId(mode, { workload, percent });
    const known = this.records.get(name);
    if (known !== undefined) return known;
    const { smActivity, dramActivity } = this.solos.get(soloId(mode, { workload, percent: 100 }))?.activity ?? {};
    const soloMs = this.medianMs(mode, { workload, percent });
    const batch = Number(workload.split(':')[1]);
    const record = {
      share: percent / 100,
      ...(Number.isFinite(batch) && { batch }),
      ...(soloMs !== undefined && { soloMs }),
      ...(smActivity !== undefined && { smUtil: Math.min(1, smActivity) }),
      ...(dramActivity !== undefined && { dramUtil: Math.min(1, dramActivity) }),
    };
    this.records.set(name, record);
    return record;
  }
}

/** Runs to learn slowdowns from, with the id of the sample that each is of. */
export interface SlowdownRows {
  rows: { id: string; sample: SlowdownSample }[];
  /** Runs that are left out: their slowdown or an activity is unknown, or at fault. */
  skipped: number;
}

/**
 * FaaShare's training rows: each process of a set beside the others, and each process alone at less than the whole device.
 * Slowdowns relate to the time alone on the whole device.
 */
export function slowdownRows(set: SampleSet): SlowdownRows {
  const solos = new Solos(set);
  const found: SlowdownRows = { rows: [], skipped: 0 };
  for (const { id, mode, members } of set.samples) {
    if (members.length === 1 && members[0]?.percent === 100) continue;
    const located = members.map((member) => {
      const features = workloadOf(solos.record(mode, member));
      return features && { features, share: member.percent / 100 };
    });
    members.forEach(({ workload, medianMs }, i) => {
      const one = located[i];
      const others = located.flatMap((other, j) => (i === j || other === undefined ? [] : [other]));
      const soloMs = solos.medianMs(mode, { workload, percent: 100 });
      const isWhole = one !== undefined && others.length === members.length - 1 && soloMs !== undefined;
      const sample = isWhole ? { one, others, slowdown: medianMs / soloMs } : undefined;
      if (sample === undefined || sampleFault(sample) !== undefined) found.skipped += 1;
      else found.rows.push({ id, sample });
    });
  }
  return found;
}

/** Pairs of one kind of victim beside one kind of neighbour. */
export interface PairSet {
  victim: MemberKind;
  neighbour: MemberKind;
  samples: PairSample[];
}

/** A set of several processes, with the degradation of each. */
export interface MeasuredPlace {
  place: SharedPlace;
  degradations: MeasuredDegradation[];
}

/** Name of a member's model for SMORE: pairs at other shares are other pairs. */
const modelOf = ({ workload, percent }: Member): string => `${workload}@${percent}`;

/**
 * SMORE's sets: sets of two as pairs by the kinds of both sides, to learn from, and sets of three and more, to judge
 * predictions of several neighbours by. Degradations relate to the time alone at the same share; members without one are
 * left out.
 */
export function degradationSets(set: SampleSet): { pairs: PairSet[]; places: MeasuredPlace[] } {
  const solos = new Solos(set);
  const pairs = new Map<string, PairSet>();
  const places: MeasuredPlace[] = [];
  const kind = ({ workload }: Member): MemberKind => (isTraining(workload, set.simulated) ? 'workload' : 'function');
  const { gpuType } = set;
  for (const { mode, members } of set.samples) {
    const sideOf = (member: Member) => ({ model: modelOf(member), features: solos.record(mode, member) });
    const degradations = members.flatMap((member, i) => {
      const soloMs = solos.medianMs(mode, member);
      return soloMs === undefined ? [] : [{ id: `${i}`, degradation: member.medianMs / soloMs - 1 }];
    });
    if (members.length < 2 || degradations.length < members.length) continue;
    if (members.length > 2) {
      const named = members.map((member, i) => ({ id: `${i}`, kind: kind(member), ...sideOf(member) }));
      places.push({ place: { gpuType, mode, members: named }, degradations });
      continue;
    }
    const [a, b] = members as [MeasuredMember, MeasuredMember];
    for (const [victim, neighbour, at] of [[a, b, 0] as const, [b, a, 1] as const]) {
      const roles = { victim: kind(victim), neighbour: kind(neighbour) };
      const key = `${roles.victim}/${roles.neighbour}`;
      const known = pairs.get(key) ?? { ...roles, samples: [] };
      pairs.set(key, known);
      const degradation = degradations[at]?.degradation ?? NaN;
      known.samples.push({ victim: sideOf(victim), neighbour: sideOf(neighbour), degradation });
    }
  }
  return { pairs: [...pairs.values()], places };
}

/** Measured slowdowns of clients together. */
export interface Contention {
  /** By `contentionMember`: mean slowdown against alone on the whole device. */
  slowdowns: ReadonlyMap<string, number>;
  /** Activity of the SMs, a fraction; absent if the device tells none. */
  used?: number;
}

/** Name of a client in a table of contention. `share`: a fraction. */
export const contentionMember = (workload: string, share: number): string => `${workload}@${Math.round(100 * share)}`;

/** Name of a set of clients in a table of contention, whatever their order. */
export const contentionKey = (members: readonly string[]): string => [...members].sort().join('+');

/** All measured sets of a device by their name; equal members, and samples of the same set, count by their mean. */
export function contentionTable(set: SampleSet): Map<string, Contention> {
  const solos = new Solos(set);
  const sums = new Map<string, { members: Map<string, number[]>; used: number[] }>();
  for (const { mode, members, activity } of set.samples) {
    const known = members.map((member) => ({
      name: modelOf(member),
      slowdown: member.medianMs / (solos.medianMs(mode, { workload: member.workload, percent: 100 }) ?? NaN),
    }));
    if (known.some(({ slowdown }) => !Number.isFinite(slowdown))) continue;
    const key = contentionKey(known.map(({ name }) => name));
    const sum = sums.get(key) ?? { members: new Map<string, number[]>(), used: [] };
    sums.set(key, sum);
    for (const { name, slowdown } of known) sum.members.set(name, [...(sum.members.get(name) ?? []), slowdown]);
    if (activity.smActivity !== undefined) sum.used.push(activity.smActivity);
  }
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  return new Map(
    [...sums].map(([key, { members, used }]) => [
      key,
      {
        slowdowns: new Map([...members].map(([name, slowdowns]) => [name, mean(slowdowns)])),
        ...(used.length > 0 && { used: Math.min(1, mean(used)) }),
      },
    ]),
  );
}
