import { createRequire } from 'node:module';
import { connect as connectPlain, isIP } from 'node:net';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Broker, Cluster, ISocketFactory, Logger } from 'kafkajs';
import type { KafkaBroker, KafkaCluster, KafkaConnection, KafkaRecord } from './kafka-broker.js';

interface PartitionAnswers<Partition> {
  responses: { partitions: Partition[] }[];
}

interface RawRecord {
  offset: string;
  value: Buffer | null;
  isControlRecord?: boolean;
  batchContext: { firstOffset: string; producerId: string; firstSequence: number };
}

/** A broker of kafkajs, with the requests that its types leave out or leave open. */
type RawBroker = Omit<Broker, 'fetch' | 'produce' | 'metadata'> & {
  fetch(
    request: Parameters<Broker['fetch']>[0],
  ): Promise<PartitionAnswers<{ highWatermark: string; messages: RawRecord[] }>>;
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
const require = createRequire(import.meta.url);
const ClusterOfKafkajs = require('kafkajs/src/cluster/index.js') as ClusterConstructor;

/** Requests of kafkajs to a broker that wait, because too many are unanswered or the broker wants fewer. */
interface RequestQueue {
  pending: readonly unknown[];
  scheduleCheckPendingRequests(): void;
}

// Where nothing waits, kafkajs starts a timer of a negative time, of which Node.js warns.
const { prototype: queue } = require('kafkajs/src/network/requestQueue/index.js') as { prototype: RequestQueue };
const { scheduleCheckPendingRequests: schedule } = queue;
queue.scheduleCheckPendingRequests = function () {
  if (this.pending.length > 0) schedule.call(this);
};

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
const partition = 0;
const allReplicas = -1;
const earliest = -2;
const latest = -1;
/** Kafka's number for resources that are topics. */
const topicResource = 2;
/** Kafka's number for settings that a topic has of its own. */
const ofTopic = 1;

/** A cluster by kafkajs that tries everything once: who asks decides about trying again. */
export function kafkajsCluster(connection: KafkaConnection): KafkaCluster {
  const sockets = new Set<Socket>();
  const cluster = createCluster(connection, sockets);
  const brokers = new WeakMap<Broker, KafkajsBroker>();
  const broker = (raw: Broker): KafkajsBroker => {
    const made = brokers.get(raw) ?? new KafkajsBroker(raw as unknown as RawBroker, connection.requestTimeoutMs);
    brokers.set(raw, made);
    return made;
  };
  return {
    async connect() {
      await cluster.connect();
      await cluster.refreshMetadata();
    },
    async leader(topic) {
      await cluster.addTargetTopic(topic);
      const [nodeId] = Object.keys(cluster.findLeaderForPartitions(topic, [partition]));
      if (nodeId === undefined) throw new Error(`topic '${topic}' has no leader now`);
      return broker(await cluster.findBroker({ nodeId }));
    },
    coordinator: async (group) => broker(await cluster.findGroupCoordinator({ groupId: group })),
    controller: async () => broker(await cluster.findControllerBroker()),
    all: () =>
      Promise.all(cluster.getNodeIds().map(async (id) => broker(await cluster.findBroker({ nodeId: String(id) })))),
    destroy(error) {
      // kafkajs would wait for what they still owe.
      for (const socket of sockets) socket.destroy(error);
    },
  };
}

/** Its sockets are added to `sockets`. */
function createCluster(connection: KafkaConnection, sockets: Set<Socket>): Cluster {
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
    ...{ logger: quiet, socketFactory, brokers, clientId, ssl, sasl },
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

class KafkajsBroker implements KafkaBroker {
  constructor(
    private readonly raw: RawBroker,
    private readonly timeoutMs: number,
  ) {}

  isConnected(): boolean {
    return this.raw.isConnected();
  }

  async produce({ topic, producer, firstSequence, key, values }: Parameters<KafkaBroker['produce']>[0]) {
    const messages = values.map((value) => ({ key, value }));
    const { topics } = await this.raw.produce({
      topicData: [{ topic, partitions: [{ partition, firstSequence, messages }] }],
      producerId: producer.id,
      producerEpoch: producer.epoch,
      acks: allReplicas,
      timeout: this.timeoutMs,
    });
    return Number(topics[0]?.partitions[0]?.baseOffset ?? -1);
  }

  async initProducerId() {
    const request = { transactionalId: null, transactionTimeout: this.timeoutMs };
    const { producerId, producerEpoch } = await this.raw.initProducerId(request);
    return { id: producerId, epoch: producerEpoch };
  }

  async fetch({ topic, offset, maxWaitMs, maxBytes }: Parameters<KafkaBroker['fetch']>[0]) {
    const { responses } = await this.raw.fetch({
      maxWaitTime: maxWaitMs,
      minBytes: 1,
      maxBytes,
      isolationLevel: 0,
      topics: [{ topic, partitions: [{ partition, fetchOffset: String(offset), maxBytes }] }],
    });
    const found = responses[0]?.partitions[0];
    return { records: recordsOf(found?.messages ?? []), end: Number(found?.highWatermark ?? -1) };
  }

  async offsetAt(topic: string, place: 'start' | 'end') {
    const timestamp = place === 'start' ? earliest : latest;
    const { responses } = await this.raw.listOffsets({
      replicaId: -1,
      isolationLevel: 0,
      topics: [{ topic, partitions: [{ partition, timestamp }] }],
    });
    return Number(responses[0]?.partitions[0]?.offset ?? 0);
  }

  async committed(topic: string, group: string) {
    const { responses } = await this.raw.offsetFetch({
      groupId: group,
      topics: [{ topic, partitions: [{ partition, offset: '0' }] }],
    });
    const found = responses[0]?.partitions[0] as { offset: string; metadata?: string | null } | undefined;
    return { offset: Number(found?.offset ?? -1), metadata: found?.metadata ?? '' };
  }

  async commit(topic: string, group: string, offset: number, metadata: string) {
    const place = { partition, offset: String(offset), metadata };
    await this.raw.offsetCommit({
      groupId: group,
      groupGenerationId: -1,
      memberId: '',
      topics: [{ topic, partitions: [place] }],
    });
  }

  async deleteBelow(topic: string, offset: number) {
    await this.raw.deleteRecords({ topics: [{ topic, partitions: [{ partition, offset: String(offset) }] }] });
  }

  async groups() {
    const { groups } = await this.raw.listGroups();
    return groups.map(({ groupId }) => groupId);
  }

  async createTopic(topic: string, replicationFactor: number, settings: Readonly<Record<string, string>>) {
    try {
      await this.raw.createTopics({
        topics: [{ topic, numPartitions: 1, replicationFactor, configEntries: listed(settings) }],
        timeout: this.timeoutMs,
      });
    } catch (error) {
      // One for each topic.
      const { errors = [error] } = error as { errors?: unknown[] };
      throw errors[0];
    }
  }

  async replicas(topic: string) {
    const { topicMetadata } = await this.raw.metadata([topic]);
    return topicMetadata[0]?.partitionMetadata[0]?.replicas.length;
  }

  async topicSettings(topic: string) {
    const { resources } = await this.raw.describeConfigs({ resources: [{ type: topicResource, name: topic }] });
    return (resources[0]?.configEntries ?? []).map(({ configName, configValue, configSource }) => ({
      name: configName,
      value: configValue,
      isOwn: configSource === ofTopic,
    }));
  }

  async setTopicSettings(topic: string, settings: Readonly<Record<string, string>>) {
    await this.raw.alterConfigs({
      resources: [{ type: topicResource, name: topic, configEntries: listed(settings) }],
    });
  }
}

const listed = (settings: Readonly<Record<string, string>>): { name: string; value: string }[] =>
  Object.entries(settings).map(([name, value]) => ({ name, value }));

function recordsOf(messages: readonly RawRecord[]): KafkaRecord[] {
  let raw: RawRecord['batchContext'] | undefined;
  let batch: KafkaRecord['batch'] = { firstOffset: -1, producerId: '-1', firstSequence: -1 };
  return messages.map(({ offset, value, isControlRecord, batchContext }) => {
    if (batchContext !== raw) {
      const { firstOffset, producerId, firstSequence } = (raw = batchContext);
      batch = { firstOffset: Number(firstOffset), producerId, firstSequence };
    }
    return { offset: Number(offset), value, isControl: isControlRecord === true, batch };
  });
}
