import type { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import type { MessageBus } from '@gpuwhisk/common/bus/message-bus';
import { loadConfig } from '@gpuwhisk/common/config';
import { gpuMemoryBound } from '@gpuwhisk/common/gpu';
import type { Logger } from '@gpuwhisk/common/logging';
import { unplacedTopic } from '@gpuwhisk/common/messages';
import { createMetrics } from '@gpuwhisk/common/metrics';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { DesiredState } from '@gpuwhisk/controller/gpu/state/desired-state';
import { GpuScheduler } from '@gpuwhisk/controller/gpu/scheduler/gpu-scheduler';
import { GpuTable } from '@gpuwhisk/controller/gpu/state/gpu-table';
import { PerformanceData } from '@gpuwhisk/controller/gpu/learning/performance-data';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { GpuAgent } from '@gpuwhisk/invoker/gpu-agent/gpu-agent';
import type { InvokerGpus } from '@gpuwhisk/invoker/invoker';
import type { GpuHardware } from './gpu-hardware.js';
import type { Ledger } from './ledger.js';
import type { ObservedFactory } from './observers.js';
import type { PlantedBug } from './planted-bugs.js';

const topic = unplacedTopic(0);

/** Policy, and limits of waiting, of a platform with GPUs. */
export interface GpuBounds {
  policy: 'least-loaded' | 'faashare';
  maxWaiting: number;
  maxWaitMs: number;
  admission: 'best-effort' | 'refuse';
}

/** Dependencies of the GPUs between two restarts. */
export interface SimulatedGpuParts {
  hardware: GpuHardware;
  bounds: GpuBounds;
  bus: MessageBus;
  store: ArtifactStore;
  records: RecordWriter;
  state: ClusterState;
  factory: ObservedFactory;
  clock: Clock;
  logger: Logger;
  ledger: Ledger;
  bug: PlantedBug;
}

/** An agent and a scheduler, assembled as in standalone. */
export interface SimulatedGpus {
  agent: InvokerGpus & Pick<GpuAgent, 'joined' | 'failed' | 'faultSince' | 'accessFor'>;
  scheduler: GpuScheduler;
  /** Whether no activation waits for a GPU or has a reservation on one. */
  isIdle(): boolean;
  /** Checks the bounds that hold at every moment. */
  checkBounds(): void;
  close(): Promise<void>;
}

/** Starts the scheduler and agent of a platform with GPUs. */
export async function startGpus(parts: SimulatedGpuParts): Promise<SimulatedGpus> {
  const { hardware, bounds, bus, store, records, state, factory, clock, logger, ledger, bug } = parts;
  await bus.ensureTopic(topic, { durable: true, maxPendingMessages: bounds.maxWaiting, maxPendingBytes: 1e9 });
  const { driver, enforcer } = await hardware.start(state);
  const agent = new GpuAgent({
    invoker: 'invoker0',
    ...{ driver, enforcer, state, clock, logger },
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
  const config = loadConfig();
  const random = seededRandom(1);
  const metrics = createMetrics();
  const performanceData = await PerformanceData.open({
    store,
    clock,
    random,
    logger,
    metrics,
    instance: 0,
    options: config.gpu,
  });
  const { lease } = hardware;
  const desired = new DesiredState({ state, lease, logger });
  table.onRow((node) => desired.observe(node));
  const scheduler = new GpuScheduler({
    ...{ random, desired, workloads: { shown: [] } },
    ...{ bus, clock, store, records, logger, metrics, performanceData, instance: 0 },
    table: bug.table?.(table) ?? table,
    lease,
    recordLevels: config,
    options: { ...config.gpu, ...bounds },
  });
  const devices = await driver.devices();
  const capacities = devices.map(({ uuid, memoryMiB }) => [uuid, Math.floor(memoryMiB * gpuMemoryBound)] as const);
  const isStuck = stuckQueue(parts, scheduler, table);
  return {
    agent: observedDesk(bug.desk?.(deskOf(agent)) ?? deskOf(agent), ledger),
    scheduler,
    isIdle: () => scheduler.waiting === 0 && bus.lag(topic, topic) === 0 && isFree(scheduler, agent),
    checkBounds() {
      ledger.check(!isStuck(), `${scheduler.waiting} wait though every GPU is free`);
      for (const [device, capacityMiB] of capacities) {
        const claimedMiB = factory.claimedDeviceMiB(device);
        ledger.check(claimedMiB <= capacityMiB, `containers take ${claimedMiB} of ${capacityMiB} MiB of ${device}`);
      }
    },
    async close() {
      await agent.close();
      await table.close();
    },
  };
}

/**
 * Longest wait of an activation while every GPU is free: a few passes of the scheduler, and the agent's next row, ms.
 */
const longestFreeMs = 3000;

/** Returns a check whether an activation waits without a reason. */
function stuckQueue(
  { hardware, bus, clock, ledger }: SimulatedGpuParts,
  scheduler: GpuScheduler,
  table: GpuTable,
): () => boolean {
  let freeSinceMs = Infinity;
  return () => {
    const nodes = table.nodes();
    const isFree =
      scheduler.reserved === 0 &&
      // The scheduler cannot send anything then.
      ledger.lives[ledger.life]?.diskFailed !== true &&
      hardware.lease.epoch !== undefined &&
      bus.lag('invoker0', 'invoker0') === 0 &&
      nodes.length > 0 &&
      nodes.every(({ status, residents }) => {
        const isHealthy = status.length > 0 && status.every(({ health }) => health.state === 'healthy');
        return isHealthy && residents.every(({ activations }) => activations.length === 0);
      });
    const nowMs = clock.monotonicMs();
    freeSinceMs = isFree && scheduler.waiting > 0 ? Math.min(freeSinceMs, nowMs) : Infinity;
    return nowMs - freeSinceMs > longestFreeMs;
  };
}

function isFree(scheduler: GpuScheduler, { gpuContainers }: GpuAgent): boolean {
  return (
    scheduler.reserved === 0 &&
    gpuContainers.promised === 0 &&
    gpuContainers.all().every(({ users }) => users.size === 0)
  );
}

type Desk = SimulatedGpus['agent'];

function deskOf(agent: GpuAgent): Desk {
  return {
    ledger: agent.ledger,
    attach: (hands) => agent.attach(hands),
    admit: (placement, user) => agent.admit(placement, user),
    began: (user, container) => agent.began(user, container),
    loaded: (container, ms) => agent.loaded(container, ms),
    besideMs: (activationId) => agent.besideMs(activationId),
    ended: (user) => agent.ended(user),
    onRetire: (container, listener) => agent.onRetire(container, listener),
    isInnocent: (container) => agent.isInnocent(container),
    endingOf: (container) => agent.endingOf(container),
    joined: (container, grant, startMs) => agent.joined(container, grant, startMs),
    failed: (grant) => agent.failed(grant),
    faultSince: (grant, sinceMs) => agent.faultSince(grant, sinceMs),
    accessFor: (grant) => agent.accessFor(grant),
  };
}

/** `inner`, with every admitted placement checked. */
function observedDesk(inner: Desk, ledger: Ledger): Desk {
  let greatestEpoch = 0;
  return {
    ...inner,
    admit(placement, user) {
      const problem = inner.admit(placement, user);
      const { epoch, share } = placement;
      ledger.note(`${ledger.nameOf(user.activationId)} of epoch ${epoch}: ${problem ?? 'is let in'}`);
      if (problem !== undefined) {
        ledger.gpuRefusals++;
        return problem;
      }
      ledger.check(epoch >= greatestEpoch, `a placement of epoch ${epoch} is accepted after one of ${greatestEpoch}`);
      greatestEpoch = Math.max(greatestEpoch, epoch);
      const { smRequest, smLimit, shareClass } = share;
      const isInOrder = smRequest <= smLimit && smLimit <= shareClass / 100 && shareClass <= 100;
      ledger.check(isInOrder, `a share of ${smRequest} to ${smLimit} is given in class ${shareClass}`);
      return undefined;
    },
  };
}
