import type { Config } from '@gpuwhisk/common/config';
import { shareClasses } from '@gpuwhisk/common/gpu';
import type { DecisionRecord, DeviceMode, NodeStatus } from '@gpuwhisk/common/gpu';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Metrics } from '@gpuwhisk/common/metrics';
import type { ClusterState, StateSubscription } from '@gpuwhisk/common/state/cluster-state';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import type { AtShare } from '@gpuwhisk/gpu/profile/fill';
import { FunctionProfiles } from '@gpuwhisk/gpu/profile/function-profiles';
import { readProfile } from '@gpuwhisk/gpu/profile/profile-codec';
import { decodeModel, encodeModel, PredictorTable, modelName } from '@gpuwhisk/gpu/predict/slowdown-model';
import type { ModelKey, SlowdownModel } from '@gpuwhisk/gpu/predict/slowdown-model';
import { QuotaTable } from '@gpuwhisk/gpu/share/quota-table';
import { readQuotaRow, rowKey } from '@gpuwhisk/gpu/share/quota-row';
import { SetDemands, decodeWantedSet, encodeWantedSet } from '@gpuwhisk/gpu/share/set-demands';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { DecisionRing } from './decision-ring.js';
import type { RingBounds } from './decision-ring.js';
import type { LeaseKeeper } from '../../cluster/lease.js';
import { PerformanceStore } from './performance-store.js';
import type { DocumentKind, SaveCounts, TakeDocument } from './performance-store.js';
import { learningMetrics } from './learning-metrics.js';
import type { LearningMetrics } from './learning-metrics.js';
import { SlowdownSamples } from './retraining.js';
import { ActivityProfiler, typesOf } from './activity-profiler.js';
import { SampleCurves } from './sample-curves.js';
import type { SampleCurve } from './sample-curves.js';
import { functionView, quotaView, unmeasuredView } from './performance-view.js';
import type { SearchedSet, FunctionPerformance, PredictorSummary, SetPerformance } from './performance-view.js';

/** Dependencies of PerformanceData. */
export interface PerformanceDataParts {
  store: ArtifactStore;
  clock: Clock;
  random: Random;
  logger: Logger;
  metrics: Metrics;
  /** The controller's number: each has decisions of its own. */
  instance: number;
  options: Pick<Config['gpu'], 'learning'>;
  /** The right to decide: who has it writes what all controllers share. Absent: there is one controller. */
  lease?: Pick<LeaseKeeper, 'epoch'>;
  /** Tells controllers what an operator has had forgotten; absent: there is one. */
  state?: Pick<ClusterState, 'publish' | 'subscribe'>;
}

/** Decisions that are kept; some 3 KiB each with eight alternatives. */
const decisionBounds: RingBounds = { count: 1000, bytes: 8 * 1024 * 1024 };
/** Decisions of one document. */
const segmentSize = 50;

/**
 * Performance data of functions on GPUs: profiles of functions, slowdown samples, predictors, tables of shares, and the
 * decisions made. It is kept in memory, read from the stored documents at the start, and written back in the background.
 */
export class PerformanceData {
  readonly profiles: FunctionProfiles;
  readonly predictors = new PredictorTable();
  /** Samples that predictors are trained on. */
  readonly runs: SlowdownSamples;
  readonly table: QuotaTable;
  readonly curves: SampleCurves;
  /** Sets that were formed and not searched for. */
  readonly demands: SetDemands;
  readonly decisions: DecisionRing;
  readonly metrics: LearningMetrics;
  /** Major versions by device and slice: as many as there are. */
  private readonly drivers = new Map<string, number>();
  private searches: () => readonly SearchedSet[] = () => [];
  private readonly activity: ActivityProfiler;
  private readonly documents: PerformanceStore;
  private subscription: StateSubscription | undefined;

