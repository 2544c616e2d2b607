import type { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import type { MessageBus } from '@gpuwhisk/common/bus/message-bus';
import type { StartJournal } from '@gpuwhisk/common/bus/durable';
import type { Config } from '@gpuwhisk/common/config';
import type { LogRing, Logger } from '@gpuwhisk/common/logging';
import type { Metrics } from '@gpuwhisk/common/metrics';
import type { Prewarmer } from '@gpuwhisk/common/prewarmer';
import type { RuntimeManifest } from '@gpuwhisk/common/runtimes';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import type { Tracer } from '@gpuwhisk/common/tracing';
import type { UserEvents } from '@gpuwhisk/common/user-events';
import type { ActionCache, ActionWriter } from '../actions/action-store.js';
import type { LargeCodes } from '../http/action-answer.js';
import type { ActionResolver } from '../actions/action-resolver.js';
import type { Site } from '../http/static-files.js';
import type { Identities } from '../authentication/authentication.js';
import type { ComposingInvoker } from '../compose/composing-invoker.js';
import type { Throttles } from '../entitlement/throttles.js';
import type { LiveStreams } from '../live/live-streams.js';
import type { RequestTraces } from '../http/request-traces.js';
import type { LogStreams } from '../live/log-streams.js';
import type { InvokeService } from '../invoke/invoke-service.js';
import type { PackageCache, PackageWriter } from '../packages/package-store.js';
import type { RuleWriter } from '../triggers/rule-writer.js';
import type { TriggerWriter } from '../triggers/trigger-writer.js';
import type { GpuScheduler } from '../gpu/scheduler/gpu-scheduler.js';
import type { CostLedger } from '../gpu/cost/cost-ledger.js';
import type { PerformanceViews } from './gpu-performance-views.js';
import type { PerformanceData } from '../gpu/learning/performance-data.js';
import type { Procurement } from '../gpu/procure/procurement.js';
import type { DeviceHistory } from '../gpu/state/device-history.js';
import type { GpuTable } from '../gpu/state/gpu-table.js';
import type { DesiredState, DeviceCordons } from '../gpu/state/desired-state.js';
import type { GpuWorkloads } from '../gpu/state/gpu-workloads.js';
import type { PolicySetting } from '../gpu/scheduler/policy-setting.js';
import type { TrainingJobs } from '../gpu/training/training-jobs.js';
import type { ConsoleAddress } from '../http/moved-sites.js';
import type { ActivityWindow } from '../cluster/activity-window.js';
import type { EntityChanges } from '../cluster/entity-changes.js';
import type { Retirements } from '../cluster/retirements.js';

/** Dependencies that the API's resources share; each resource takes a Pick of them. */
export interface ApiContext extends ControllerDependencies {
  /** Runs actions, sequences and compositions. */
  invoker: ComposingInvoker;
  /** Runs actions that have code. */
  primitive: InvokeService;
  actions: ActionCache;
  actionResolver: ActionResolver;
  largeCodes: LargeCodes;
  actionWriter: ActionWriter;
  packages: PackageCache;
  packageWriter: PackageWriter;
  identities: Identities;
  /** Asked before every invocation and every fire of a trigger. */
  throttles: Throttles;
  triggerWriter: TriggerWriter;
  ruleWriter: RuleWriter;
  trainingJobs: TrainingJobs;
  liveStreams: Pick<LiveStreams, 'open'>;
  /** Spans of requests that invoke something; absent: nothing is traced. */
  requestTraces?: RequestTraces;
  /** What the cluster has run in the last minutes. */
  activity: Pick<ActivityWindow, 'recent' | 'runsOn'>;
  /** What was on each device in the last minutes. */
  deviceHistory: Pick<DeviceHistory, 'of'>;
  logStreams: Pick<LogStreams, 'open'>;
  /** The time before which records must have ended to be expired now, ms since the epoch; undefined: none expires. */
  expiredBefore: () => number | undefined;
}

/** Dependencies of a controller. */
export interface ControllerDependencies {
  /** Sites of files that are served beside the API; absent: none. */
  sites?: readonly Site[];
  /** Reads a JSON schema for editors by its name; absent: none is served. */
  readSchema?: (name: string) => Promise<Buffer>;
  store: ArtifactStore;
  clock: Clock;
  random: Random;
  config: Config;
  /** The kinds that are supported at the time of the call. */
  manifest: () => RuntimeManifest;
  logger: Logger;
  metrics: Metrics;
  /** Runs actions that have code. */
  invoker: InvokeService;
  /** The state that the cluster's controllers share. */
  state: ClusterState;
  /** Changes of entities at this and at other controllers; absent on a single controller. */
  changes?: Pick<EntityChanges, 'announce' | 'onElsewhere'>;
  /** The bus that keeps running sequences and compositions over a restart of the controller. */
  bus: MessageBus;
  marks: Pick<StartJournal, 'mark' | 'startedBefore'>;
  /** The cluster's GPUs. */
  gpuTable: GpuTable;
  /** Registered processes on the GPUs that are no functions. */
  gpuWorkloads: GpuWorkloads;
  gpuCordons: DeviceCordons;
  gpuDesired: Pick<DesiredState, 'retire' | 'reshare' | 'cut' | 'isRetiring'>;
  /** The GPU queue of this controller, and its decisions. */
  gpuScheduler: Pick<
    GpuScheduler,
    | 'queued'
    | 'decisions'
    | 'instances'
    | 'epoch'
    | 'trialSince'
    | 'savedView'
    | 'isQueued'
    | 'cancel'
    | 'geometry'
    | 'triedSets'
  >;
  /** The policy in force, which operators may change. */
  policySetting: Pick<PolicySetting, 'choice' | 'configured' | 'set' | 'changes' | 'problem' | 'change'>;
  /** Performance data of functions on GPUs. */
  performanceData: Pick<PerformanceData, 'shareCounts' | 'forgetFunction' | 'forgetQuota' | 'forgetModel'> & {
    forecasts: Pick<PerformanceData['forecasts'], 'views'>;
    trials: Pick<PerformanceData['trials'], 'written' | 'deleted' | 'want' | 'cancel'>;
  };
  performanceViews: Pick<PerformanceViews, 'functions' | 'quotas' | 'models' | 'degradations' | 'trialsOf'>;
  /** Costs of nodes by function. */
  costLedger: Pick<CostLedger, 'between'>;
  /** Rented machines; absent without a provider. */
  procurement?: Pick<Procurement, 'list' | 'wantedNodes' | 'setWanted'>;
  /** This controller's number. */
  instance: number;
  /** Absent: nothing is traced. */
  tracer?: Tracer;
  /** Absent: no events of activations and limits are sent. */
  userEvents?: UserEvents;
  /** Stores the records of sequences, compositions and fires, which the controller itself carries out. */
  records: RecordWriter;
  /** The last lines of the log. */
  logRing?: LogRing;
  /** Names of invokers and their states: `{"invoker0/0":"up"}`. */
  invokersHealth: () => Record<string, string>;
  /** Names of the present controllers, `controller0`; absent: only this one is there. */
  controllers?: () => ReadonlySet<string>;
  /** Retires processes that will not come back; absent without a cluster. */
  retirements?: Pick<Retirements, 'retire'>;
  /** The stem cells of the cluster. */
  prewarmers: () => readonly Prewarmer[];
  /** External URL of the API gateway, `http://host:port`; absent or undefined without a gateway. */
  gatewayUrl?: () => string | undefined;
  /** Where the console is served; absent or undefined: nowhere. */
  consoleAddress?: () => ConsoleAddress | undefined;
  /** `date` starts with the year, as clients expect. */
  build: { date: string; number: string };
}
