import { isDeepStrictEqual } from 'node:util';
import { kindName, type GpuKind } from '@gpuwhisk/common/gpu';
import type { ProfiledShares, Task } from '../../view/view.js';
import type { FeatureRecord } from '../../predict/slowdown-predictor.js';
import { fillOfTimes, keep, median, fillByLaunches, fillByRuns, keepAt, takeFigure, takeFill } from './fill.js';
import type { AtShare, Fill, FillSource } from './fill.js';
import { bucketOf, isSameBucket, timeByNeighbours } from '../../view/input-size.js';
import type { InputBucket } from '../../view/input-size.js';
import { mergedProfile } from './profile-codec.js';
import type { ShareProfile } from './trials.js';

/** What was seen of a function with one size of batch and inputs of about one size. Times in ms. */
export interface BatchProfile {
  batch: number;
  /** Sizes of the inputs; absent: not known, as of runs that earlier versions have measured. */
  inputs?: InputBucket;
  /** The last times alone at 100 %. */
  soloMs: number[];
  /** Whether these were measured alone, or worked out from runs beside others as far as that was predicted. */
  isAlone: boolean;
  /** What the last cold runs took beyond that. */
  startMs: number[];
  /** The last warm runs beside others who were there all the time. */
  beside?: ComparedRun[];
  /** Times of the last warm runs alone in processes that were held to a share, ms. */
  timesAlone?: FiguresAtShare[];
  /** Blocks launched alone in 5 ms by such processes, on a device that was busy all the time. */
  launchRates?: FiguresAtShare[];
}

/** The last figures at one share of the SMs, percent. */
export interface FiguresAtShare {
  share: number;
  values: number[];
}

/** How many times the time alone a run took, as it was predicted and as it was measured. */
export interface ComparedRun {
  predicted: number;
  measured: number;
}

/** What is known of a function on one type of GPU in one mode. */
export interface FunctionProfile extends GpuKind {
  function: string;
  /** That it was seen in; another version starts an empty profile. Empty: only its processes were seen. */
  version: string;
  batches: BatchProfile[];
  /** Measured figures: `smUtil`, its fill, and `dramUtil`, the greatest memory activity seen. */
  features?: FeatureRecord;
  /** Source of `features.smUtil`; absent if `smUtil` is. */
  fillSource?: FillSource;
  /** Request and limit from trials; absent: no search for them has ended. */
  shares?: ShareProfile;
}

/** A function, or what is learned of it, on a kind of GPU. */
export type ProfileKey = GpuKind & Pick<FunctionProfile, 'function'>;

/** A run that has ended. */
export interface ProfiledRun {
  task: Pick<Task, 'function' | 'version' | 'batch' | 'inputSize'>;
  gpu: GpuKind;
  tookMs: number;
  /** What its neighbours and its share are predicted to have cost. */
  slowdown: number;
  isWarm: boolean;
  /** Whether it ran alone on its GPU. */
  isAlone: boolean;
  /** Class of its process, percent of the SMs; absent if the run was held to less than its class. */
  shareClass?: number;
}

/** Figures of a function on a device on which no other process computed. */
export interface SeenAlone {
  fill?: Fill;
  /** Part of the memory bandwidth. */
  dramUtil?: number;
}

/** What a task is told of its function. */
export type KnownOfTask = Pick<Task, 'soloMs' | 'startMs' | 'featureRecord' | 'profiledShares'>;

/** Sizes of batches that are told apart, and sizes of inputs with each of them. */
const [maxBatches, maxInputs] = [32, 16];
/** Warm runs alone before their median is a time alone. */
const leastAlone = 2;
/** Longer than any run may take. */
const maxMs = 7 * 24 * 3_600_000;

export interface FunctionProfilesOptions {
  /** A profile is another than before, or is forgotten. */
  onChange?(key: ProfileKey, profile: FunctionProfile | undefined): void;
  /** A function has another version than before; undefined: an operator has it forgotten. */
  onVersion?(name: string, version: string | undefined): void;
  /** Profiles that are kept; then the one goes that was not changed for longest. Default 10,000. */
  maxProfiles?: number;
}

