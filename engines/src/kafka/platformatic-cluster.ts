import { isIP } from 'node:net';
import {
  alterConfigsV2,
  ConfigResourceTypes,
  Connection,
  createTopicsV7,
  deleteRecordsV2,
  describeConfigsV4,
  fetchV12,
  findCoordinatorV4,
  initProducerIdV4,
  IS_CONTROL,
  listGroupsV4,
  listOffsetsV7,
  metadataV11,
  NumericMap,
  offsetCommitV8,
  offsetFetchV8,
  produceV9,
} from '@platformatic/kafka';
import type { RecordsBatch } from '@platformatic/kafka';
import { KafkaRefusalError } from './kafka-errors.js';
import type { KafkaBroker, KafkaCluster, KafkaConnection, KafkaRecord } from './kafka-broker.js';

const connectTimeoutMs = 3000;
const keepAliveMs = 30_000;
const partition = 0;
const allReplicas = -1;
const anyReplica = -1;
const groupCoordinator = 0;
const earliest = -2n;
const latest = -1n;
/** Kafka's number for settings that a topic has of its own. */
const ofTopic = 1;
/** More than are ever asked at once: requests wait in the socket, not in the library. */
const maxInflights = 10_000;

/**
 * A cluster by @platformatic/kafka, of which only the requests of Kafka's protocol are used: its producer and its consumer
 * retry by themselves, and the latter joins groups. The versions of the requests are those of Kafka 3.0 and newer.
 */
export function platformaticCluster(options: KafkaConnection): KafkaCluster {
  const connections = new Map<string, Promise<PlatformaticBroker>>();
  const open = new Set<Connection>();
  let failure: Error | undefined;
  let known: metadataV11.MetadataResponse | undefined;

  async function connectTo(host: string, port: number): Promise<PlatformaticBroker> {
    const { clientId, requestTimeoutMs, ssl, sasl } = options;
    const connection = new Connection(clientId, {
      connectTimeout: connectTimeoutMs,
      requestTimeout: requestTimeoutMs,
      maxInflights,
      ...(ssl && { tls: { ...(isIP(host) === 0 && { servername: host }), ...ssl } }),
      ...(sasl && { sasl: { ...sasl, mechanism: mechanisms[sasl.mechanism] } }),
    });
    connection.on('error', () => undefined);
    connection.once('close', () => {
      open.delete(connection);
      connections.delete(`${host}:${port}`);
    });
    open.add(connection);
    await told(connection.connect(host, port) as Promise<void>);
    connection.socket.setKeepAlive(true, keepAliveMs);
    if (failure) {
      connection.socket.destroy(failure);
      throw failure;
    }
    return new PlatformaticBroker(connection, requestTimeoutMs);
  }

  function at(host: string, port: number): Promise<PlatformaticBroker> {
    const address = `${host}:${port}`;
    const found = connections.get(address);
    if (found) return found;
    const made = connectTo(host, port);
    connections.set(address, made);
    return made;
  }

  async function seed(): Promise<PlatformaticBroker> {
    let reason: unknown;
    for (const address of options.brokers) {
      const [host = '', port] = address.split(/:(?=\d+$)/);
      try {
        return await at(host, Number(port));
      } catch (error) {
        reason = error;
        if (error instanceof KafkaRefusalError) break;
      }
    }
    throw reason;
  }

  async function learn(topics: string[]): Promise<metadataV11.MetadataResponse> {
    return (known = await (await seed()).metadata(topics));
  }

  async function byId(id: number): Promise<PlatformaticBroker> {
    const broker = known?.brokers.find(({ nodeId }) => nodeId === id);
    if (!broker) throw new Error(`broker ${id} of Kafka is not known`);
    return at(broker.host, broker.port);
  }

  return {
    async connect() {
      await learn([]);
    },
    async leader(topic) {
      const { topics } = await learn([topic]);
      const id = topics[0]?.partitions.find(({ partitionIndex }) => partitionIndex === partition)?.leaderId;
      if (id === undefined || id < 0) throw new Error(`topic '${topic}' has no leader now`);
      return byId(id);
    },
    async coordinator(group) {
      const { host, port } = await (await seed()).coordinator(group);
      return at(host, port);
    },
    controller: async () => byId(known?.controllerId ?? -1),
    async all() {
      // Brokers may have come since.
      const { brokers } = await learn([]);
      return Promise.all(brokers.map(({ host, port }) => at(host, port)));
    },
    destroy(error) {
      failure = error;
      for (const connection of open) (connection.socket as Connection['socket'] | undefined)?.destroy(error);
    },
  };
}

const mechanisms = {
  plain: 'PLAIN',
  'scram-sha-256': 'SCRAM-SHA-256',
  'scram-sha-512': 'SCRAM-SHA-512',
} as const;

class PlatformaticBroker implements KafkaBroker {
  constructor(
    private readonly connection: Connection,
    private readonly timeoutMs: number,
  ) {}

  isConnected(): boolean {
    return this.connection.isConnected();
  }

  metadata(topics: string[]): Promise<metadataV11.MetadataResponse> {
    return told(metadataV11.api.async(this.connection, topics, false, false));
  }

  async coordinator(group: string): Promise<{ host: string; port: number }> {
    const { coordinators } = await told(findCoordinatorV4.api.async(this.connection, groupCoordinator, [group]));
    if (!coordinators[0]) throw new Error(`group '${group}' has no coordinator now`);
    return coordinators[0];
  }

