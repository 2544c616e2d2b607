import { kindName, type GpuKind } from '@gpuwhisk/common/gpu';
import type { Config } from '@gpuwhisk/common/config';
import { shareClasses } from '@gpuwhisk/common/gpu';
import type { DeviceMode, NodeStatus } from '@gpuwhisk/common/gpu';
import type { DecisionRecord } from '@gpuwhisk/common/gpu-decisions';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Metrics } from '@gpuwhisk/common/metrics';
import type { ClusterState, StateSubscription } from '@gpuwhisk/common/state/cluster-state';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import type { AtShare } from '@gpuwhisk/gpu/stages/profile/fill';
import { FunctionProfiles } from '@gpuwhisk/gpu/stages/profile/function-profiles';
import { readProfile } from '@gpuwhisk/gpu/stages/profile/profile-codec';
import { decodeModel, encodeModel, PredictorTable } from '@gpuwhisk/gpu/predict/slowdown-model';
import type { SlowdownModel } from '@gpuwhisk/gpu/predict/slowdown-model';
import { QuotaTable } from '@gpuwhisk/gpu/share/quota-table';
import { readQuotaRow } from '@gpuwhisk/gpu/share/quota-row';
import { SetTrials } from '@gpuwhisk/gpu/share/set-trials';
import { readTriedSet } from '@gpuwhisk/gpu/share/set-codec';
import { SliceSlowdowns } from '@gpuwhisk/gpu/algorithms/protean/slowdowns';
import type { SliceSlowdownsState } from '@gpuwhisk/gpu/algorithms/protean/slowdowns';
import { pairModelName } from '@gpuwhisk/gpu/predict/pair-degradation';
import type { PairModelKey } from '@gpuwhisk/gpu/predict/pair-degradation';
import type { MeasuredPair } from '@gpuwhisk/gpu/predict/pair-samples';
import { Degradations } from './degradations.js';
import { PairModels } from './pair-models.js';
import { RequestForecasts } from './request-forecasts.js';
import { newShareCounts } from '@gpuwhisk/gpu/share/share-counts';
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
import { FunctionFaults } from './function-faults.js';
import { FunctionTrials } from './function-trials.js';
import { SampleCurves } from './sample-curves.js';
import type { SampleCurve } from './sample-curves.js';
import type { MeasurementState, ProfilingJobs, SearchedSet } from './measurement-states.js';

/** Dependencies of PerformanceData. */
export interface PerformanceDataParts {
  store: ArtifactStore;
  clock: Clock;
  random: Random;
  logger: Logger;
  metrics: Metrics;
  /** The controller's number; each controller stores its own decisions. */
  instance: number;
  options: Pick<Config['gpu'], 'learning'>;
  /** The lease of the leader, which writes the data that controllers share. Absent on a single controller. */
  lease?: Pick<LeaseKeeper, 'epoch'>;
  /** Tells controllers which data an operator has deleted; absent on a single controller. */
  state?: Pick<ClusterState, 'publish' | 'subscribe'>;
}

/** Bounds of the kept decisions; one with eight alternatives takes about 3 KiB. */
const decisionBounds: RingBounds = { count: 1000, bytes: 8 * 1024 * 1024 };
/** Decisions in one document. */
const segmentSize = 50;

/**
 * Performance data of functions on GPUs: profiles, slowdown samples, predictors, tables of shares, and decisions. The data
 * is kept in memory, read from stored documents at the start, and written back in the background.
 */