/** What functions were seen to need: from their runs, and from what the agents tell of their processes. */
export class FunctionProfiles {
  /** By function, then by kind of GPU. */
  private readonly byFunction = new Map<string, Map<string, FunctionProfile>>();
  /** The version that a function has, and when the last request for it arrived. */
  private readonly versions = new Map<string, { version: string; at: number }>();
  /** Every request asks for the medians, and few runs change them. */
  private readonly times = new WeakMap<BatchProfile, Times>();
  private count = 0;

  constructor(private readonly options: FunctionProfilesOptions = {}) {}

  /**
   * What is known of a task's function; where it is on several kinds of GPU, of the one with the most runs. Without runs
   * with inputs of the task's size its time is predicted from other sizes. A version that arrives later than all requests
   * for another one takes its place, and the profile starts empty.
   */
  of({
    function: name,
    version,
    batch,
    arrivedAt,
    inputSize,
  }: Pick<Task, 'function' | 'version' | 'batch' | 'arrivedAt' | 'inputSize'>): KnownOfTask {
    this.sawVersion(name, version, arrivedAt);
    const profiles = this.byFunction.get(name);
    if (profiles === undefined) return {};
    const inputs = inputSize && bucketOf(inputSize);
    let best: KnownTimes | undefined;
    let features: FeatureRecord | undefined;
    let profiledShares: ProfiledShares[] | undefined;
    for (const profile of profiles.values()) {
      features ??= profile.features;
      const { gpuType, mode, shares } = profile;
      if (shares !== undefined && profile.version === version) {
        const { request, limit, batch: profiled, ms, limitMs } = shares;
        const own = { gpuType, mode, request, limit, batch: profiled, ms };
        (profiledShares ??= []).push(limitMs === undefined ? own : { ...own, limitMs });
      }
      const one = profile.version === version ? this.timesFor(profile, batch, inputs) : undefined;
      if (one === undefined || one.runs <= (best?.runs ?? -1)) continue;
      best = one;
      features = profile.features ?? features;
    }
    const { soloMs, startMs } = best ?? noTimes;
    return {
      ...(soloMs !== undefined && { soloMs }),
      ...(startMs !== undefined && { startMs }),
      ...(features !== undefined && { featureRecord: features }),
      ...(profiledShares !== undefined && { profiledShares }),
    };
  }

  /**
   * Time alone at 100 % with inputs of the task's size, as it was measured on a kind of GPU; undefined below two warm runs
   * alone there.
   */
  aloneMs({ function: name, version, batch, inputSize }: ProfiledRun['task'], gpu: GpuKind): number | undefined {
    const inputs = inputSize && bucketOf(inputSize);
    const known = this.batchesOf(name, version, batch, gpu).find((own) => isSameBucket(own.inputs, inputs));
    return this.aloneOf(known);
  }

  /** Time alone at 100 % with the inputs that the most runs alone had on a kind of GPU; undefined below two of them. */
  usualAloneMs({ function: name, version, batch }: ProfiledRun['task'], gpu: GpuKind): number | undefined {
    const alone = this.batchesOf(name, version, batch, gpu).filter((own) => this.aloneOf(own) !== undefined);
    return this.aloneOf(alone.toSorted((one, other) => other.soloMs.length - one.soloMs.length)[0]);
  }

  /** Times alone, as of `aloneMs`, by the sizes that the function reports itself, the largest of each bucket. */
  aloneByReported({ function: name, version, batch }: ProfiledRun['task'], gpu: GpuKind): [number, number][] {
    return this.batchesOf(name, version, batch, gpu).flatMap((own): [number, number][] => {
      const ms = own.inputs?.unit === 'reported' ? this.aloneOf(own) : undefined;
      return own.inputs === undefined || ms === undefined ? [] : [[own.inputs.upTo, ms]];
    });
  }

