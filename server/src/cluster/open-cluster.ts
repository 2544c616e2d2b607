import { randomUUID } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import type { TopicOptions } from '@gpuwhisk/common/bus/message-bus';
import { LogRing, createLogger } from '@gpuwhisk/common/logging';
import type { Logger } from '@gpuwhisk/common/logging';
import { createMetrics } from '@gpuwhisk/common/metrics';
import { countsAtHand } from '@gpuwhisk/common/state/counts-at-hand';
import { holdName, LivenessFence, assignInstanceId, keepInstanceId } from '@gpuwhisk/common/state/instance-ids';
import type { InstanceIdRequest } from '@gpuwhisk/common/state/instance-ids';
import { Membership } from '@gpuwhisk/common/state/membership';
import { ProcessRegistry } from '@gpuwhisk/common/state/process-registry';
import { systemClock } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { systemRandom } from '@gpuwhisk/common/system/random';
import { openBullJobs } from '@gpuwhisk/engines/bull/bull-jobs';
import { openRedisState } from '@gpuwhisk/engines/redis/redis-state';
import { queueLimits } from '../engines/engines.js';
import type { Engines } from '../engines/engines.js';
import { openBus, openCouchdb } from '../engines/open-engines.js';
import { openTracing } from '../engines/open-tracing.js';
import { addressesOfThisMachine } from '../node/platform-addresses.js';
import { openDataFormat } from '../process/data-format.js';
import { lockDataFolder } from '../process/data-lock.js';
import type { Opened } from '../process/opened.js';
import { showProcess } from '../process/process-metrics.js';
import type { ClusterConfig } from './flags.js';
import { onDemandBus } from './on-demand-bus.js';

const countedHereMs = 10_000;
/**
 * Time that Redis and Kafka may both be silent before no more activations begin, ms: less than a retirement requires.
 */
const fenceMs = 8000;
/** A topic counts as unreadable if its fetches, which take two seconds, get no answer for this time, ms. */
const unreadableMs = 4000;

/** A controller or an invoker that serves. */
export interface ClusterProcess {
  /** For the start-up: the ready process and its address. */
  readonly line: string;
  /** Takes no new work, lets running activations end for up to `drainMs`, then stops. */
  close(drainMs: number): Promise<void>;
}

/** The engines of a cluster, and the number that this process has in it. */
interface ClusterEngines extends Engines {
  config: ClusterConfig;
  instance: number;
  /** False while the cluster may have retired this process: no activation may begin then. */
  mayBegin: () => boolean;
  /** Addresses of the cluster's present machines, this one included. */
  nodes(): readonly string[];
  /** Whether brokers answer fetches from a topic that this process consumes. */
  isReadable: (topic: string) => boolean;
}

