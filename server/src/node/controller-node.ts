import { ActivityReporter } from '@gpuwhisk/common/activations/activity';
import { RecordExpiry } from '@gpuwhisk/common/activations/record-expiry';
import { RecordWriter, showExpiry, showRecords } from '@gpuwhisk/common/activations/record-writer';
import { showStored } from '@gpuwhisk/common/stored-metrics';
import type { TopicOptions } from '@gpuwhisk/common/bus/message-bus';
import type { Config } from '@gpuwhisk/common/config';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import { isApiError } from '@gpuwhisk/common/errors';
import { showModules, showNodes } from '@gpuwhisk/common/gpu-metrics';
import { completedTopic, completedTopicOptions, unplacedTopic } from '@gpuwhisk/common/messages';
import type { Prewarmer } from '@gpuwhisk/common/prewarmer';
import type { RuntimeManifest } from '@gpuwhisk/common/runtimes';
import { openUserEvents } from '@gpuwhisk/common/user-events';
import { readStoredAction } from '@gpuwhisk/controller/actions/action-store';
import type { EntityChanges } from '@gpuwhisk/controller/cluster/entity-changes';
import { gpuLeaseName, LeaseKeeper, whileLeader } from '@gpuwhisk/controller/cluster/lease';
import { ModuleAgreement } from '@gpuwhisk/controller/cluster/module-agreement';
import { Retirements } from '@gpuwhisk/controller/cluster/retirements';
import type { RetirementDependencies } from '@gpuwhisk/controller/cluster/retirements';
import { createController } from '@gpuwhisk/controller/create-controller';
import type { Controller } from '@gpuwhisk/controller/create-controller';
import { EarlierActivations, InFlight } from '@gpuwhisk/controller/entitlement/in-flight';
import { storeManagementActions } from '@gpuwhisk/controller/gateway/management-handler';
import { Dispatcher } from '@gpuwhisk/controller/dispatch/dispatcher';
import type { DispatcherDependencies } from '@gpuwhisk/controller/dispatch/dispatcher';
import { GpuFence, GpuHandover } from '@gpuwhisk/controller/gpu/handover/gpu-handover';
import { PerformanceData } from '@gpuwhisk/controller/gpu/learning/performance-data';
import { ForecastTraining } from '@gpuwhisk/controller/gpu/learning/request-forecasts';
import { PerformanceViews } from '@gpuwhisk/controller/api/gpu-performance-views';
import { PairTraining } from '@gpuwhisk/controller/gpu/learning/pair-training';
import { Retraining } from '@gpuwhisk/controller/gpu/learning/retraining';
import { checkPolicy } from '@gpuwhisk/controller/gpu/scheduler/check-policy';
import { clusterFacts } from '@gpuwhisk/controller/api/cluster-facts';
import { GpuScheduler } from '@gpuwhisk/controller/gpu/scheduler/gpu-scheduler';
import { QuotaSearches } from '@gpuwhisk/controller/gpu/search/quota-searches';
import { PairMeasurements } from '@gpuwhisk/controller/gpu/search/pair-measurements';
import { Profilings } from '@gpuwhisk/controller/gpu/search/profilings';
import { SampleMeasurements, SampleRunner, SampleSource } from '@gpuwhisk/controller/gpu/search/sample-runner';
import { CostLedger } from '@gpuwhisk/controller/gpu/cost/cost-ledger';
import type { Machines } from '@gpuwhisk/controller/gpu/procure/emulated-provider';
import type { Procurement } from '@gpuwhisk/controller/gpu/procure/procurement';
import { NamespaceTurns } from '@gpuwhisk/controller/gpu/scheduler/namespace-turns';
import { DesiredState, DeviceCordons } from '@gpuwhisk/controller/gpu/state/desired-state';
import { GpuTable } from '@gpuwhisk/controller/gpu/state/gpu-table';
import { GpuWorkloads } from '@gpuwhisk/controller/gpu/state/gpu-workloads';
import { PolicySetting } from '@gpuwhisk/controller/gpu/scheduler/policy-setting';
import { inertLine, inertParts } from '@gpuwhisk/gpu/policies/inert-parts';
import { compositionOf } from '@gpuwhisk/gpu/policies/make-policy';
import { policyModules } from '@gpuwhisk/gpu/policies/policy-modules';
import { queueLimits } from '../engines/engines.js';
import type { Engines } from '../engines/engines.js';
import { readBuildInfo } from '../process/build-info.js';
import { Opened } from '../process/opened.js';
import { listen } from './listen.js';
import type { Servers } from './listen.js';
import { readSchema } from './schema-files.js';
import { openProcurement, retireInvoker } from './open-procurement.js';
import { sites } from './sites.js';