  /** Learns from a run. Gives why nothing is learned from it, or undefined. */
  ran({ task, gpu, tookMs, slowdown, isWarm, isAlone, shareClass }: ProfiledRun): string | undefined {
    if (!(tookMs > 0 && tookMs <= maxMs)) return `a time of ${tookMs} ms`;
    if (!(slowdown > 0 && Number.isFinite(slowdown))) return `a slowdown of ${slowdown}`;
    const known = this.versions.get(task.function);
    if (known !== undefined && known.version !== task.version) return `version ${task.version}, which was replaced`;
    const profile = this.profileOf(task.function, gpu, task.version);
    const one = batchOf(profile, task);
    if (isWarm) {
      // What was measured alone is better than what was worked out.
      if (isAlone && !one.isAlone) Object.assign(one, { soloMs: [], isAlone });
      if (isAlone === one.isAlone) keep(one.soloMs, tookMs / slowdown);
      if (isAlone && shareClass !== undefined && gpu.mode === 'mps') {
        keepAt((one.timesAlone ??= []), shareClass, tookMs);
        takeFill(profile, fillByRuns(profile));
      }
    } else {
      // What a cold run takes for itself is known from warm ones only.
      const { soloMs } = this.timesFor(profile, task.batch, one.inputs) ?? noTimes;
      if (soloMs !== undefined) keep(one.startMs, Math.max(0, tookMs - soloMs * slowdown));
    }
    this.times.delete(one);
    this.changed(profile);
    return undefined;
  }

  /** Keeps what was predicted of a run that was learned from beside what was measured. */
  compared(task: ProfiledRun['task'], gpu: GpuKind, run: ComparedRun): void {
    const profile = this.profileOf(task.function, gpu, task.version);
    keep((batchOf(profile, task).beside ??= []), run);
    this.changed(profile);
  }

  /** Takes figures of a look at which only this function computed; the greatest memory bandwidth counts. */
  seen(name: string, gpu: GpuKind, { fill, dramUtil }: SeenAlone): void {
    const before = this.byFunction.get(name)?.get(kindName(gpu));
    const traffic = most(before?.features?.dramUtil, dramUtil);
    if (fill === undefined && traffic === before?.features?.dramUtil) return;
    const profile = this.profileOf(name, gpu, this.versions.get(name)?.version ?? '');
    const isNew = [takeFill(profile, fill), takeFigure(profile, 'dramUtil', traffic)].includes(true);
    if (isNew) this.changed(profile);
  }

  /** Takes the blocks that a function launched alone in 5 ms at `share` percent, on a device that was busy all the time. */
  launched(name: string, gpu: GpuKind, batch: number, { share, value }: AtShare): void {
    const version = this.versions.get(name)?.version;
    if (version === undefined || gpu.mode !== 'mps' || !(value > 0 && Number.isFinite(value))) return;
    const profile = this.profileOf(name, gpu, version);
    keepAt((batchOf(profile, { batch }).launchRates ??= []), share, value);
    takeFill(profile, fillByLaunches(profile));
    this.changed(profile);
  }

  /** Takes the times of a function's sample alone at share classes, relative to the time at 100 %. */
  sampled({ function: name, version }: Pick<Task, 'function' | 'version'>, gpu: GpuKind, times: AtShare[]): void {
    const known = this.versions.get(name)?.version ?? version;
    if (known !== version || gpu.mode !== 'mps') return;
    const fill = fillOfTimes(times, 'sample');
    if (fill === undefined) return;
    const profile = this.profileOf(name, gpu, version);
    if (takeFill(profile, fill)) this.changed(profile);
  }

  /** Takes request and limit that trials have found, or undefined where there are none any more. */
  profiled(
    { function: name, version }: Pick<Task, 'function' | 'version'>,
    gpu: GpuKind,
    shares: ShareProfile | undefined,
  ): void {
    const known = this.versions.get(name)?.version ?? version;
    const before = this.byFunction.get(name)?.get(kindName(gpu))?.shares;
    if (known !== version || isDeepStrictEqual(before, shares)) return;
    const profile = this.profileOf(name, gpu, version);
    if (shares === undefined) delete profile.shares;
    else profile.shares = shares;
    this.changed(profile);
  }