/** Connects a process to its cluster. Rejects with the error of the engine that cannot be used. */
export async function openCluster(
  config: ClusterConfig,
  role: 'controller' | 'invoker',
  opened: Opened,
): Promise<ClusterEngines> {
  opened.onClose(lockDataFolder(config.dataDir));
  await openDataFormat(config.dataDir);
  const clock = systemClock;
  const random = systemRandom;
  const logRing = new LogRing(process.stdout);
  const logger = createLogger({ level: config.logLevel, destination: logRing });
  const metrics = createMetrics();
  showProcess(metrics.registry);
  const store = await openCouchdb(config.couchdb, clock, logger);
  opened.onClose(() => store.close());
  const state = await openRedisState({
    ...config.redis,
    onWarning: (warning) => logger.warn({ error: warning.message }, 'Redis'),
  });
  opened.onClose(() => state.close());
  const registry = new ProcessRegistry(store, `${role}s`);
  const holder = await ownHolder(config);
  const number = { state, clock, registry, name: config.name, holder };
  const fence = new LivenessFence(clock, fenceMs);
  const held = await holdName({
    state,
    clock,
    logger,
    sort: registry.sort,
    name: config.name,
    holder,
    fence,
    isRetired: async () =>
      (await registry.all()).some((other) => other.holder === holder && other.retired !== undefined),
    // As after an operator's SIGTERM: running activations may end, new ones are not taken.
    onLost: () => process.kill(process.pid, 'SIGTERM'),
  });
  opened.onClose(() => held.close());
  const instance = await ownNumber(config, number);
  const kept = keepInstanceId(number, instance, (error) =>
    logger.warn({ error: error.message }, 'the number of this process was not told to the cluster'),
  );
  opened.onClose(() => kept.close());
  const named = `${role}${instance}`;
  const tracing = await openTracing({ config, env: process.env, clock, logger, metrics, process: named });
  opened.onClose(() => tracing?.close());
  const answeredMs = new Map<string, number>();
  const connected = await openBus({
    config,
    clock,
    random,
    logger,
    metrics,
    onAnswer: (topic) => {
      fence.heard();
      answeredMs.set(topic, clock.monotonicMs());
    },
  });
  opened.onClose(() => connected.close());
  const { marks } = connected;
  const bus = onDemandBus(connected.bus, (topic) => topicOptions(config, topic));
  const present = new Membership({
    state,
    clock,
    logger,
    table: 'nodes',
    name: `${role} ${config.name}`,
    value: [...addressesOfThisMachine(), ...(isIP(config.host) === 0 ? [] : [config.host])],
  });
  await present.open();
  opened.onClose(() => present.close());
  const engines = {
    nodes: () => [...present.members().values()].flat().filter((address) => typeof address === 'string'),
    config,
    instance,
    clock,
    random,
    logger,
    logRing,
    metrics,
    ...(tracing && { tracer: tracing.tracer }),
    store,
    bus,
    marks,
    mayBegin: () => fence.isOpen,
    isReadable: (topic: string) => clock.monotonicMs() - (answeredMs.get(topic) ?? -Infinity) < unreadableMs,
    state: countsAtHand(state, clock, countedHere(clock, logger)),
  };
  if (role === 'invoker') return engines;
  const jobs = await openBullJobs({
    ...config.redis,
    library: config.redis.jobs,
    clock,
    leases: state,
    holder: `controller${instance}`,
    onWarning: (warning) => logger.warn({ error: warning.message }, 'jobs: it is tried again'),
  });
  opened.onClose(() => jobs.close());
  return { ...engines, jobs };
}

/** Logs, every ten seconds at most, that limits are counted in this process. */
function countedHere(clock: Clock, logger: Logger): (error: Error) => void {
  let saidMs = -Infinity;
  return ({ message }) => {
    const nowMs = clock.monotonicMs();
    if (nowMs - saidMs < countedHereMs) return;
    saidMs = nowMs;
    logger.error({ error: message }, 'limits of namespaces are counted in this process only');
  };
}

/** The topic's options, the same as its consumer uses. */
function topicOptions(config: ClusterConfig, topic: string): TopicOptions {
  if (/^(completed|health|events)/.test(topic)) {
    return { durable: false, maxPendingMessages: 100_000, maxPendingBytes: Infinity };
  }
  return queueLimits(config);
}

/** The id of this data folder. It is unique in the cluster, and so identifies the one process that locks the folder. */
async function ownHolder({ dataDir }: ClusterConfig): Promise<string> {
  const file = join(dataDir, 'holder');
  const kept = await readIfThere(file);
  if (kept !== '') return kept;
  const holder = randomUUID();
  await writeFile(`${file}.new`, holder);
  await rename(`${file}.new`, file);
  return holder;
}

async function readIfThere(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return '';
  }
}

/** The number of this process. The data folder keeps it, in case the cluster has forgotten the number. */
async function ownNumber({ dataDir }: ClusterConfig, request: InstanceIdRequest): Promise<number> {
  const file = join(dataDir, `${request.registry.sort}.number`);
  const kept = await readIfThere(file);
  const number = await assignInstanceId({
    ...request,
    ...(/^\d+\s*$/.test(kept) && { hadBefore: Number(kept) }),
  });
  await writeFile(`${file}.new`, `${number}\n`);
  await rename(`${file}.new`, file);
  return number;
}
