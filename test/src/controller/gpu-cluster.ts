// A dispatcher with its GPU scheduler, agents whose rows the test writes, and a log that survives crashes.
import { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import { openDurable } from '@gpuwhisk/common/bus/durable';
import type { Durable } from '@gpuwhisk/common/bus/durable';
import type { Delivery } from '@gpuwhisk/common/bus/message-bus';
import { configSchema } from '@gpuwhisk/common/config-schema';
import type { Config } from '@gpuwhisk/common/config';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { readActivation } from '@gpuwhisk/common/entities/activation';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { gpuTable } from '@gpuwhisk/common/gpu';
import type { NodeStatus, Resident } from '@gpuwhisk/common/gpu';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { createLogger } from '@gpuwhisk/common/logging';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import { createMetrics } from '@gpuwhisk/common/metrics';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { PolicySetting } from '@gpuwhisk/controller/gpu/scheduler/policy-setting';
import { DesiredState } from '@gpuwhisk/controller/gpu/state/desired-state';
import type { GpuPolicyParts } from '@gpuwhisk/controller/gpu/scheduler/gpu-policy';
import { GpuScheduler } from '@gpuwhisk/controller/gpu/scheduler/gpu-scheduler';
import { GpuTable } from '@gpuwhisk/controller/gpu/state/gpu-table';
import { InFlight } from '@gpuwhisk/controller/entitlement/in-flight';
import { Dispatcher } from '@gpuwhisk/controller/dispatch/dispatcher';
import { QuotaSearches } from '@gpuwhisk/controller/gpu/search/quota-searches';
import type { QuotaSearchesParts } from '@gpuwhisk/controller/gpu/search/quota-searches';
import { PairMeasurements } from '@gpuwhisk/controller/gpu/search/pair-measurements';
import { Profilings } from '@gpuwhisk/controller/gpu/search/profilings';
import { SampleMeasurements, SampleRunner } from '@gpuwhisk/controller/gpu/search/sample-runner';
import { openEmbeddedJobs } from '@gpuwhisk/common/jobs/embedded-jobs';
import { PerformanceData } from '@gpuwhisk/controller/gpu/learning/performance-data';
import type { InvokeOutcome } from '@gpuwhisk/controller/invoke/invoke-service';
import { a100, nodeRow, setNode } from '../api/gpu-nodes.js';
import { SimulatedClock } from '../simulation/simulated-clock.js';
import { SimulatedDisk } from '../simulation/simulated-disk.js';

const logger = createLogger({ level: 'silent' });
const limits = { ...configSchema.parse({}).limits, concurrentInvocations: 10_000 };

/** An activation that reached the node's invoker. */
interface Arrival {
  message: ActivationMessage;
  delivery: Delivery;
}

/** The caller of all invocations. */
export const identity = {
  ...{ subject: 'alice', namespace: { name: 'alice', uuid: 'u' }, authkey: { api_key: 'u:k' } },
  ...{ rights: [], limits: {} },
};

/** An action with annotation `gpu`; by default it needs all available memory. */
export function actionNamed(name: string, gpu: JsonObject = {}): WhiskAction {
  const value: JsonValue = { memoryMiB: 38_000, ...gpu };
  return {
    ...{ namespace: 'alice', name, exec: { kind: 'nodejs:20', code: '', binary: false }, parameters: [] },
    ...{ limits: { timeout: 60_000, memory: 256, logs: 1, concurrency: 1 }, version: '0.0.1', publish: false },
    ...{ annotations: [{ key: 'gpu', value }], updated: 0, revision: '1-x' },
  };
}

/**
 * A cluster of one node, `invoker0`, by default with a device of 40,000 MiB, of which 38,000 are available to
 * functions.
 */
export class GpuCluster {
  readonly clock = new SimulatedClock();
  readonly random = seededRandom(3);
  readonly disk = new SimulatedDisk(this.clock, this.random, 0);
  readonly store = simulatedStore({ clock: this.clock, random: this.random, latencyMs: 0 });
  /** The store of the policy that was set: its calls must not change the random numbers that golden runs draw. */
  private readonly settings = simulatedStore({ clock: this.clock, random: seededRandom(4), latencyMs: 0 });
  /** Activations that have reached the invoker and have not ended, in order. */
  arrivals: Arrival[] = [];
  /** Handles each activation in place of an invoker; absent: the test ends activations itself. */
  onArrival: ((message: ActivationMessage, delivery: Delivery) => void) | undefined;
  /** Samples for searches for shares; absent: no searches. */
  source: QuotaSearchesParts['source'] | undefined;
  /** Called with each decision and its saved view; absent: views are not saved. */
  onDecided: GpuPolicyParts['onDecided'];
  /** The lease of this controller; epoch undefined: another controller holds the lease. */
  readonly lease: { epoch: number | undefined } = { epoch: 5 };
  metrics = createMetrics();
  dispatcher!: Dispatcher;
  scheduler!: GpuScheduler;
  setting!: PolicySetting;
  performanceData!: PerformanceData;
  private durable!: Durable;
  private state = embeddedState(this.clock);
  private version = 0;

  private constructor(
    private readonly options: Config['gpu'],
    private readonly invokerQueue: number,
  ) {}

  /**
   * Starts a cluster, with policy least-loaded unless `options` name another. `invokerQueue`: capacity of the invoker's
   * topic, in messages. `source`: samples for searches for shares.
   */
  static async start(
    options: Partial<Config['gpu']> = {},
    invokerQueue = 1000,
    source?: QuotaSearchesParts['source'],
    onDecided?: GpuPolicyParts['onDecided'],
  ): Promise<GpuCluster> {
    const cluster = new GpuCluster({ ...configSchema.parse({}).gpu, policy: 'least-loaded', ...options }, invokerQueue);
    cluster.source = source;
    cluster.onDecided = onDecided;
    await cluster.clock.runUntil(cluster.open());
    return cluster;
  }

  /** Ends the controller process without a shutdown, and starts the next one on the same disk and store. */
  async crash(): Promise<void> {
    this.clock.dropAll();
    this.disk.crash();
    this.arrivals = [];
    await this.clock.runUntil(this.open());
  }

  private async open(): Promise<void> {
    const { clock, random, store, disk, lease, options } = this;
    const durable = (this.durable = await openDurable({ disk, folder: '/log', clock, random }));
    const { bus } = durable;
    const bounds = { maxPendingMessages: 1000, maxPendingBytes: Infinity };
    await bus.ensureTopic('invoker0', { durable: true, ...bounds, maxPendingMessages: this.invokerQueue });
    await bus.ensureTopic('gpu0', { durable: true, ...bounds, maxPendingMessages: options.maxWaiting });
    await bus.ensureTopic('completed0', { durable: false, ...bounds });
    const state = (this.state = embeddedState(clock));
    const table = new GpuTable(state, clock, logger);
    await table.open();
    const records = new RecordWriter(store, clock, logger);
    const recordLevels = {
      storeBlockingResultLevel: 'STORE_ALWAYS',
      storeNonBlockingResultLevel: 'STORE_ALWAYS',
    } as const;
    this.metrics = createMetrics();
    const { metrics } = this;
    const performanceData = (this.performanceData = await PerformanceData.open({
      store,
      clock,
      random,
      logger,
      metrics,
      instance: 0,
      options,
    }));
    const setting = (this.setting = new PolicySetting({
      ...{ state, clock, logger, lease, options },
      store: this.settings,
    }));
    await setting.open();
    const made = {
      bus,
      setting,
      store,
      records,
      recordLevels,
      clock,
      logger,
      metrics,
      random,
      ...{
        desired: new DesiredState({ state, lease, logger }),
        workloads: { shown: [] },
      },
      table,
      lease,
      performanceData,
      instance: 0,
      options,
      ...(this.onDecided && { onDecided: this.onDecided }),
    };
    this.scheduler = new GpuScheduler(made);
    const inFlight = new InFlight({ state, limits, clock, metrics, logger });
    const chooseInvoker = (): string => 'invoker0';
    this.dispatcher = new Dispatcher({
      ...{ bus, store, clock, random, inFlight, logger, instance: 0, chooseInvoker },
      gpu: this.scheduler,
    });
    await this.dispatcher.open();
    await bus.subscribe('invoker0', 'invoker0', { maxInFlight: 1000 }, (delivery) => {
      const message = delivery.message as unknown as ActivationMessage;
      if (this.onArrival === undefined) this.arrivals.push({ message, delivery });
      else this.onArrival(message, delivery);
    });
    if (this.source === undefined) return;
    const { jobs } = await openEmbeddedJobs({
      ...{ disk, folder: '/jobs', clock, random, leases: state, holder: 'controller0' },
    });
    const { search } = options;
    const { source } = this;
    const { maxSampleMs } = search;
    const runner = new SampleRunner({ invoker: this.dispatcher, clock, maxSampleMs });
    const measures = new SampleMeasurements({ performanceData, runner, clock, maxSampleMs });
    const pairs = new PairMeasurements({ performanceData, source, measures, clock, logger, options: search });
    performanceData.pairMeasurements = () => pairs.view();
    const profilings = new Profilings({
      ...{ performanceData, source, measures, gpuTable: table, clock, logger, maxSampleMs },
    });
    const parts = { performanceData, jobs, scheduler: this.scheduler, source, measures, pairs, profilings };
    new QuotaSearches({
      ...parts,
      ...{ clock, random, logger },
      options: search,
    }).open();
  }

  /** Sends an invoker's completion of a run, with the record if a caller waits for it. */
  acknowledge({ transid, activationId }: ActivationMessage, record?: WhiskActivation, isFailed = false): void {
    const instance = {
      ...{ instance: 0, userMemory: '1 MB', instanceType: 'invoker', tags: [], dedicatedNamespaces: [] },
    };
    const told = {
      transid: [...transid] as JsonValue[],
      activationId,
      isSystemError: false,
      ...(isFailed && { isFailed }),
      instance,
    };
    const response = record === undefined ? {} : { response: record as unknown as JsonObject };
    this.durable.bus.send('completed0', { ...told, ...response } as JsonObject);
  }

  /** Number of policy faults so far. */
  async faults(): Promise<number> {
    const { values } = await this.metrics.registry.getSingleMetric('gpuwhisk_gpu_policy_faults_total')!.get();
    return values.reduce((sum, { value }) => sum + value, 0);
  }

  /** Action names of activations that have reached the invoker and have not ended, in order. */
  get running(): string[] {
    return this.arrivals.map(({ message }) => message.action.name);
  }

  /** Writes the agent's row; default: one device with nothing on it. */
  async tell(row: Partial<NodeStatus> = {}): Promise<void> {
    await this.setRow(row);
    await this.clock.runFor(1);
  }

  /** Writes an earlier row of the agent again, as a repeated or late message. */
  async tellAgain(row: NodeStatus): Promise<void> {
    await this.state.setRow(gpuTable, row.invoker, row as unknown as JsonValue);
    await this.clock.runFor(1);
  }

  /** Like tell, without advancing the clock. */
  setRow(row: Partial<NodeStatus>): Promise<void> {
    const device = a100('GPU-0', { memoryMiB: 40_000 });
    return setNode(this.state, { ...nodeRow([device]), ...row, version: ++this.version, at: this.clock.now() });
  }

  /** Writes the agent's row with the first `count` arrived activations as running, each in its own container. */
  tellRunning(count = Infinity): Promise<void> {
    return this.tell({ residents: this.residents(count) });
  }

  /** The first `count` arrived activations as running, each in its own container. */
  residents(count = Infinity): Resident[] {
    return this.arrivals.slice(0, count).map(({ message: { gpu, gpuNeed, action, user, activationId } }): Resident => {
      if (gpu === undefined || gpuNeed === undefined) throw new Error('it was not placed');
      return {
        ...{ container: `of ${action.name}`, action: `/${action.path}/${action.name}`, device: gpu.devices[0] ?? '' },
        ...{ share: gpu.share, memoryMiB: gpu.share.memoryMiB, namespace: user.namespace.name },
        ...{ isolation: gpuNeed.isolation, activations: [activationId] },
        ...(gpuNeed.batch > 1 && { subject: user.subject }),
      };
    });
  }

  /** Invokes an action with annotation `gpu`. */
  invoke(name: string, gpu: JsonObject = {}, blocking = false): Promise<InvokeOutcome> {
    const action = actionNamed(name, gpu);
    return this.dispatcher.invoke({ identity, action, payload: {}, blocking, waitMs: 60_000, transactionId: 'tid' });
  }

  /** Invokes an action and expects a 202. */
  async accept(name: string, gpu: JsonObject = {}): Promise<string> {
    const outcome = await this.clock.runUntil(this.invoke(name, gpu));
    if (outcome.type !== 'accepted') throw new Error('it has ended');
    return outcome.activationId;
  }

  /** Ends the run of an action without storing its record. */
  async finish(name: string, isFailed = false): Promise<void> {
    const { message, delivery } = this.taken(name);
    delivery.done();
    this.acknowledge(message, undefined, isFailed);
    await this.clock.runFor(1);
  }

  /**
   * Adds a message to the topic of waiting tasks, as a crash may leave it there after an invoker got the same
   * activation.
   */
  async leave(activation: ActivationMessage, restarted = false): Promise<void> {
    const unplaced = { activation: activation as unknown as JsonObject, ...(restarted && { restarted }) };
    await this.clock.runUntil(this.durable.bus.send('gpu0', unplaced).synced());
    await this.clock.runFor(1);
  }

  /** Refuses an arrived activation as an agent does: its message returns to the topic of waiting tasks. */
  async giveBack(name: string, reason: string): Promise<void> {
    const { message, delivery } = this.taken(name);
    const unplaced = { activation: message as unknown as JsonObject, refused: reason };
    await this.clock.runUntil(this.durable.bus.send('gpu0', unplaced).synced());
    delivery.done();
    await this.clock.runFor(1);
  }

  private taken(name: string): Arrival {
    const at = this.running.indexOf(name);
    const [taken] = at < 0 ? [] : this.arrivals.splice(at, 1);
    if (taken === undefined) throw new Error(`${name} has not arrived`);
    return taken;
  }

  /** The record of an activation, or undefined if there is none. */
  async record(activationId: string): Promise<WhiskActivation | undefined> {
    await this.clock.runFor(100);
    try {
      return readActivation(await this.clock.runUntil(this.store.get('activations', `alice/${activationId}`)));
    } catch (error) {
      if (error instanceof NoDocumentError) return undefined;
      throw error;
    }
  }
}