/** Dependencies of a controller's node. */
interface ControllerNodeOptions extends Engines {
  /** The controller's number. */
  instance: number;
  /** The kinds that are served at present. */
  manifest: () => RuntimeManifest;
  chooseInvoker: DispatcherDependencies['chooseInvoker'];
  onCompleted?: NonNullable<DispatcherDependencies['onCompleted']>;
  /** Changes of entities at other controllers; absent if there are no others. */
  changes?: EntityChanges;
  /** The other members of the cluster; absent in standalone. */
  cluster?: Pick<RetirementDependencies, 'silenceMs' | 'controllers' | 'usableInvokers'>;
  /** Starts machines of an emulated cloud; absent in standalone. */
  machines?: Machines;
  /** Names of invokers and their states. */
  invokersHealth: () => Record<string, string>;
  /** Containers that are ready for a future action, as far as this controller knows. */
  prewarmers: () => readonly Prewarmer[];
}

/** A controller. */
export interface ControllerNode {
  readonly controller: Controller;
  /** A line for each part of the GPU policy without effect on the cluster as it is, with what mends it. */
  inert(): string[];
  /** Listens for the API, the gateway and the console. Throws ConfigError, and the system's error (EADDRINUSE). */
  listen(): Promise<Servers>;
  /** Continues sequences and compositions that the previous process left unfinished. */
  start(): Promise<void>;
  /** Lets sequences and compositions end for up to `drainMs`; callers that wait for results are answered by `close`. */
  drain(drainMs: number): Promise<void>;
  /** Answers all waiting callers, and ends the remaining work. */
  close(): Promise<void>;
}

/** Opens a controller that does not listen yet. Rejects with ConfigError for an unknown policy. */
export function openControllerNode(options: ControllerNodeOptions): Promise<ControllerNode> {
  return Opened.during((opened) => openNode(options, opened));
}

/** Short times, so that another controller decides about GPUs soon after the leader was lost. */
const sharedLease = { ttlMs: 2000, renewMs: 500 };

/** A controller that is alone decides however busy it is. */
const ownLease = { ttlMs: Infinity, renewMs: 3000 };

const hourMs = 3_600_000;

/** Options of the topic of activations that wait for a GPU. */
function gpuTopicOptions(config: Config): TopicOptions {
  return { ...queueLimits(config), maxPendingMessages: config.gpu.maxWaiting };
}

async function ensureTopics({ bus, config, instance }: ControllerNodeOptions): Promise<void> {
  const limits = queueLimits(config);
  await Promise.all([
    bus.ensureTopic(`compositions${instance}`, limits),
    bus.ensureTopic(unplacedTopic(instance), gpuTopicOptions(config)),
    bus.ensureTopic(completedTopic(instance), completedTopicOptions),
  ]);
}