  async produce({ topic, producer, firstSequence, key, values }: Parameters<KafkaBroker['produce']>[0]) {
    const keyBytes = Buffer.from(key);
    const messages = values.map((value) => ({ topic, partition, key: keyBytes, value: Buffer.from(value) }));
    const answer = await told(
      produceV9.api.async(this.connection, allReplicas, this.timeoutMs, messages, {
        compression: 'none',
        producerId: BigInt(producer.id),
        producerEpoch: producer.epoch,
        sequences: new NumericMap([[`${topic}:${partition}`, firstSequence]]),
      }),
    );
    return Number((answer as produceV9.ProduceResponse).responses[0]?.partitionResponses[0]?.baseOffset ?? -1);
  }

  async initProducerId() {
    const made = await told(initProducerIdV4.api.async(this.connection, null, this.timeoutMs, -1n, -1));
    return { id: String(made.producerId), epoch: made.producerEpoch };
  }

  async fetch({ topic, offset, maxWaitMs, maxBytes }: Parameters<KafkaBroker['fetch']>[0]) {
    const wanted = {
      partition,
      currentLeaderEpoch: -1,
      fetchOffset: BigInt(offset),
      lastFetchedEpoch: -1,
      partitionMaxBytes: maxBytes,
    };
    // Version 12 has a topic's name where later ones have its id.
    const topics = [{ topicId: topic, partitions: [wanted] }];
    const answer = await told(fetchV12.api.async(this.connection, maxWaitMs, 1, maxBytes, 0, 0, -1, topics, [], ''));
    const found = answer.responses[0]?.partitions[0];
    return { records: (found?.records ?? []).flatMap(recordsOf), end: Number(found?.highWatermark ?? -1) };
  }

  async offsetAt(topic: string, place: 'start' | 'end') {
    const timestamp = place === 'start' ? earliest : latest;
    const partitions = [{ partitionIndex: partition, currentLeaderEpoch: -1, timestamp }];
    const answer = await told(listOffsetsV7.api.async(this.connection, anyReplica, 0, [{ name: topic, partitions }]));
    return Number(answer.topics[0]?.partitions[0]?.offset ?? 0);
  }

  async committed(topic: string, group: string) {
    const wanted = { groupId: group, memberEpoch: -1, topics: [{ name: topic, partitionIndexes: [partition] }] };
    const answer = await told(offsetFetchV8.api.async(this.connection, [wanted], false));
    const found = answer.groups[0]?.topics[0]?.partitions[0];
    return { offset: Number(found?.committedOffset ?? -1), metadata: found?.metadata ?? '' };
  }

  async commit(topic: string, group: string, offset: number, metadata: string) {
    const place = {
      partitionIndex: partition,
      committedOffset: BigInt(offset),
      committedLeaderEpoch: -1,
      committedMetadata: metadata,
    };
    await told(offsetCommitV8.api.async(this.connection, group, -1, '', null, [{ name: topic, partitions: [place] }]));
  }

  async deleteBelow(topic: string, offset: number) {
    const partitions = [{ partitionIndex: partition, offset: BigInt(offset) }];
    await told(deleteRecordsV2.api.async(this.connection, [{ name: topic, partitions }], this.timeoutMs));
  }

  async groups() {
    const { groups } = await told(listGroupsV4.api.async(this.connection, [], []));
    return groups.map(({ groupId }) => groupId);
  }

  async createTopic(topic: string, replicationFactor: number, settings: Readonly<Record<string, string>>) {
    const wanted = { name: topic, numPartitions: 1, replicationFactor, assignments: [], configs: listed(settings) };
    await told(createTopicsV7.api.async(this.connection, [wanted], this.timeoutMs, false));
  }

  async replicas(topic: string) {
    const { topics } = await this.metadata([topic]);
    return topics[0]?.partitions[0]?.replicaNodes.length;
  }

  async topicSettings(topic: string) {
    const resource = { resourceType: ConfigResourceTypes.TOPIC, resourceName: topic, configurationKeys: null };
    const { results } = await told(describeConfigsV4.api.async(this.connection, [resource], false, false));
    return (results[0]?.configs ?? []).map(({ name, value, configSource }) => ({
      name,
      value: value ?? '',
      isOwn: configSource === ofTopic,
    }));
  }

  async setTopicSettings(topic: string, settings: Readonly<Record<string, string>>) {
    const resource = {
      resourceType: ConfigResourceTypes.TOPIC,
      resourceName: topic,
      configs: listed(settings),
    };
    await told(alterConfigsV2.api.async(this.connection, [resource], false));
  }
}

const listed = (settings: Readonly<Record<string, string>>): { name: string; value: string }[] =>
  Object.entries(settings).map(([name, value]) => ({ name, value }));

function recordsOf({ firstOffset, producerId, firstSequence, attributes, records }: RecordsBatch): KafkaRecord[] {
  const first = Number(firstOffset);
  const batch = { firstOffset: first, producerId: String(producerId), firstSequence };
  const isControl = (attributes & IS_CONTROL) !== 0;
  return records.map(({ offsetDelta, value }) => ({ offset: first + offsetDelta, value, isControl, batch }));
}

/** Errors of the library nest what is to be known: the broker's refusal, and why a connection failed. */
async function told<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw plain(error as LibraryError);
  }
}

type LibraryError = Error & { errors?: readonly LibraryError[]; apiId?: string; code?: string };

function plain(error: LibraryError): Error {
  const [refusal] = error.errors ?? [];
  if (refusal?.apiId !== undefined) {
    return Object.assign(new Error(refusal.message, { cause: error }), { type: refusal.apiId });
  }
  const reasons: string[] = [];
  let isRefused = false;
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    reasons.push(at.message);
    isRefused ||= (at as LibraryError).code === 'PLT_KFK_AUTHENTICATION' || /certificate/i.test(at.message);
  }
  const message = reasons.join(': ');
  return isRefused ? new KafkaRefusalError(message, { cause: error }) : new Error(message, { cause: error });
}
