// A scheduler, an invoker and an agent over simulated GPUs on a simulated clock, connected as in standalone.
import { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import { openDurable } from '@gpuwhisk/common/bus/durable';
import { configSchema } from '@gpuwhisk/common/config-schema';
import { loadConfig } from '@gpuwhisk/common/config';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { actionDocument, readAction } from '@gpuwhisk/common/entities/action';
import { createArgumentUnlock } from '@gpuwhisk/common/entities/parameter-encryption';
import { gpuTable } from '@gpuwhisk/common/gpu';
import type { NodeStatus } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import { createLogger } from '@gpuwhisk/common/logging';
import { createMetrics } from '@gpuwhisk/common/metrics';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { InFlight } from '@gpuwhisk/controller/entitlement/in-flight';
import { PerformanceData } from '@gpuwhisk/controller/gpu/learning/performance-data';
import { DesiredState } from '@gpuwhisk/controller/gpu/state/desired-state';
import { GpuScheduler } from '@gpuwhisk/controller/gpu/scheduler/gpu-scheduler';
import { GpuTable } from '@gpuwhisk/controller/gpu/state/gpu-table';
import { Procurement } from '@gpuwhisk/controller/gpu/procure/procurement';
import type { Provider } from '@gpuwhisk/controller/gpu/procure/provider';
import type { Market } from '@gpuwhisk/gpu/view/decision';
import { Dispatcher } from '@gpuwhisk/controller/dispatch/dispatcher';
import type { Container } from '@gpuwhisk/invoker/containers/container-factory';
import { createSimulatedFactory } from '@gpuwhisk/invoker/containers/simulated-factory';
import { GpuDriverError } from '@gpuwhisk/invoker/gpu-agent/drivers/gpu-driver';
import type { GpuDriver } from '@gpuwhisk/invoker/gpu-agent/drivers/gpu-driver';
import { createSimulatedDriver } from '@gpuwhisk/invoker/gpu-agent/drivers/simulated-driver';
import { createSimulatedEnforcer } from '@gpuwhisk/invoker/gpu-agent/enforcers/simulated-enforcer';
import { GpuAgent } from '@gpuwhisk/invoker/gpu-agent/gpu-agent';
import { reportingFactory } from '@gpuwhisk/invoker/gpu-agent/gpu-runs';
import { Invoker } from '@gpuwhisk/invoker/invoker';
import { a100, nodeRow } from '../api/gpu-nodes.js';
import { SimulatedClock } from '../simulation/simulated-clock.js';
import { SimulatedDisk } from '../simulation/simulated-disk.js';
import type { ActuatorHarness, ContractFunction, ContractRun } from './actuator.js';

const logger = createLogger({ level: 'silent' });
const kind = 'nodejs:20';
const identity = {
  ...{ subject: 'alice', namespace: { name: 'alice', uuid: 'u' }, authkey: { api_key: 'u:k' } },
  ...{ rights: [], limits: {} },
};

function actionOf({ name, memoryMiB, share, isIdempotent = false }: ContractFunction): WhiskAction {
  return {
    ...{ namespace: 'alice', name, exec: { kind, code: '', binary: false }, parameters: [] },
    ...{ limits: { timeout: 600_000, memory: 256, logs: 0, concurrency: 1 }, version: '0.0.1', publish: false },
    annotations: [
      { key: 'gpu', value: { memoryMiB, mpsPercent: share * 100 } },
      { key: 'idempotent', value: isIdempotent },
    ],
    ...{ updated: 0, revision: '' },
  };
}

/** Opens a harness with policy least-loaded. */
export async function openLiveGpus(): Promise<ActuatorHarness> {
  const clock = new SimulatedClock();
  return clock.runUntil(openOn(clock));
}

async function openOn(clock: SimulatedClock): Promise<ActuatorHarness> {
  const random = seededRandom(1);
  const metrics = createMetrics();
  const options = { ...configSchema.parse({}).gpu, policy: 'least-loaded' };
  const store = simulatedStore({ clock, random, latencyMs: 0 });
  const state = embeddedState(clock);
  const disk = new SimulatedDisk(clock, random, 0);
  const { bus, marks } = await openDurable({ disk, folder: '/log', clock, random });
  const bounds = { durable: true, maxPendingMessages: 1000, maxPendingBytes: Infinity };
  for (const topic of ['invoker0', 'gpu0', 'completed0']) await bus.ensureTopic(topic, bounds);
  const memory = createSimulatedDriver(['a100-40', 'a100-40']);
  let refuses = false;
  const driver: GpuDriver = {
    ...memory,
    createSlice: (...where) =>
      refuses ? Promise.reject(new GpuDriverError('No room.', 23)) : memory.createSlice(...where),
  };
  // Shares of running processes can change, as with kernel tokens.
  const enforcer = { ...createSimulatedEnforcer(), adjusts: true, adjust: () => Promise.resolve() };
  const agent = new GpuAgent({
    ...{ invoker: 'invoker0', driver, enforcer, state, clock, logger },
    processes: {
      containerOf: () => Promise.resolve(undefined),
      isAlive: () => Promise.resolve(true),
      startOf: () => Promise.resolve(1),
      claimsOf: () => Promise.resolve(undefined),
    },
    access: () => ({ env: {}, binds: [], libraries: [], oneUser: false }),
  });
  await agent.start();
  const table = new GpuTable(state, clock, logger);
  await table.open();
  const lease = { epoch: 1 };
  const desired = new DesiredState({ state, lease, logger });
  table.onRow((node) => desired.observe(node));
  const records = new RecordWriter(store, clock, logger);
  const recordLevels = loadConfig();
  const procurement = new Procurement({
    provider: machines(clock, (name, row) =>
      row === undefined ? state.deleteRow(gpuTable, name) : state.setRow(gpuTable, name, row as unknown as JsonValue),
    ),
    ...{ store, state, table, lease, clock, random, logger, workloads: { shown: [] } },
    options: { nodes: 0, pollMs: 1000, bootMs: 60_000 },
    retire: () => Promise.resolve(true),
  });
  procurement.open(() => undefined);
  const scheduler = new GpuScheduler({
    ...{
      bus,
      clock,
      random,
      store,
      records,
      recordLevels,
      logger,
      metrics,
      table,
      lease,
      desired,
      options,
      instance: 0,
    },
    workloads: { shown: [] },
    performanceData: await PerformanceData.open({ store, clock, random, logger, metrics, instance: 0, options }),
    procurer: procurement,
  });
  const limits = { ...configSchema.parse({}).limits, concurrentInvocations: 1000 };
  const inFlight = new InFlight({ state, limits, clock, metrics, logger });
  const chooseInvoker = (): string => 'invoker0';
  const dispatcher = new Dispatcher({
    ...{ bus, store, clock, random, inFlight, logger, instance: 0, chooseInvoker, gpu: scheduler },
  });
  await dispatcher.open();
  /** For each activation under way, the function that ends its run. */
  const ends = new Map<string, () => void>();
  /** Names of stored functions. */
  const known = new Set<string>();
  const factory = createSimulatedFactory({
    ...{ clock, random, kinds: [kind], startMs: [500, 500] },
    guest: {
      init: () => ({ then: { do: 'result', value: {} } }),
      run: () => ({ then: { do: 'hang' } }),
    },
  });
  const until = async (starting: Promise<Container>): Promise<Container> => endable(await starting, ends);
  await factory.start();
  const held = {
    ...factory,
    create: (...given: Parameters<typeof factory.create>) => until(factory.create(...given)),
    prewarm: (...given: Parameters<typeof factory.prewarm>) => until(factory.prewarm(...given)),
  };
  const invoker = new Invoker({
    ...{ instance: 0, bus, store, marks, clock, logger, metrics, recordLevels, maxInFlight: 100 },
    factory: reportingFactory(held, agent, clock),
    pool: {
      ...{ memoryMiB: 8192, maxStarting: 10, pauseGraceMs: 60_000, idleContainerMs: 3_600_000 },
      ...{ stemCells: [], stemCellsOnDemand: false },
    },
    resultBounds: { maxResultBytes: 1024 * 1024, truncationBytes: 1024 * 1024 },
    unlockArguments: createArgumentUnlock({ keys: {} }),
    gpu: agent,
  });
  await invoker.start();
  await clock.runFor(100);
  const devices = (await driver.devices()).map(({ uuid }) => uuid);

  async function run(one: ContractFunction): Promise<ContractRun> {
    if (!known.has(one.name)) await clock.runUntil(store.put('whisks', actionDocument(actionOf(one))));
    known.add(one.name);
    const action = readAction(await clock.runUntil(store.get('whisks', `alice/${one.name}`)));
    let outcome: 'ended' | 'stopped' | undefined;
    const before = new Set(ends.keys());
    const invoked = dispatcher.invoke({
      ...{ identity, action, payload: {}, blocking: true, waitMs: 3_600_000, transactionId: 'tid' },
    });
    void invoked.then((it) => {
      if (it.type === 'completed') outcome = it.activation.response.statusCode === 0 ? 'ended' : 'stopped';
    });
    await clock.runFor(5);
    return {
      end() {
        for (const [id, end] of ends) {
          if (before.has(id)) continue;
          ends.delete(id);
          end();
          return;
        }
      },
      outcome: () => outcome,
    };
  }

  return {
    actuator: { carryOut: (action) => clock.runUntil(scheduler.actuator.carryOut(action)) },
    view: () => scheduler.view(),
    run,
    pass: (ms) => clock.runFor(ms),
    device: (index) => devices[index]!,
    refuseSlices: (now) => void (refuses = now),
    async close() {
      clock.dropAll();
      await Promise.resolve();
    },
  };
}

/** Wraps a container so that a run ends only when its entry in `ends` is called, or with the container. */
function endable(container: Container, ends: Map<string, () => void>): Container {
  return Object.assign(container, {
    run: ({ activation_id: id }: { activation_id: string }) => ({
      outcome: Promise.race([
        new Promise((resolve) => ends.set(id, () => resolve({ type: 'result', result: {}, bytes: 2 }))),
        container.exited.then(() => ({ type: 'lost', oomKilled: false })),
      ]),
      logs: Promise.resolve([]),
    }),
  }) as Container;
}

/** A cloud whose machines report after 5 s and have one GPU each. */
function machines(clock: SimulatedClock, tell: (name: string, row: NodeStatus | undefined) => Promise<void>): Provider {
  const there = new Map<string, string>();
  const live = (request: string, market: Market): void => {
    const invoker = there.get(request);
    if (invoker === undefined) return;
    const labels = { machine: request };
    void tell(invoker, nodeRow([a100(`GPU-of-${invoker}`)], [], { invoker, at: clock.now(), market, labels }));
    clock.setBackgroundTimer(1000, () => live(request, market));
  };
  return {
    acquire(request, market) {
      there.set(request, `invoker${there.size + 1}`);
      clock.setBackgroundTimer(5000, () => live(request, market));
      return Promise.resolve({ machine: request });
    },
    async release(request) {
      const invoker = there.get(request);
      there.delete(request);
      if (invoker !== undefined) await tell(invoker, undefined);
    },
    prices: () => Promise.resolve({}),
    notices: () => Promise.resolve([]),
  };
}