  /** A version was deployed at `at`, epoch ms: profiles of an earlier one are dropped. */
  deployed(name: string, version: string, at: number): void {
    this.sawVersion(name, version, at);
  }

  /** All that is known, what was changed last at the end of its function's. */
  all(): FunctionProfile[] {
    return [...this.byFunction.values()].flatMap((profiles) => [...profiles.values()]);
  }

  /** Takes a profile as `all` gave it. */
  restore(profile: FunctionProfile): void {
    if (profile.version !== '') this.versions.set(profile.function, { version: profile.version, at: 0 });
    this.insert(profile);
  }

  /** Merges a stored profile of an earlier process with measurements since. */
  merge(earlier: FunctionProfile): void {
    const since = this.byFunction.get(earlier.function)?.get(kindName(earlier));
    if (since === undefined) {
      this.restore(earlier);
      return;
    }
    const merged = mergedProfile(earlier, since);
    this.restore(merged);
    this.changed(merged);
  }

  /** What is known of one function. */
  ofFunction(name: string): FunctionProfile[] {
    return [...(this.byFunction.get(name)?.values() ?? [])];
  }

  /** How many profiles there are. */
  get size(): number {
    return this.count;
  }

  /** Forgets a function; returns whether anything was known of it. */
  forget(name: string): boolean {
    const profiles = this.byFunction.get(name);
    this.versions.delete(name);
    for (const profile of profiles?.values() ?? []) this.drop(profile);
    if (profiles !== undefined) this.options.onVersion?.(name, undefined);
    return profiles !== undefined;
  }

  /** What a version was seen to take with one size of batch, by size of its inputs. */
  private batchesOf(name: string, version: string, batch: number, gpu: GpuKind): BatchProfile[] {
    const profile = this.byFunction.get(name)?.get(kindName(gpu));
    return profile?.version === version ? profile.batches.filter((own) => own.batch === batch) : [];
  }

  private aloneOf(one: BatchProfile | undefined): number | undefined {
    return one?.isAlone === true && one.soloMs.length >= leastAlone ? this.timesOf(one).soloMs : undefined;
  }

  /** The times with inputs of a bucket: its own, or those predicted from other buckets. Undefined without any. */
  private timesFor(
    { batches }: FunctionProfile,
    batch: number,
    inputs: InputBucket | undefined,
  ): KnownTimes | undefined {
    const [first, ...further] = batches.filter((own) => own.batch === batch);
    if (first === undefined) return undefined;
    if (further.length === 0 && isSameBucket(first.inputs, inputs)) return timesWith(first, this.timesOf(first));
    const all = [first, ...further].toSorted((one, other) => other.soloMs.length - one.soloMs.length);
    const own = all.find((one) => isSameBucket(one.inputs, inputs));
    const most = all[0] ?? first;
    const startMs = (own && this.timesOf(own).startMs) ?? median(all.flatMap((one) => this.timesOf(one).startMs ?? []));
    if (own !== undefined && own.soloMs.length > 0) return { ...timesWith(own, this.timesOf(own)), startMs };
    const known = all.flatMap((one) => {
      const { soloMs: ms } = this.timesOf(one);
      return one.inputs === undefined || ms === undefined ? [] : [{ bucket: one.inputs, ms }];
    });
    const soloMs = inputs && timeByNeighbours(inputs, known);
    return { soloMs: soloMs ?? this.timesOf(most).soloMs, startMs, runs: most.soloMs.length };
  }

  private timesOf(one: BatchProfile): Times {
    const known = this.times.get(one);
    if (known !== undefined) return known;
    const times = { soloMs: median(one.soloMs), startMs: median(one.startMs) };
    this.times.set(one, times);
    return times;
  }