export class PerformanceData {
  readonly profiles: FunctionProfiles;
  readonly predictors = new PredictorTable();
  /** Samples for the training of predictors. */
  readonly runs: SlowdownSamples;
  readonly table: QuotaTable;
  readonly curves: SampleCurves;
  /** Trials of functions for their request and limit. */
  readonly trials: FunctionTrials;
  /** Degradations beside workloads. */
  readonly degradations: Degradations;
  /** Measured pairs and the models of their degradations. */
  readonly pairs: PairModels;
  /** Slowdowns on GPUs and their slices, as PROTEAN predicts them. */
  readonly slices: SliceSlowdowns;
  /** Trials of sets of functions that share a GPU. */
  readonly setTrials: SetTrials;
  /** Versions that run alone, as their faults end the runs of others. */
  readonly faults: FunctionFaults;
  readonly forecasts: RequestForecasts;
  /** Sets that were formed and whose shares were not searched for. */
  readonly demands: SetDemands;
  readonly decisions: DecisionRing;
  readonly metrics: LearningMetrics;
  /** Choices of shares since this process started. */
  readonly shareCounts = newShareCounts();
  /** Major versions of the driver, by device and slice. */
  private readonly drivers = new Map<string, number>();
  /** The searches for shares; set by what runs them, as the next two. */
  searches: () => readonly SearchedSet[] = () => [];
  /** The jobs that run trials; undefined: none are run here. */
  profilingJobs: ProfilingJobs | undefined;
  /** The state of the measurement of pairs. */
  pairMeasurements: () => MeasurementState | undefined = () => undefined;
  private readonly activity: ActivityProfiler;
  private readonly documents: PerformanceStore;
  private subscriptions: (StateSubscription | undefined)[] = [];

  private constructor(private readonly parts: PerformanceDataParts) {
    const documents = (this.documents = new PerformanceStore({
      ...parts,
      saveMs: parts.options.learning.saveMs,
      // Each controller writes its own decisions.
      mayWrite: (kind) => kind === 'decisions' || parts.lease === undefined || parts.lease.epoch !== undefined,
    }));
    /** Keeps what `text` gives when it is written; undefined: deleted. `of`: what it holds for, if that is a kind of GPU. */
    const keepText = (kind: DocumentKind, name: string, text: (() => string) | undefined, of?: GpuKind): void => {
      const key = of && { gpuType: of.gpuType, mode: of.mode };
      if (text === undefined) documents.remove({ kind, name });
      else documents.save({ kind, name }, () => ({ ...key, text: text() }));
    };
    const keep = <Value extends GpuKind>(
      kind: DocumentKind,
      name: string,
      value: Value | undefined,
      encode: (value: Value) => string = JSON.stringify,
    ): void => keepText(kind, name, value && (() => encode(value)), value);
    this.profiles = new FunctionProfiles({
      onChange: (key, profile) => keep('profile', `${kindName(key)} ${key.function}`, profile),
      onVersion: (name, version) => {
        this.table.sawVersion(name, version);
        this.setTrials.sawVersion(name, version);
        this.curves.sawVersion(name, version);
      },
    });
    this.activity = new ActivityProfiler(this.profiles);
    this.runs = new SlowdownSamples(parts.random, (key, text) => keepText('samples', kindName(key), text, key));
    this.curves = new SampleCurves((name, curve) => {
      keep('curve', name, curve);
      if (curve !== undefined) this.profiles.sampled(curve.job, curve, timesOf(curve));
    });
    this.trials = new FunctionTrials({
      keep: (name, text) => keepText('trials', name, text),
      tell: (change) => this.tell(trialsChannel, change),
      deployed: ({ function: name, version }, at) => this.profiles.deployed(name, version, at),
      found: (wanted, gpu, shares) => this.profiles.profiled(wanted, gpu, shares),
    });
    this.pairs = new PairModels({
      clock: parts.clock,
      keepSamples: (key, text) => keepText('pair-samples', pairModelName(key), text, key),
      keepModel: (key, text) => keepText('pair-model', pairModelName(key), text, key),
      use: (model, isFirst) => this.degradations.use(model, isFirst),
      withdraw: (key) => this.degradations.withdraw(key),
    });
    this.degradations = new Degradations({
      onChange: () => keepText('degradations', 'smore', () => this.degradations.text()),
      aloneMs: (task, gpu) => this.profiles.usualAloneMs(task, gpu),
      measured: (key, pair) => this.pairMeasured(key, pair),
    });
    this.slices = new SliceSlowdowns(() => keepText('slices', 'protean', () => JSON.stringify(this.slices.state())));
    this.faults = new FunctionFaults(parts.clock, () => keepText('faults', 'functions', () => this.faults.text()));
    this.forecasts = new RequestForecasts(() => keepText('forecast', 'ls-lstm', () => this.forecasts.text()));
    this.demands = new SetDemands((name, wanted) => keep('demand', name, wanted, encodeWantedSet));
    this.table = new QuotaTable({
      predictorOf: (gpu) => this.predictors.predictor(gpu),
      onChange: (name, row) => keep('quota', name, row),
    });
    this.setTrials = new SetTrials((name, set) => keep('set', name, set));
    this.metrics = learningMetrics(parts.metrics.registry, this);
    const { instance } = parts;
    this.decisions = new DecisionRing(decisionBounds, segmentSize, (segment) =>
      keepText('decisions', `${instance}/${segment}`, () => JSON.stringify(this.decisions.segment(segment))),
    );
  }

