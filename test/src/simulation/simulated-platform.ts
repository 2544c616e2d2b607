import { RecordExpiry } from '@gpuwhisk/common/activations/record-expiry';
import type { RecordExpiryTimes } from '@gpuwhisk/common/activations/record-expiry';
import { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import { openDurable } from '@gpuwhisk/common/bus/durable';
import type { Durable } from '@gpuwhisk/common/bus/durable';
import type { BusFaults } from '@gpuwhisk/common/testing/simulated-bus';
import { simulatedBus } from '@gpuwhisk/common/testing/simulated-bus';
import { loadConfig } from '@gpuwhisk/common/config';
import { createArgumentUnlock } from '@gpuwhisk/common/entities/parameter-encryption';
import { createLogger } from '@gpuwhisk/common/logging';
import { createMetrics } from '@gpuwhisk/common/metrics';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Disk } from '@gpuwhisk/common/system/disk';
import type { Random } from '@gpuwhisk/common/system/random';
import { InFlight } from '@gpuwhisk/controller/entitlement/in-flight';
import { Dispatcher } from '@gpuwhisk/controller/dispatch/dispatcher';
import { Invoker } from '@gpuwhisk/invoker/invoker';
import type { Container, ContainerFactory, ContainerSpec } from '@gpuwhisk/invoker/containers/container-factory';
import { reportingFactory } from '@gpuwhisk/invoker/gpu-agent/gpu-runs';
import type { PoolOptions } from '@gpuwhisk/invoker/pool/container-pool';
import type { Ledger } from './ledger.js';
import type { ObservedFactory } from './observers.js';
import { observedBus, observedMarks } from './observers.js';
import type { PlantedBug } from './planted-bugs.js';
import type { GpuHardware } from './gpu-hardware.js';
import { startGpus } from './simulated-gpus.js';
import type { GpuBounds, SimulatedGpus } from './simulated-gpus.js';

/** Asks the agent for the access of a container with a GPU, as the process factory does. */
function withAccess(factory: ObservedFactory, agent: Pick<SimulatedGpus['agent'], 'accessFor'>): ContainerFactory {
  const started = async (spec: ContainerSpec, start: () => Promise<Container>): Promise<Container> => {
    if (spec.gpu !== undefined) await agent.accessFor(spec.gpu);
    return start();
  };
  return {
    ...factory,
    create: (spec) => started(spec, () => factory.create(spec)),
    prewarm: (spec) => started(spec, () => factory.prewarm(spec)),
  };
}

const logger = createLogger({ level: 'silent' });
const metrics = createMetrics();
const invokerTopic = 'invoker0';

/** The size of a platform, small enough that its bounds are reached. */
export interface PlatformSize {
  pool: PoolOptions;
  maxInFlight: number;
  maxPendingMessages: number;
  segmentBytes: number;
  maxLogBytes: number;
}

/** Dependencies of one life of the platform. Disk, store and clock outlive it. */
export interface PlatformParts {
  disk: Disk;
  store: ArtifactStore;
  factory: ObservedFactory;
  clock: Clock;
  random: Random;
  ledger: Ledger;
  size: PlatformSize;
  /** Undefined if records do not expire. */
  expiry: RecordExpiryTimes | undefined;
  /** Undefined if messages arrive at once and once. */
  busFaults: BusFaults | undefined;
  /** Undefined if the machine has no GPU. */
  gpus: { hardware: GpuHardware; bounds: GpuBounds } | undefined;
  bug: PlantedBug;
}

/** One life of the platform, from the dispatcher to the containers, assembled as in standalone. */
export interface SimulatedPlatform {
  dispatcher: Dispatcher;
  /** Damage found at the start. */
  damage: Durable['damage'];
  /** Whether no activation is queued, runs or waits for its record, and the pool knows of every container. */
  isIdle(): boolean;
  /** Checks the bounds that hold at every moment. */
  checkBounds(): void;
  close(drainMs: number): Promise<void>;
}