  private sawVersion(name: string, version: string, arrivedAt: number): void {
    const known = this.versions.get(name);
    if (known?.version === version) {
      known.at = Math.max(known.at, arrivedAt);
      return;
    }
    // A request from before the change.
    if (known !== undefined && arrivedAt <= known.at) return;
    bounded(this.versions, name, { version, at: arrivedAt }, this.maxProfiles);
    if (known === undefined) return;
    for (const profile of this.byFunction.get(name)?.values() ?? []) this.drop(profile);
    this.options.onVersion?.(name, version);
  }

  private get maxProfiles(): number {
    return this.options.maxProfiles ?? 10_000;
  }

  private profileOf(name: string, { gpuType, mode }: GpuKind, version: string): FunctionProfile {
    const known = this.byFunction.get(name)?.get(kindName({ gpuType, mode }));
    if (known?.version === version) return known;
    // Its processes were seen before a request was.
    const { features, fillSource } = known?.version === '' ? known : {};
    const fresh = {
      function: name,
      gpuType,
      mode,
      version,
      batches: [],
      ...(features !== undefined && { features }),
      ...(fillSource !== undefined && { fillSource }),
    };
    this.insert(fresh);
    return fresh;
  }

  private insert(profile: FunctionProfile): void {
    const own = this.byFunction.get(profile.function) ?? new Map<string, FunctionProfile>();
    const kind = kindName(profile);
    if (!own.has(kind)) this.count += 1;
    own.set(kind, profile);
    this.byFunction.set(profile.function, own);
    while (this.count > this.maxProfiles) {
      const [oldest] = this.byFunction.values();
      const [first] = oldest?.values() ?? [];
      if (first === undefined) return;
      this.drop(first);
    }
  }

  private changed(profile: FunctionProfile): void {
    // The last one to go.
    const own = this.byFunction.get(profile.function);
    if (own !== undefined) {
      this.byFunction.delete(profile.function);
      this.byFunction.set(profile.function, own);
    }
    this.options.onChange?.(profile, profile);
  }

  private drop(profile: FunctionProfile): void {
    const own = this.byFunction.get(profile.function);
    if (own?.delete(kindName(profile)) !== true) return;
    this.count -= 1;
    if (own.size === 0) this.byFunction.delete(profile.function);
    this.options.onChange?.(profile, undefined);
  }
}

interface Times {
  soloMs: number | undefined;
  startMs: number | undefined;
}

const noTimes: Times = { soloMs: undefined, startMs: undefined };

/** Times with the number of runs behind them. */
interface KnownTimes extends Times {
  runs: number;
}

const timesWith = ({ soloMs }: BatchProfile, times: Times): KnownTimes => ({ ...times, runs: soloMs.length });

function batchOf(profile: FunctionProfile, { batch, inputSize }: Pick<Task, 'batch' | 'inputSize'>): BatchProfile {
  const inputs = inputSize && bucketOf(inputSize);
  const known = profile.batches.find((own) => own.batch === batch && isSameBucket(own.inputs, inputs));
  if (known !== undefined) return known;
  const fresh: BatchProfile = { batch, ...(inputs && { inputs }), soloMs: [], isAlone: false, startMs: [] };
  const alike = profile.batches.filter((own) => own.batch === batch);
  // The size with the fewest runs goes.
  const [rarest] = alike.toSorted((one, other) => one.soloMs.length - other.soloMs.length);
  if (alike.length >= maxInputs) profile.batches = profile.batches.filter((own) => own !== rarest);
  else if (alike.length === 0) {
    const [first, ...further] = new Set(profile.batches.map((own) => own.batch));
    if (further.length + 1 >= maxBatches) profile.batches = profile.batches.filter((own) => own.batch !== first);
  }
  profile.batches.push(fresh);
  return fresh;
}

/** The greater figure, at most 1; NaN and negative figures are ignored. */
function most(before: number | undefined, now: number | undefined): number | undefined {
  return now !== undefined && now > (before ?? 0) ? Math.min(1, now) : before;
}

function bounded<Value>(map: Map<string, Value>, key: string, value: Value, size: number): void {
  map.set(key, value);
  const [first] = map.keys();
  if (map.size > size && first !== undefined) map.delete(first);
}
