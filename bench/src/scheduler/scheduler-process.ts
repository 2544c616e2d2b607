// A process with a GPU scheduler on embedded state and simulated agents. Prints its processor use and memory.
import { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import type { MessageBus } from '@gpuwhisk/common/bus/message-bus';
import { configSchema } from '@gpuwhisk/common/config-schema';
import { gpuTable } from '@gpuwhisk/common/gpu';
import type { Device, DeviceStatus, GpuNeed, NodeStatus, Resident } from '@gpuwhisk/common/gpu';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { createLogger } from '@gpuwhisk/common/logging';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import { createMetrics } from '@gpuwhisk/common/metrics';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { PerformanceData } from '@gpuwhisk/controller/gpu/learning/performance-data';
import { DesiredState } from '@gpuwhisk/controller/gpu/state/desired-state';
import { GpuScheduler } from '@gpuwhisk/controller/gpu/scheduler/gpu-scheduler';
import { GpuTable } from '@gpuwhisk/controller/gpu/state/gpu-table';

/** The cluster and its load, as JSON in the first argument. */
export interface SchedulerLoad {
  nodes: number;
  devicesPerNode: number;
  instancesPerDevice: number;
  placementsPerSecond: number;
  seconds: number;
  policy: string;
  /** Whether the scheduler receives the rows. Without them, the process does only the work of its simulated agents. */
  hears: boolean;
}

/** Printed by the process, as JSON. */
export interface SchedulerUse {
  /** Processor time over wall time. */
  cores: number;
  rssMiB: number;
  placed: number;
}

const functionCount = 200;
const runMs = 400;
const rowMs = 1000;

const functionName = (number: number): string => `f${number % functionCount}`;
const memoryMiB = (number: number): number => 6000 + (number % 7) * 1500;

/** A node whose instances idle until an activation arrives, and its row each second. */
class SimulatedAgent {
  readonly residents: Resident[];
  private readonly devices: Device[];
  private readonly status: DeviceStatus[];
  private version = 0;

  constructor(
    readonly invoker: string,
    first: number,
    load: SchedulerLoad,
  ) {
    const uuids = Array.from({ length: load.devicesPerNode }, (_, at) => `GPU-${invoker}-${at}`);
    this.devices = uuids.map((uuid, index) => ({
      uuid,
      index,
      name: 'NVIDIA A100-SXM4-80GB',
      type: 'a100-80',
      smCount: 108,
      memoryMiB: 81_920,
      mode: 'mps',
      slices: [],
      simulated: true,
    }));
    this.status = uuids.map((uuid) => ({
      uuid,
      at: 0,
      usedMemoryMiB: 30_000,
      utilisation: 0.5,
      smActivity: 0.3,
      dramActivity: 0.2,
      temperatureC: 60,
      powerW: 200,
      processes: [],
      health: { state: 'healthy', reasons: [] },
    }));
    this.residents = uuids.flatMap((device, at) =>
      Array.from({ length: load.instancesPerDevice }, (_, one): Resident => {
        const number = first + at * load.instancesPerDevice + one;
        const share = { shareClass: 20, smRequest: 0.2, smLimit: 0.2, memoryMiB: memoryMiB(number) } as const;
        return {
          container: `${device}-${one}`,
          action: `/n/${functionName(number)}`,
          namespace: 'n',
          device,
          share,
          isolation: 'shared',
          memoryMiB: share.memoryMiB,
          activations: [],
          loadMs: 300,
        };
      }),
    );
  }

  row(): NodeStatus {
    this.version += 1;
    const { invoker, version, devices, residents, status } = this;
    return { invoker, version, at: Date.now(), devices, status, residents };
  }

  /** Runs an activation in an idle instance of its function, or in a new instance. */
  take({ activationId, action, gpu }: ActivationMessage, ended: () => void): void {
    const name = `/${action.path}/${action.name}`;
    const device = gpu?.devices[0];
    if (gpu === undefined || device === undefined) throw new Error('the activation has no device');
    const gone = new Set(gpu.reclaim ?? []);
    for (const [at, { container }] of [...this.residents.entries()].reverse()) {
      if (gone.has(container)) this.residents.splice(at, 1);
    }
    const isFree = (one: Resident): boolean =>
      one.device === device && one.action === name && one.activations.length === 0;
    let one = this.residents.find(isFree);
    if (one === undefined) {
      const share = gpu.share;
      one = {
        container: activationId,
        action: name,
        namespace: 'n',
        device,
        share,
        isolation: 'shared',
        memoryMiB: share.memoryMiB,
        activations: [],
        loadMs: 300,
      };
      this.residents.push(one);
    }
    const runs = one;
    runs.activations = [activationId];
    setTimeout(() => {
      runs.activations = [];
      ended();
    }, runMs);
  }
}

async function measure(load: SchedulerLoad): Promise<SchedulerUse> {
  const clock = systemClock;
  const state = embeddedState(clock);
  const logger = createLogger({ level: 'error' });
  const metrics = createMetrics();
  const random = seededRandom(1);
  const store = simulatedStore({ clock, random, latencyMs: 0 });
  const options = { ...configSchema.parse({}).gpu, policy: load.policy };
  const table = new GpuTable(state, clock, logger);
  if (load.hears) await table.open();
  const performanceData = await PerformanceData.open({ store, clock, random, logger, metrics, instance: 0, options });
  const agents = new Map<string, SimulatedAgent>();
  let placed = 0;
  let unplaced: ((message: JsonObject) => void) | undefined;
  const receipt = { synced: () => Promise.resolve() };
  const bus: MessageBus = {
    ensureTopic: () => Promise.resolve(),
    send(topic, message) {
      const agent = agents.get(topic);
      if (agent === undefined) setImmediate(() => unplaced?.(message));
      else {
        placed += 1;
        const activation = message as unknown as ActivationMessage;
        agent.take(activation, () => scheduler.ended(activation.activationId, true));
      }
      return receipt;
    },
    subscribe: (_, _group, _options, handler) => {
      let offset = 0;
      unplaced = (message) =>
        handler({ offset: offset++, message, bytes: 0, redelivered: false, done: () => undefined });
      return Promise.resolve({ setMaxInFlight: () => undefined, close: () => Promise.resolve() });
    },
    lag: () => 0,
    close: () => Promise.resolve(),
  };
  const recordLevels = {
    storeBlockingResultLevel: 'STORE_ALWAYS',
    storeNonBlockingResultLevel: 'STORE_ALWAYS',
  } as const;
  const lease = { epoch: 1 };
  const scheduler = new GpuScheduler({
    bus,
    store,
    records: new RecordWriter(store, clock, logger),
    recordLevels,
    clock,
    logger,
    metrics,
    table,
    lease,
    performanceData,
    instance: 0,
    options,
    random,
    workloads: { shown: [] },
    desired: new DesiredState({ state, lease, logger }),
  });
  await scheduler.open(() => false);
  for (let at = 0; at < load.nodes; at += 1) {
    const agent = new SimulatedAgent(`invoker${at}`, at * load.devicesPerNode * load.instancesPerDevice, load);
    agents.set(agent.invoker, agent);
    const tell = (): void => void state.setRow(gpuTable, agent.invoker, agent.row() as unknown as JsonValue);
    tell();
    setTimeout(() => setInterval(tell, rowMs), (at * rowMs) / load.nodes);
  }
  await new Promise((resolve) => setTimeout(resolve, 3000));
  const before = process.cpuUsage();
  const beganMs = performance.now();
  const placedBefore = placed;
  let sent = 0;
  const sending = setInterval(() => {
    const due = ((performance.now() - beganMs) / 1000) * load.placementsPerSecond;
    while (sent < due) submit(scheduler, (sent += 1));
  }, 5);
  await new Promise((resolve) => setTimeout(resolve, load.seconds * 1000));
  clearInterval(sending);
  const { user, system } = process.cpuUsage(before);
  const elapsedUs = (performance.now() - beganMs) * 1000;
  return {
    cores: (user + system) / elapsedUs,
    rssMiB: process.memoryUsage().rss / 1024 / 1024,
    placed: placed - placedBefore,
  };
}

function submit(scheduler: GpuScheduler, number: number): void {
  const spread = number * 7919;
  const need: GpuNeed = {
    memoryMiB: memoryMiB(spread),
    class: 'inference',
    batch: 1,
    gpus: 1,
    isolation: 'shared',
    timeoutMs: 60_000,
    mpsPercent: 20,
    sloMs: 1000,
  };
  const message: ActivationMessage = {
    transid: ['tid', Date.now()],
    action: { path: 'n', name: functionName(spread), version: '0.0.1' },
    revision: '1-x',
    user: {
      subject: 'n',
      namespace: { name: 'n', uuid: 'u' },
      authkey: { api_key: 'u:k' },
      rights: [],
      limits: {},
    },
    activationId: number.toString(16).padStart(32, '0'),
    rootControllerIndex: { asString: '0', instanceType: 'controller' },
    blocking: false,
    initArgs: [],
    lockedArgs: {},
    gpuNeed: need,
  };
  scheduler.submit(message, need);
}

const use = await measure(JSON.parse(process.argv[2] ?? '{}') as SchedulerLoad);
process.stdout.write(`${JSON.stringify(use)}\n`);
process.exit(0);
