import { randomUUID } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TopicOptions } from '@gpuwhisk/common/bus/message-bus';
import { LogRing } from '@gpuwhisk/common/log-ring';
import { createLogger } from '@gpuwhisk/common/logging';
import type { Logger } from '@gpuwhisk/common/logging';
import { createMetrics } from '@gpuwhisk/common/metrics';
import { countsAtHand } from '@gpuwhisk/common/state/counts-at-hand';
import { holdName } from '@gpuwhisk/common/state/held-name';
import { assignInstanceId, keepInstanceId } from '@gpuwhisk/common/state/instance-ids';
import type { InstanceIdRequest } from '@gpuwhisk/common/state/instance-ids';
import { systemClock } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { systemRandom } from '@gpuwhisk/common/system/random';
import { openCouchdbStore } from '@gpuwhisk/engines/couchdb/couchdb-store';
import { openBullJobs } from '@gpuwhisk/engines/bull/bull-jobs';
import { openRedisState } from '@gpuwhisk/engines/redis/redis-state';
import { lockDataFolder } from '../data-lock.js';
import { queueLimits } from '../engines.js';
import type { Engines } from '../engines.js';
import { openBus } from '../open-bus.js';
import type { Opened } from '../opened.js';
import type { ClusterConfig } from './flags.js';
import { onDemandBus } from './on-demand-bus.js';

const countedHereMs = 10_000;

/** The engines of a cluster, and the number that this process has in it. */
export interface ClusterEngines extends Engines {
  config: ClusterConfig;
  instance: number;
}

/** Connects a process to its cluster. Rejects with the error of the engine that cannot be used. */
export async function openCluster(
  config: ClusterConfig,
  role: 'controller' | 'invoker',
  opened: Opened,
): Promise<ClusterEngines> {
  opened.onClose(lockDataFolder(config.dataDir));
  const clock = systemClock;
  const random = systemRandom;
  const logRing = new LogRing(process.stdout);
  const logger = createLogger({ level: config.logLevel, destination: logRing });
  const metrics = createMetrics();
  const store = await openCouchdbStore({ ...config.couchdb, clock });
  opened.onClose(() => store.close());
  const state = await openRedisState({
    ...config.redis,
    onWarning: (warning) => logger.warn({ error: warning.message }, 'Redis'),
  });
  opened.onClose(() => state.close());
  const number = { state, clock, sort: `${role}s`, name: config.name };
  const held = await holdName({
    ...{ ...number, logger, holder: await ownHolder(config) },
    // As an operator would: what runs may end, nothing new is taken.
    onLost: () => process.kill(process.pid, 'SIGTERM'),
  });
  opened.onClose(() => held.close());
  const instance = await ownNumber(config, number);
  const kept = keepInstanceId(number, instance, (error) =>
    logger.warn({ error: error.message }, 'the number of this process was not told to the cluster'),
  );
  opened.onClose(() => kept.close());
  const connected = await openBus({ config, clock, random, logger, metrics });
  opened.onClose(() => connected.close());
  const { marks } = connected;
  const bus = onDemandBus(connected.bus, (topic) => topicOptions(config, topic));
  const engines = {
    ...{ config, instance, clock, random, logger, logRing, metrics, store, bus, marks },
    state: countsAtHand(state, clock, countedHere(clock, logger)),
  };
  if (role === 'invoker') return engines;
  const jobs = await openBullJobs({
    ...config.redis,
    ...{ clock, leases: state, holder: `controller${instance}` },
    onWarning: (warning) => logger.warn({ error: warning.message }, 'jobs: it is tried again'),
  });
  opened.onClose(() => jobs.close());
  return { ...engines, jobs };
}

/** Says every ten seconds at most that limits are counted in this process. */
function countedHere(clock: Clock, logger: Logger): (error: Error) => void {
  let saidMs = -Infinity;
  return ({ message }) => {
    const nowMs = clock.monotonicMs();
    if (nowMs - saidMs < countedHereMs) return;
    saidMs = nowMs;
    logger.error({ error: message }, 'limits of namespaces are counted in this process only');
  };
}

/** As their consumers make them. */
function topicOptions(config: ClusterConfig, topic: string): TopicOptions {
  if (/^(completed|health|events)/.test(topic)) {
    return { durable: false, maxPendingMessages: 100_000, maxPendingBytes: Infinity };
  }
  return queueLimits(config);
}

/** What tells this data folder, and with it the one process that has it, from others. */
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

/** The number of this process, which its data folder keeps, should the cluster have forgotten it. */
async function ownNumber({ dataDir }: ClusterConfig, request: InstanceIdRequest): Promise<number> {
  const file = join(dataDir, `${request.sort}.number`);
  const kept = await readIfThere(file);
  const number = await assignInstanceId({
    ...request,
    ...(/^\d+\s*$/.test(kept) && { hadBefore: Number(kept) }),
  });
  await writeFile(`${file}.new`, `${number}\n`);
  await rename(`${file}.new`, file);
  return number;
}
