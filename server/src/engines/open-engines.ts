import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openDurable, LocalStartJournal } from '@gpuwhisk/common/bus/durable';
import { ConfigError } from '@gpuwhisk/common/config';
import type { Config } from '@gpuwhisk/common/config';
import { busMetrics } from '@gpuwhisk/common/metrics';
import { systemDisk } from '@gpuwhisk/common/system/disk';
import { KafkaBus } from '@gpuwhisk/engines/kafka/kafka-bus';
import type { KafkaBusOptions } from '@gpuwhisk/engines/kafka/kafka-bus';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { openLmdbStore } from '@gpuwhisk/common/store/lmdb-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { openCouchdbStore } from '@gpuwhisk/engines/couchdb/couchdb-store';
import type { Engines } from './engines.js';

/** The bus that the configuration names, and the start marks of messages that are taken from it. */
interface OpenedBus extends Pick<Engines, 'bus' | 'marks'> {
  close(): Promise<void>;
}

interface BusParts extends Pick<Engines, 'config' | 'clock' | 'random' | 'logger' | 'metrics'> {
  /** Called when Kafka has answered a fetch from the topic. */
  onAnswer?: (topic: string) => void;
}

/**
 * Start marks are deleted once their messages are done. After this time marks are deleted whose messages Kafka has
 * lost, too.
 */
const marksKeptMs = 366 * 24 * 3_600_000;

/** Interval in which the same trouble with a topic is logged once, ms. */
const sameTroubleMs = 10_000;

/**
 * Opens Kafka if the configuration has it, with start marks in the data folder. Else the log in the data folder holds
 * both messages and marks.
 */
export function openBus(parts: BusParts): Promise<OpenedBus> {
  return parts.config.kafka ? openKafka(parts, parts.config.kafka) : openLog(parts);
}

async function openLog({ config, clock, random, logger }: BusParts): Promise<OpenedBus> {
  const durable = await openDurable({
    disk: systemDisk,
    folder: join(config.dataDir, 'log'),
    clock,
    random,
    onWarning: (warning) => logger.error({ err: warning }, 'the log has a problem'),
  });
  for (const damage of durable.damage) logger.error(damage, 'part of the log could not be read; the rest was');
  return durable;
}

async function openKafka(
  { config, clock, random, logger, metrics, onAnswer }: BusParts,
  settings: NonNullable<BusParts['config']['kafka']>,
): Promise<OpenedBus> {
  const connection = await kafkaConnection(settings);
  const { client, topicPrefix, replicationFactor, flush } = settings;
  const marks = await LocalStartJournal.open({
    disk: systemDisk,
    folder: join(config.dataDir, 'marks'),
    clock,
    random,
    keepMs: marksKeptMs,
    onWarning: (warning) => logger.error({ err: warning }, 'the log of start marks has a problem'),
  });
  const counts = busMetrics(metrics.registry);
  const loggedMs = new Map<string, number>();
  const bus = new KafkaBus({
    connection,
    client,
    clock,
    random,
    topicPrefix,
    replicationFactor,
    flush,
    ...(onAnswer && { onAnswer }),
    onCommitted: (activationId) => marks.forget(activationId),
    onMalformed: (topic, offset, reason) => {
      counts.malformed(topic);
      logger.warn({ topic, offset, reason }, 'a message that is no JSON object was skipped');
    },
    onLost: (topic, from, to) => {
      counts.lost(topic, Math.max(0, to - from));
      logger.error({ topic, from, to }, 'Kafka does not have messages any more that were not consumed');
    },
    onTrouble: (topic, error) => {
      const nowMs = clock.monotonicMs();
      const key = `${topic} ${error.message}`;
      if (nowMs - (loggedMs.get(key) ?? -Infinity) < sameTroubleMs) return;
      if (loggedMs.size > 1000) loggedMs.clear();
      loggedMs.set(key, nowMs);
      logger.warn({ topic, error: error.message }, 'Kafka does not do what it is asked; it is asked again');
    },
  });
  return {
    bus,
    marks,
    async close() {
      await bus.close();
      await marks.close();
    },
  };
}

/** Connection options for the configured brokers. Rejects with ConfigError if a file of `kafka.tls` cannot be read. */
async function kafkaConnection({
  brokers,
  tls,
  sasl,
}: NonNullable<Config['kafka']>): Promise<KafkaBusOptions['connection']> {
  const read = async (name: string, path: string | undefined): Promise<Record<string, string>> => {
    if (path === undefined) return {};
    try {
      return { [name]: await readFile(path, 'utf8') };
    } catch (error) {
      throw new ConfigError(`kafka.tls.${name}: ${(error as Error).message}`);
    }
  };
  const files = tls && (await Promise.all([read('ca', tls.ca), read('cert', tls.cert), read('key', tls.key)]));
  return {
    brokers: brokers.split(','),
    clientId: 'gpuwhisk',
    ...(files && { ssl: Object.assign({}, ...files) as Record<string, string> }),
    ...(sasl && { sasl }),
  };
}

/** The configured store: CouchDB, or LMDB in `folder`. */
export function openStore(
  { couchdb }: Config,
  folder: string,
  { clock, logger }: { clock: Clock; logger: Logger },
): Promise<ArtifactStore> {
  if (couchdb) return openCouchdb(couchdb, clock, logger);
  outliveFailedCommits();
  return openLmdbStore(folder, { onWarning: (line) => logger.warn(line) });
}

/** The store in a CouchDB. Logs a warning for each setting of the server that is known to cause harm. */
export function openCouchdb(
  couchdb: NonNullable<Config['couchdb']>,
  clock: Clock,
  logger: Logger,
): Promise<ArtifactStore> {
  return openCouchdbStore({ ...couchdb, clock, onWarning: (warning) => logger.warn(`CouchDB: ${warning}`) });
}

/**
 * LMDB's binding makes a second promise with every commit and drops it. If the disk is full, its rejection would end
 * the process although the writer gets the error. Any other unhandled rejection ends the process as usual.
 */
function outliveFailedCommits(): void {
  if (process.listeners('unhandledRejection').includes(ignoreFailedCommit)) return;
  process.on('unhandledRejection', ignoreFailedCommit);
}

function ignoreFailedCommit(reason: unknown): void {
  if (reason instanceof Error && 'commitError' in reason) return;
  throw reason;
}