async function openNode(options: ControllerNodeOptions, opened: Opened): Promise<ControllerNode> {
  const { config, instance, bus, store, state, clock, random, logger, metrics, jobs } = options;
  checkPolicy(config.gpu);
  await ensureTopics(options);
  const records = new RecordWriter(store, clock, logger, { maxPendingBytes: config.maxUnstoredBytes });
  showRecords(metrics.registry, 'controller', records);
  showStored(metrics.registry, store);
  opened.onClose(() => records.close());
  const gpu = await openGpuScheduling(options, records, opened);
  const { registry } = metrics;
  const userEvents = config.userEvents
    ? await openUserEvents({ bus, clock, registry, source: nameOf(options) })
    : undefined;
  const told = userEvents ? { userEvents } : {};
  const inFlight = new InFlight({ state, instance, limits: config.limits, clock, metrics, logger, ...told });
  const dispatcher = new Dispatcher({
    bus,
    store,
    clock,
    random,
    logger,
    metrics,
    instance,
    inFlight,
    chooseInvoker: options.chooseInvoker,
    ...(options.onCompleted && { onCompleted: options.onCompleted }),
    ...(options.tracer && { tracer: options.tracer }),
    gpu: gpu.gpuScheduler,
    maxGpuShare: config.limits.maxGpuShare,
    sharedPackagesExecuteOnly: config.sharedPackagesExecuteOnly,
  });
  await dispatcher.open();
  opened.onClose(() => dispatcher.close());
  const earlier = new EarlierActivations({ inFlight, store, clock, logger });
  await earlier.open();
  opened.onClose(() => earlier.close());
  // Jobs close before the services that they work on.
  opened.onClose(() => jobs?.close());
  // Set once the ports are known.
  let servers: Servers | undefined;
  const retirements = options.cluster && openRetirements(options, options.cluster, { records, inFlight });
  opened.onClose(() => retirements?.close());
  if (retirements !== undefined) gpu.retire.by = retireInvoker(store, retirements);
  const controller = createController({
    ...options,
    ...told,
    ...(retirements && { retirements }),
    ...(options.cluster && { controllers: options.cluster.controllers }),
    ...gpu,
    records,
    invoker: dispatcher,
    gatewayUrl: () => servers?.gatewayUrl,
    consoleAddress: () => servers?.console,
    sites,
    readSchema,
    build: readBuildInfo(),
  });
  if (config.gpu.search.enabled) openQuotaSearches(options, gpu, controller, dispatcher, opened);
  if (config.recordTtlHours > 0) openRecordExpiry(options, opened);
  return {
    controller,
    inert: () =>
      inertParts(compositionOf(gpu.policySetting.choice), clusterFacts({ ...options, ...gpu })).map(inertLine),
    async listen() {
      return (servers = await listen(config, controller));
    },
    async start() {
      if (servers?.gatewayUrl !== undefined) {
        const [kind, memoryMiB] = ['nodejs:default', config.limits.minMemoryMiB];
        await storeManagementActions(store, clock, { kind, memoryMiB });
      }
      await controller.composing.open();
      controller.trainingJobs.open();
      gpu.costLedger.open((invoker) => gpu.procurement?.priceOf(invoker));
      gpu.procurement?.open(() => gpu.gpuScheduler.procure());
    },
    async drain(drainMs) {
      controller.liveStreams.close();
      await controller.trainingJobs.close();
      // Running compositions have further components to run, which need the invoker.
      await controller.composing.close(drainMs);
      await gpu.gpuScheduler.close();
    },
    close: () => opened.close(),
  };
}

const nameOf = ({ instance }: ControllerNodeOptions): string => `controller${instance}`;

/** The GPU scheduler of a controller, and the state that it and the API read. */
interface GpuScheduling {
  gpuTable: GpuTable;
  gpuWorkloads: GpuWorkloads;
  gpuCordons: DeviceCordons;
  gpuDesired: DesiredState;
  gpuScheduler: GpuScheduler;
  policySetting: PolicySetting;
  performanceData: PerformanceData;
  performanceViews: PerformanceViews;
  costLedger: CostLedger;
  /** Absent without a provider. */
  procurement?: Procurement;
  /** Settles what invokers of rented machines have left; set once retirements are open. */
  retire: { by: (invoker: string) => Promise<boolean> };
}