/** Starts a platform; the promise stays pending forever if the clock is stopped meanwhile. */
export async function startPlatform(parts: PlatformParts): Promise<SimulatedPlatform> {
  const { disk, store, factory, clock, random, ledger, size, bug } = parts;
  const { maxPendingMessages, segmentBytes, maxLogBytes, maxInFlight } = size;
  const durable = await openDurable({ disk, folder: '/log', clock, random, segmentBytes, maxLogBytes });
  const faulty = parts.busFaults ? simulatedBus(durable.bus, { clock, random, faults: parts.busFaults }) : durable.bus;
  const bus = observedBus(bug.bus?.(faulty) ?? faulty, ledger, invokerTopic, maxPendingMessages);
  const marks = observedMarks(bug.marks?.(durable.marks) ?? durable.marks, ledger);
  await Promise.all([
    factory.start(),
    bus.ensureTopic(invokerTopic, { durable: true, maxPendingMessages, maxPendingBytes: 1e9 }),
    bus.ensureTopic('completed0', { durable: false, maxPendingMessages: 100_000, maxPendingBytes: Infinity }),
  ]);
  // The simulation tests other bounds than a namespace's.
  const limits = { ...loadConfig().limits, concurrentInvocations: 1e9 };
  const state = embeddedState(clock);
  const inFlight = new InFlight({ state, limits, clock, metrics, logger });
  const broken = bug.store?.(store) ?? store;
  const records = new RecordWriter(broken, clock, logger);
  const gpus =
    parts.gpus &&
    (await startGpus({ ...parts.gpus, bus, store: broken, records, state, factory, clock, logger, ledger, bug }));
  const dispatcher = new Dispatcher({
    bus,
    store: broken,
    clock,
    random,
    inFlight,
    logger,
    instance: 0,
    chooseInvoker: () => invokerTopic,
    ...(gpus && { gpu: gpus.scheduler }),
  });
  await dispatcher.open();
  const invoker = new Invoker({
    instance: 0,
    bus,
    store: broken,
    factory: gpus ? reportingFactory(withAccess(factory, gpus.agent), gpus.agent, clock) : factory,
    marks,
    clock,
    logger,
    metrics,
    pool: size.pool,
    resultBounds: { maxResultBytes: 1024 * 1024, truncationBytes: 1024 * 1024 },
    recordLevels: loadConfig(),
    maxInFlight,
    unlockArguments: createArgumentUnlock({ keys: {} }),
    ...(gpus && { gpu: gpus.agent }),
  });
  await invoker.start();
  const expiry =
    parts.expiry &&
    new RecordExpiry({ store: broken, clock, logger, state, holder: 'controller0', times: parts.expiry });
  expiry?.open();
  return {
    dispatcher,
    damage: durable.damage,
    isIdle() {
      const { pending, containers, prewarmed } = invoker.snapshot();
      if (gpus?.isIdle() === false) return false;
      return pending === 0 && bus.lag(invokerTopic, invokerTopic) === 0 && factory.count() === containers + prewarmed;
    },
    checkBounds() {
      const { claimedMiB, pending } = invoker.snapshot();
      const { memoryMiB } = size.pool;
      ledger.check(claimedMiB <= memoryMiB, `the pool claims ${claimedMiB} of ${memoryMiB} MiB`);
      ledger.check(factory.claimedMiB() <= memoryMiB, `containers take ${factory.claimedMiB()} of ${memoryMiB} MiB`);
      gpus?.checkBounds();
      // A second copy of an activation that was given back does not count on the bus.
      const copies = parts.busFaults === undefined || gpus === undefined ? 0 : Infinity;
      ledger.check(pending <= maxInFlight + copies, `the feed holds ${pending} of ${maxInFlight} activations`);
    },
    async close(drainMs) {
      await expiry?.close();
      await gpus?.scheduler.close();
      await invoker.close(drainMs);
      await dispatcher.close();
      await gpus?.close();
      await records.close();
      await factory.close();
      await durable.close();
      await store.close();
    },
  };
}
