import { createRequire } from 'node:module';
import { connect as connectPlain, isIP } from 'node:net';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { ConnectionOptions } from 'node:tls';
import type { Broker, Cluster, ISocketFactory, Logger, SASLOptions } from 'kafkajs';

/** How brokers are reached. */
export interface KafkaConnection {
  /** `host:port` of some brokers; the others are learnt from them. */
  brokers: readonly string[];
  /** What brokers call this client in their logs. */
  clientId: string;
  /** A request without an answer is given up after so long. */
  requestTimeoutMs: number;
  ssl?: ConnectionOptions;
  sasl?: SASLOptions;
}

/** A record of a fetch. */
export interface KafkaRecord {
  offset: string;
  value: Buffer | null;
  isControlRecord?: boolean;
  batchContext?: { firstOffset: string; producerId: string; firstSequence: number };
}

interface PartitionAnswers<Partition> {
  responses: { partitions: Partition[] }[];
}

/** A broker with the requests that we use and kafkajs's types leave out or leave open. */
export type KafkaBroker = Omit<Broker, 'fetch' | 'produce' | 'metadata'> & {
  fetch(
    request: Parameters<Broker['fetch']>[0],
  ): Promise<PartitionAnswers<{ highWatermark: string; messages: KafkaRecord[] }>>;
  produce(
    request: Omit<Parameters<Broker['produce']>[0], 'producerId'> & { producerId: string },
  ): Promise<{ topics: { partitions: { baseOffset: string }[] }[] }>;
  initProducerId(request: object): Promise<{ producerId: string; producerEpoch: number }>;
  listOffsets(request: {
    replicaId: number;
    isolationLevel: number;
    topics: { topic: string; partitions: { partition: number; timestamp: string | number }[] }[];
  }): Promise<PartitionAnswers<{ offset: string }>>;
  createTopics(request: {
    topics: {
      topic: string;
      numPartitions: number;
      replicationFactor: number;
      configEntries: { name: string; value: string }[];
    }[];
    timeout: number;
  }): Promise<unknown>;
  listGroups(): Promise<{ groups: { groupId: string }[] }>;
  metadata(topics: string[]): Promise<{ topicMetadata: { partitionMetadata: { replicas: number[] }[] }[] }>;
  describeConfigs(request: { resources: { type: number; name: string }[] }): Promise<{
    resources: { configEntries: { configName: string; configValue: string; configSource: number }[] }[];
  }>;
  alterConfigs(request: {
    resources: { type: number; name: string; configEntries: { name: string; value: string }[] }[];
  }): Promise<unknown>;
  deleteRecords(request: {
    topics: { topic: string; partitions: { partition: number; offset: string }[] }[];
  }): Promise<unknown>;
};

type ClusterConstructor = new (options: object) => Cluster;

/**
 * kafkajs offers consumers only as members of groups, which take seconds to join, and as long as a dead member's session
 * lasts to join again. Who reads which topic is settled by names here, so that fetching and committing suffice: these
 * requests are in its cluster and its brokers, which its types show and its main module does not make. Its version is
 * pinned for that reason.
 */
const ClusterOfKafkajs = createRequire(import.meta.url)('kafkajs/src/cluster/index.js') as ClusterConstructor;

const quiet: Logger = {
  info: () => undefined,
  error: () => undefined,
  warn: () => undefined,
  debug: () => undefined,
  namespace: () => quiet,
  setLogLevel: () => undefined,
};

const connectTimeoutMs = 3000;
const keepAliveMs = 30_000;

/** A cluster that tries everything once: who asks decides about trying again. Its sockets are added to `sockets`. */
export function createCluster(connection: KafkaConnection, sockets: Set<Socket>): Cluster {
  const socketFactory: ISocketFactory = ({ host, port, ssl, onConnect }) => {
    const socket = ssl
      ? connectTls({ host, port, ...(isIP(host) === 0 && { servername: host }), ...ssl }, onConnect)
      : connectPlain({ host, port }, onConnect);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, keepAliveMs);
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    return socket;
  };
  const { brokers, clientId, requestTimeoutMs, ssl, sasl } = connection;
  return new ClusterOfKafkajs({
    logger: quiet,
    socketFactory,
    brokers,
    clientId,
    ssl,
    sasl,
    connectionTimeout: connectTimeoutMs,
    authenticationTimeout: requestTimeoutMs,
    reauthenticationThreshold: 10_000,
    requestTimeout: requestTimeoutMs,
    enforceRequestTimeout: true,
    metadataMaxAge: 300_000,
    allowAutoTopicCreation: false,
    maxInFlightRequests: null,
    retry: { retries: 0 },
  });
}