async function openGpuScheduling(
  options: ControllerNodeOptions,
  records: RecordWriter,
  opened: Opened,
): Promise<GpuScheduling> {
  const { config, instance, bus, store, state, clock, random, logger, metrics, jobs } = options;
  const gpuTable = new GpuTable(state, clock, logger);
  showNodes(metrics.registry, () => gpuTable.unreadNodes);
  await gpuTable.open();
  opened.onClose(() => gpuTable.close());
  const gpuWorkloads = new GpuWorkloads({ store, state, table: gpuTable, clock, random, logger });
  await gpuWorkloads.open();
  opened.onClose(() => gpuWorkloads.close());
  const gpuCordons = new DeviceCordons(store, state, clock);
  await gpuCordons.open();
  const agreement = options.changes && (await openAgreement(options, opened));
  showModules(metrics.registry, {
    hashes: policyModules().map(({ sha256 }) => sha256),
    differ: () => agreement?.differs === true,
  });
  const gpuLease = new LeaseKeeper(
    state,
    clock,
    logger,
    gpuLeaseName,
    nameOf(options),
    options.changes ? sharedLease : ownLease,
    agreement,
  );
  await gpuLease.open();
  opened.onClose(() => gpuLease.close());
  const gpuDesired = new DesiredState({ state, lease: gpuLease, logger });
  gpuTable.onRow((node) => gpuDesired.observe(node));
  // While this controller holds the lease, no other controller adds to the documents that it reads.
  const openedEpoch = gpuLease.epoch;
  const performanceData = await PerformanceData.open({
    store,
    clock,
    random,
    logger,
    metrics,
    instance,
    options: config.gpu,
    lease: gpuLease,
    ...(options.changes && { state }),
  });
  opened.onClose(() => performanceData.close());
  if (jobs !== undefined) {
    const { forecasts } = performanceData;
    const trainings = config.gpu.learning.retrain
      ? [
          new Retraining({ performanceData, jobs, logger }),
          new ForecastTraining({ forecasts, jobs, clock, logger }),
          new PairTraining({ performanceData, jobs, clock, logger }),
        ]
      : [];
    whileLeader(gpuLease, logger, {
      begin: async () => {
        if (gpuLease.epoch !== openedEpoch) await performanceData.takeOver();
        for (const one of trainings) one.open();
      },
      end: async () => {
        for (const one of trainings) await one.close();
      },
    });
  }
  const handover =
    options.changes &&
    new GpuHandover({
      bus,
      state,
      logger,
      instance,
      lease: gpuLease,
      fence: new GpuFence({ state, table: gpuTable, clock, logger, lease: gpuLease }),
      topicOptions: gpuTopicOptions(config),
    });
  const costLedger = new CostLedger({ store, state, lease: gpuLease, clock, logger, metrics });
  opened.onClose(() => costLedger.close());
  const retire: GpuScheduling['retire'] = { by: () => Promise.resolve(false) };
  const procurement = openProcurement({
    ...options,
    table: gpuTable,
    lease: gpuLease,
    workloads: gpuWorkloads,
    retire: (invoker) => retire.by(invoker),
    booted: (...booted) => costLedger.booted(...booted),
  });
  opened.onClose(() => procurement?.close());
  const activity = new ActivityReporter({ state, clock, logger });
  opened.onClose(() => activity.close());
  const policySetting = new PolicySetting({ store, state, clock, logger, lease: gpuLease, options: config.gpu });
  await policySetting.open();
  opened.onClose(() => policySetting.close());
  const gpuScheduler = new GpuScheduler({
    setting: policySetting,
    activity,
    bus,
    clock,
    random,
    store,
    records,
    logger,
    metrics,
    performanceData,
    instance,
    desired: gpuDesired,
    workloads: gpuWorkloads,
    table: gpuTable,
    lease: gpuLease,
    recordLevels: config,
    options: config.gpu,
    ...(handover && { handover }),
    ...(procurement && { procurer: procurement }),
    ...(options.tracer && { tracer: options.tracer }),
  });
  const namespaceTurns = new NamespaceTurns({ scheduler: gpuScheduler, desired: gpuDesired, clock, logger });
  namespaceTurns.open();
  opened.onClose(() => namespaceTurns.close());
  const performanceViews = new PerformanceViews(performanceData);
  const scheduling = { gpuTable, gpuWorkloads, gpuCordons, gpuDesired, gpuScheduler, policySetting, performanceData };
  return { ...scheduling, performanceViews, costLedger, retire, ...(procurement && { procurement }) };
}