  private constructor(private readonly parts: PerformanceDataParts) {
    const documents = (this.documents = new PerformanceStore({
      ...parts,
      saveMs: parts.options.learning.saveMs,
      // Decisions are each controller's own.
      mayWrite: (kind) => kind === 'decisions' || parts.lease === undefined || parts.lease.epoch !== undefined,
    }));
    const keep = <Value extends ModelKey>(
      kind: DocumentKind,
      name: string,
      value: Value | undefined,
      encode: (value: Value) => string = JSON.stringify,
    ): void => {
      if (value === undefined) return documents.remove({ kind, name });
      const { gpuType, mode } = value;
      documents.save({ kind, name }, () => ({ gpuType, mode, text: encode(value) }));
    };
    this.profiles = new FunctionProfiles({
      onChange: ({ function: name, gpuType, mode }, profile) => {
        keep('profile', `${gpuType}/${mode} ${name}`, profile);
      },
      onVersion: (name, version) => {
        this.table.sawVersion(name, version);
        this.curves.sawVersion(name, version);
      },
    });
    this.activity = new ActivityProfiler(this.profiles);
    this.runs = new SlowdownSamples(parts.random, ({ gpuType, mode }, text) =>
      documents.save({ kind: 'samples', name: modelName({ gpuType, mode }) }, () => ({ gpuType, mode, text: text() })),
    );
    this.curves = new SampleCurves((name, curve) => {
      keep('curve', name, curve);
      if (curve !== undefined) this.profiles.sampled(curve.job, gpuOf(curve), timesOf(curve));
    });
    this.demands = new SetDemands((name, wanted) => keep('demand', name, wanted, encodeWantedSet));
    this.table = new QuotaTable({
      predictorOf: ({ type, mode }) => this.predictors.predictor({ gpuType: type, mode }),
      onChange: (name, row) => keep('quota', name, row),
    });
    this.metrics = learningMetrics(parts.metrics.registry, this);
    const { instance } = parts;
    this.decisions = new DecisionRing(decisionBounds, segmentSize, (segment) =>
      documents.save({ kind: 'decisions', name: `${instance}/${segment}` }, () => ({
        text: JSON.stringify(this.decisions.segment(segment)),
      })),
    );
  }

  /** Reads the stored documents; if the store fails, they are read later. */
  static async open(parts: PerformanceDataParts): Promise<PerformanceData> {
    const performanceData = new PerformanceData(parts);
    performanceData.subscription = await parts.state?.subscribe(forgetChannel, (message) => {
      if (isForgetMessage(message) && message.from !== parts.instance) performanceData.forget(message);
    });
    await performanceData.documents.open({
      ...performanceData.takers(),
      decisions: (text, name) => {
        const [instance, segment] = name.split('/').map(Number);
        if (instance === parts.instance)
          performanceData.decisions.restore(segment ?? 0, JSON.parse(text) as DecisionRecord[]);
      },
    });
    return performanceData;
  }

  /** This controller is the leader from now on: reads what another one has stored meanwhile, as `open` does. */
  async takeOver(): Promise<void> {
    // Decisions are each controller's own.
    await this.documents.open({ ...this.takers(), decisions: () => undefined });
  }

  /** A node's agent has told what is there. What was measured with an earlier driver is forgotten. */
  seen(node: NodeStatus): void {
    const major = driverMajor(node.driver);
    for (const device of node.devices) {
      for (const type of typesOf(device)) this.table.sawDriver(type, major);
      for (const { uuid } of [device, ...device.slices]) this.drivers.set(uuid, major);
    }
    this.activity.observe(node);
  }

  /** The major version of the driver that a device or slice has, by its UUID; 0: not known. */
  driverOf(uuid: string): number {
    return this.drivers.get(uuid) ?? 0;
  }

  /** A new predictor; returns whether it was taken over. */
  put(given: SlowdownModel): boolean {
    const model = { learnedAt: this.parts.clock.now(), ...given };
    const { gpuType, mode } = model;
    if (!this.predictors.put(model)) return false;
    this.documents.save({ kind: 'model', name: modelName(model) }, () => ({ gpuType, mode, text: encodeModel(model) }));
    return true;
  }

  /** How many functions, measured sets and predictors are known. */
  counts(): { functions: number; quotas: number; models: number } {
    return { functions: this.profiles.size, quotas: this.table.size, models: this.predictors.size };
  }

  /** The performance of the functions that are wanted, by `/namespace/action`; absent: all. */
  functions(wants?: (name: string) => boolean): FunctionPerformance[] {
    const all = this.profiles.all();
    return (wants === undefined ? all : all.filter((one) => wants(one.function))).map(functionView);
  }

  /** The measured sets, and those to be measured, that have one of the functions that are wanted; absent: all. */
  quotas(wants?: (name: string) => boolean): SetPerformance[] {
    const isWanted = ({ jobs }: { jobs: readonly { function: string }[] }): boolean =>
      wants === undefined || jobs.some((job) => wants(job.function));
    const searches = new Map(this.searches().map((one) => [one.key, one]));
    const stored: SetPerformance[] = [];
    for (const row of this.table.rows()) {
      const key = rowKey(row);
      if (isWanted(row)) stored.push(quotaView(row, searches.get(key)));
      searches.delete(key);
    }
    return [...stored, ...[...searches.values()].filter(isWanted).map(unmeasuredView)];
  }

