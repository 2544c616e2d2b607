import { openDurable } from '@gpuwhisk/common/bus/durable';
import type { Durable } from '@gpuwhisk/common/bus/durable';
import type { BusFaults } from '@gpuwhisk/common/bus/simulated-bus';
import { simulatedBus } from '@gpuwhisk/common/bus/simulated-bus';
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
import { Dispatcher } from '@gpuwhisk/controller/invoke/dispatcher';
import { Invoker } from '@gpuwhisk/invoker/invoker';
import type { PoolOptions } from '@gpuwhisk/invoker/pool/container-pool';
import type { Ledger } from './ledger.js';
import type { ObservedFactory } from './observers.js';
import { observedBus, observedMarks } from './observers.js';
import type { PlantedBug } from './planted-bugs.js';

const logger = createLogger({ level: 'silent' });
const metrics = createMetrics();
const invokerTopic = 'invoker0';

/** The size of a platform, small enough that its bounds are met. */
export interface PlatformSize {
  pool: PoolOptions;
  maxInFlight: number;
  maxPendingMessages: number;
  segmentBytes: number;
  maxLogBytes: number;
}

/** What one life of the platform runs on. Disk, store and clock outlive it. */
export interface PlatformParts {
  disk: Disk;
  store: ArtifactStore;
  factory: ObservedFactory;
  clock: Clock;
  random: Random;
  ledger: Ledger;
  size: PlatformSize;
  /** Undefined: messages come at once and once. */
  busFaults: BusFaults | undefined;
  bug: PlantedBug;
}

/** One life of the platform, from dispatch inwards: put together as standalone does. */
export interface SimulatedPlatform {
  dispatcher: Dispatcher;
  /** What was found damaged at the start. */
  damage: Durable['damage'];
  /** Nothing is queued, runs or waits to be recorded, and the pool knows of every container. */
  isIdle(): boolean;
  /** Checks the bounds that hold at every moment. */
  checkBounds(): void;
  close(drainMs: number): Promise<void>;
}

/** Starts a platform; the promise stays pending for ever if the clock is stopped meanwhile. */
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
  // Other bounds are to be met, not those of a namespace.
  const limits = { ...loadConfig().limits, concurrentInvocations: 1e9 };
  const inFlight = new InFlight({ state: embeddedState(clock), limits, clock, metrics, logger });
  const dispatcher = new Dispatcher({
    bus,
    clock,
    random,
    inFlight,
    logger,
    instance: 0,
    chooseInvoker: () => invokerTopic,
  });
  await dispatcher.open();
  const invoker = new Invoker({
    instance: 0,
    bus,
    store: bug.store?.(store) ?? store,
    factory,
    marks,
    clock,
    logger,
    metrics,
    pool: size.pool,
    resultBounds: { maxResultBytes: 1024 * 1024, truncationBytes: 1024 * 1024 },
    recordLevels: loadConfig(),
    maxInFlight,
    unlockArguments: createArgumentUnlock({ keys: {} }),
  });
  await invoker.start();
  return {
    dispatcher,
    damage: durable.damage,
    isIdle() {
      const { pending, containers, prewarmed } = invoker.snapshot();
      return pending === 0 && bus.lag(invokerTopic, invokerTopic) === 0 && factory.count() === containers + prewarmed;
    },
    checkBounds() {
      const { claimedMiB, pending } = invoker.snapshot();
      const { memoryMiB } = size.pool;
      ledger.check(claimedMiB <= memoryMiB, `the pool claims ${claimedMiB} of ${memoryMiB} MiB`);
      ledger.check(factory.claimedMiB() <= memoryMiB, `containers take ${factory.claimedMiB()} of ${memoryMiB} MiB`);
      ledger.check(pending <= maxInFlight, `the feed holds ${pending} of ${maxInFlight} activations`);
    },
    async close(drainMs) {
      await invoker.close(drainMs);
      await dispatcher.close();
      await factory.close();
      await durable.close();
      await store.close();
    },
  };
}