/** Has only controllers lead whose policy modules are those that the others have. */
async function openAgreement(options: ControllerNodeOptions, opened: Opened): Promise<ModuleAgreement> {
  const { state, clock, logger } = options;
  const hashes = policyModules().map(({ sha256 }) => sha256);
  const agreement = new ModuleAgreement({
    ...{ state, clock, logger, name: nameOf(options) },
    modules: hashes.sort().join(' '),
  });
  await agreement.open();
  opened.onClose(() => agreement.close());
  return agreement;
}

/** Measures sets of functions in the background to find shares for them, and pairs for the models of degradation. */
function openQuotaSearches(
  { config, jobs, clock, random, logger }: ControllerNodeOptions,
  { performanceData, gpuScheduler, gpuTable }: GpuScheduling,
  { identities, resolver }: Controller,
  dispatcher: Dispatcher,
  opened: Opened,
): void {
  if (jobs === undefined) return;
  const { search: options } = config.gpu;
  const { maxSampleMs } = options;
  const source = new SampleSource(identities, resolver);
  const runner = new SampleRunner({ invoker: dispatcher, clock, maxSampleMs });
  const measures = new SampleMeasurements({ performanceData, runner, clock, maxSampleMs });
  const pairs = new PairMeasurements({ performanceData, source, measures, clock, logger, options });
  performanceData.pairMeasurements = () => pairs.view();
  const profilings = new Profilings({ performanceData, source, measures, gpuTable, clock, logger, maxSampleMs });
  const searches = new QuotaSearches({
    performanceData,
    jobs,
    scheduler: gpuScheduler,
    clock,
    random,
    logger,
    options,
    source,
    measures,
    pairs,
    profilings,
  });
  searches.open();
  opened.onClose(() => searches.close());
}

/** Removes records of activations that are older than `recordTtlHours`. */
function openRecordExpiry(options: ControllerNodeOptions, opened: Opened): void {
  const { config, store, clock, logger, state, metrics } = options;
  const expiry = new RecordExpiry({
    store,
    clock,
    logger,
    state,
    holder: nameOf(options),
    times: { ttlMs: config.recordTtlHours * hourMs, firstMs: hourMs / 6, everyMs: hourMs / 60 },
  });
  showExpiry(metrics.registry, expiry);
  expiry.open();
  opened.onClose(() => expiry.close());
}

function openRetirements(
  { bus, store, state, clock, logger, config, instance }: ControllerNodeOptions,
  cluster: NonNullable<ControllerNodeOptions['cluster']>,
  parts: Pick<RetirementDependencies, 'records' | 'inFlight'>,
): Retirements {
  return new Retirements({
    bus,
    store,
    state,
    clock,
    logger,
    instance,
    recordLevels: config,
    topicOptions: queueLimits(config),
    ...cluster,
    ...parts,
    isIdempotent: async ({ action: { path, name }, revision }) => {
      try {
        const action = await readStoredAction(store, path, name);
        return action.revision === revision && parameterValue(action.annotations, 'idempotent') === true;
      } catch (error) {
        // The action does not exist, or the entity is not an action any more.
        if (isApiError(error)) return false;
        throw error;
      }
    },
  });
}