  /** Opens the data with the stored documents. If the store fails, they are read later. */
  static async open(parts: PerformanceDataParts): Promise<PerformanceData> {
    const performanceData = new PerformanceData(parts);
    performanceData.subscriptions = [
      await parts.state?.subscribe(forgetChannel, (message) => {
        if (isForgetMessage(message) && message.from !== parts.instance) performanceData.forget(message);
      }),
      await parts.state?.subscribe(trialsChannel, (message) => {
        if (isJsonObject(message) && message.from !== parts.instance) performanceData.trials.changedElsewhere(message);
      }),
    ];
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

  /**
   * Called when this controller becomes the leader. Reads documents that another controller has stored meanwhile, as `open`
   * does.
   */
  async takeOver(): Promise<void> {
    // Each controller keeps its own decisions.
    await this.documents.open({ ...this.takers(), decisions: () => undefined });
  }

  /** Notes the driver versions of a node's row. Measurements with an earlier driver are deleted. */
  seen(node: NodeStatus): void {
    const major = driverMajor(node.driver);
    for (const device of node.devices) {
      for (const type of typesOf(device)) {
        this.table.sawDriver(type, major);
        this.setTrials.sawDriver(type, major);
      }
      for (const { uuid } of [device, ...device.slices]) this.drivers.set(uuid, major);
    }
    this.activity.observe(node);
    this.faults.seen(node);
  }

  /** The major version of the driver of a device or slice, by UUID; 0 if it is not known. */
  driverOf(uuid: string): number {
    return this.drivers.get(uuid) ?? 0;
  }

  /** Offers a new predictor; returns whether it was accepted. */
  put(given: SlowdownModel): boolean {
    const model = { learnedAt: this.parts.clock.now(), ...given };
    const { gpuType, mode } = model;
    if (!this.predictors.put(model)) return false;
    this.documents.save({ kind: 'model', name: kindName(model) }, () => ({ gpuType, mode, text: encodeModel(model) }));
    return true;
  }

  /** Takes the measured degradation of a pair, as `PairModels.add` does. */
  pairMeasured(key: PairModelKey, pair: Omit<MeasuredPair, 'at'>): void {
    const refused = this.pairs.add(key, pair);
    this.metrics.pairOffered(refused === undefined ? 'taken' : 'refused');
  }

  /** The numbers of functions, measured sets, predictors, measured pairs and models of pairs. */
  counts(): Record<'functions' | 'quotas' | 'models' | 'pairs' | 'pairModels', number> {
    const { profiles, table, predictors } = this;
    return { functions: profiles.size, quotas: table.size, models: predictors.size, ...this.pairs.counts() };
  }

  /** Counts of saved, failed and dropped documents. */
  get writes(): Readonly<SaveCounts> {
    return this.documents.counts;
  }

  /** Deletes the data of a function, `/namespace/action`, and of all sets with it. Returns whether there was any. */
  forgetFunction(name: string): boolean {
    return this.forgetEverywhere({ what: 'function', name });
  }

  /** Deletes the measurements of a set, by its id. Returns whether there were any. */
  forgetQuota(id: string): boolean {
    return this.forgetEverywhere({ what: 'quota', name: id });
  }

  /** Deletes a predictor and its training runs, and the models of pairs and their measurements. Returns whether there were any. */
  forgetModel(key: GpuKind): boolean {
    return this.forgetEverywhere({ what: 'model', name: kindName(key) });
  }

  /** Deletes here and on the other controllers. The leader has the same data, and writes the documents. */
  private forgetEverywhere(forgotten: ForgetMessage): boolean {
    const wasThere = this.forget(forgotten);
    this.tell(forgetChannel, { ...forgotten });
    return wasThere;
  }

  private tell(channel: string, message: JsonObject): void {
    const { state, instance, logger } = this.parts;
    state?.publish(channel, { ...message, from: instance }).catch((error: unknown) => {
      logger.error({ channel, error: String(error) }, 'other controllers could not be told of a change');
    });
  }

  private forget({ what, name }: ForgetMessage): boolean {
    if (what === 'quota') return this.table.forget(name);
    if (what === 'function') {
      this.table.sawVersion(name, undefined);
      this.setTrials.sawVersion(name, undefined);
      this.curves.sawVersion(name, undefined);
      this.trials.deleted(name);
      this.pairs.forgetFunction(name);
      this.slices.forget(name);
      const hadFaults = this.faults.forget(name);
      return this.profiles.forget(name) || hadFaults;
    }
    const [gpuType = '', mode = ''] = name.split('/');
    const forgotten = [
      this.predictors.deleteNamed(name),
      this.runs.forget(name),
      this.pairs.forgetPlace(name),
      this.slices.forgetFamily({ gpuType, mode: mode as DeviceMode }),
    ];
    this.documents.remove({ kind: 'model', name });
    this.documents.remove({ kind: 'samples', name });
    return forgotten.includes(true);
  }

  /** Resolves when everything learned so far is written, or when that has failed and will be repeated. */
  saved(): Promise<void> {
    return this.documents.flush();
  }

  /** Writes all unsaved changes. */
  async close(): Promise<void> {
    for (const subscription of this.subscriptions) await subscription?.close();
    await this.documents.close();
  }

  /** Functions that take the stored documents and merge them with newer data in memory. */
  private takers(): Record<Exclude<DocumentKind, 'decisions'>, TakeDocument> {
    const { profiles, table } = this;
    const unlessChanged =
      (take: (text: string) => void): TakeDocument =>
      (text, _, isChanged) => {
        if (!isChanged) take(text);
      };
    return {
      profile: (text, _, isChanged) => {
        const profile = readProfile(JSON.parse(text));
        if (isChanged) profiles.merge(profile);
        else profiles.restore(profile);
      },
      samples: (text, _, isChanged) => this.runs.restore(text, isChanged),
      degradations: unlessChanged((text) => this.degradations.restore(text)),
      'pair-samples': (text, _, isChanged) => this.pairs.restoreSamples(text, isChanged),
      'pair-model': unlessChanged((text) => this.pairs.restoreModel(text)),
      slices: unlessChanged((text) => this.slices.restore(JSON.parse(text) as SliceSlowdownsState)),
      faults: (text) => this.faults.restore(text),
      forecast: unlessChanged((text) => this.forecasts.restore(text)),
      set: (text) => this.setTrials.restoreSet(readTriedSet(JSON.parse(text))),
      demand: (text) => this.demands.restore(decodeWantedSet(text)),
      curve: (text) => this.curves.restore(JSON.parse(text)),
      trials: unlessChanged((text) => this.trials.restore(text)),
      model: (text) => void this.predictors.put(decodeModel(text)),
      quota: (text, _, isChanged) => {
        const row = readQuotaRow(JSON.parse(text));
        if (isChanged) table.merge(row);
        else table.restore(row);
      },
    };
  }
}

/** A curve as a list of shares and times. */
const timesOf = ({ slowdowns }: SampleCurve): AtShare[] =>
  shareClasses.flatMap((share, at) => {
    const value = slowdowns[at];
    return value === undefined ? [] : [{ share, value }];
  });

/** The major version of a driver such as `550.54.14`; 0 if it is not known. */
function driverMajor(driver: string | undefined): number {
  const major = Number.parseInt(driver ?? '', 10);
  return Number.isInteger(major) ? major : 0;
}

/** The channel for what an operator has deleted at one controller. */
const forgetChannel = 'gpu-forgotten';

/** The channel for trials of functions. */
const trialsChannel = 'gpu-trials';

/** Names the data to delete: a function, the measurements of a set, or a predictor by `gpuType/mode`. */
interface ForgetMessage {
  what: 'function' | 'quota' | 'model';
  name: string;
}

/** Whether a message of the channel is valid; `from` is a controller's number. */
function isForgetMessage(message: JsonValue): message is JsonObject & ForgetMessage & { from: number } {
  if (!isJsonObject(message) || typeof message.name !== 'string') return false;
  return ['function', 'quota', 'model'].some((what) => message.what === what);
}