  /** Sets the function that gives the searches for shares. */
  showSearches(searches: () => readonly SearchedSet[]): void {
    this.searches = searches;
  }

  /** The predictors in force that were learned. */
  models(): PredictorSummary[] {
    return this.predictors.list().map(({ gpuType, mode, version, sampleCount, learnedAt }) => ({
      gpuType,
      mode,
      version,
      sampleCount,
      ...(learnedAt !== undefined && { learnedAt }),
    }));
  }

  /** Counts of the documents saved, failed and dropped. */
  get writes(): Readonly<SaveCounts> {
    return this.documents.counts;
  }

  /** Forgets a function, `/namespace/action`, and all sets that it is in; returns whether anything was known of it. */
  forgetFunction(name: string): boolean {
    return this.forgetEverywhere({ what: 'function', name });
  }

  /** Forgets what was measured of a set, by its id; returns whether there was anything. */
  forgetQuota(id: string): boolean {
    return this.forgetEverywhere({ what: 'quota', name: id });
  }

  /** Forgets a predictor and the runs that it was learned from; returns whether there was anything. */
  forgetModel(key: ModelKey): boolean {
    return this.forgetEverywhere({ what: 'model', name: modelName(key) });
  }

  /** The controller that decides knows it, too, and has the documents. */
  private forgetEverywhere(forgotten: ForgetMessage): boolean {
    const { state, instance, logger } = this.parts;
    const wasThere = this.forget(forgotten);
    state?.publish(forgetChannel, { ...forgotten, from: instance }).catch((error: unknown) => {
      logger.error({ ...forgotten, error: String(error) }, 'other controllers were not told what is to be forgotten');
    });
    return wasThere;
  }

  private forget({ what, name }: ForgetMessage): boolean {
    if (what === 'quota') return this.table.forget(name);
    if (what === 'function') {
      this.table.sawVersion(name, undefined);
      this.curves.sawVersion(name, undefined);
      return this.profiles.forget(name);
    }
    const wasThere = [this.predictors.deleteNamed(name), this.runs.forget(name)].includes(true);
    this.documents.remove({ kind: 'model', name });
    this.documents.remove({ kind: 'samples', name });
    return wasThere;
  }

  /** Resolves once what was learned by now is written, or that has failed: it is tried again. */
  saved(): Promise<void> {
    return this.documents.flush();
  }

  /** Writes what is not written yet. */
  async close(): Promise<void> {
    await this.subscription?.close();
    await this.documents.close();
  }

  /** Take the stored documents; where there is newer data, both count. */
  private takers(): Record<Exclude<DocumentKind, 'decisions'>, TakeDocument> {
    const { profiles, table } = this;
    return {
      profile: (text, _, isChanged) => {
        const profile = readProfile(JSON.parse(text));
        if (isChanged) profiles.merge(profile);
        else profiles.restore(profile);
      },
      samples: (text, _, isChanged) => this.runs.restore(text, isChanged),
      demand: (text) => this.demands.restore(decodeWantedSet(text)),
      curve: (text) => this.curves.restore(JSON.parse(text)),
      model: (text) => void this.predictors.put(decodeModel(text)),
      quota: (text, _, isChanged) => {
        const row = readQuotaRow(JSON.parse(text));
        if (isChanged) table.merge(row);
        else table.restore(row);
      },
    };
  }
}

const gpuOf = ({ gpuType: type, mode }: SampleCurve): { type: string; mode: DeviceMode } => ({ type, mode });

/** A curve as times at shares. */
const timesOf = ({ slowdowns }: SampleCurve): AtShare[] =>
  shareClasses.flatMap((share, at) => {
    const value = slowdowns[at];
    return value === undefined ? [] : [{ share, value }];
  });

/** The major version of a driver, `550.54.14`; 0 where it is not known. */
function driverMajor(driver: string | undefined): number {
  const major = Number.parseInt(driver ?? '', 10);
  return Number.isInteger(major) ? major : 0;
}

/** Where a controller tells the others what an operator has had forgotten there. */
const forgetChannel = 'gpu-forgotten';

/** Names what controllers are to forget: a function, the measurements of a set, or a predictor by `gpuType/mode`. */
interface ForgetMessage {
  what: 'function' | 'quota' | 'model';
  name: string;
}

/** Whether a message of that channel is one; `from` is a controller's number. */
function isForgetMessage(message: JsonValue): message is JsonObject & ForgetMessage & { from: number } {
  if (!isJsonObject(message) || typeof message.name !== 'string') return false;
  return ['function', 'quota', 'model'].some((what) => message.what === what);
}
