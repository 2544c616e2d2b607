import type { Socket } from 'node:net';
import type { Cluster } from 'kafkajs';
import { createCluster } from './kafkajs-cluster.js';
import type { KafkaBroker, KafkaConnection } from './kafkajs-cluster.js';

/** A connection to brokers with what was learnt through it. */
interface Attempt {
  cluster: Cluster;
  sockets: Set<Socket>;
  ready: Promise<void>;
  leaders: Map<string, KafkaBroker>;
  coordinators: Map<string, KafkaBroker>;
}

/** Answers of a broker that say nothing against the connection to it. */
const harmless = new Set([
  'MESSAGE_TOO_LARGE',
  'RECORD_LIST_TOO_LARGE',
  'OFFSET_OUT_OF_RANGE',
  'OFFSET_METADATA_TOO_LARGE',
  'TOPIC_ALREADY_EXISTS',
]);

/**
 * A connection to Kafka that is opened again after every failure: whatever has gone stale or stuck in it is thrown away. It
 * retries nothing itself.
 */
export class KafkaLink {
  private attempt: Attempt | undefined;
  private attempts = 0;
  private closed = false;

  constructor(private readonly connection: KafkaConnection) {}

  /** Asks the broker that leads the only partition of `topic`. Rejects with what kafkajs makes of the failure. */
  atLeader<T>(topic: string, ask: (broker: KafkaBroker) => Promise<T>): Promise<T> {
    return this.run(async (attempt) => {
      let broker = attempt.leaders.get(topic);
      if (!broker?.isConnected()) {
        broker = await findLeader(attempt.cluster, topic);
        attempt.leaders.set(topic, broker);
      }
      return ask(broker);
    });
  }

  /** Asks the broker that keeps the offsets of `group`. */
  atCoordinator<T>(group: string, ask: (broker: KafkaBroker) => Promise<T>): Promise<T> {
    return this.run(async (attempt) => {
      let broker = attempt.coordinators.get(group);
      if (!broker?.isConnected()) {
        broker = (await attempt.cluster.findGroupCoordinator({ groupId: group })) as unknown as KafkaBroker;
        attempt.coordinators.set(group, broker);
      }
      return ask(broker);
    });
  }

  /** Asks the broker that may create topics. */
  atController<T>(ask: (broker: KafkaBroker) => Promise<T>): Promise<T> {
    return this.run(async ({ cluster }) => ask((await cluster.findControllerBroker()) as unknown as KafkaBroker));
  }

  /** Asks every broker. */
  atEach<T>(ask: (broker: KafkaBroker) => Promise<T>): Promise<T[]> {
    return this.run(({ cluster }) =>
      Promise.all(
        cluster
          .getNodeIds()
          .map(async (id) => ask((await cluster.findBroker({ nodeId: String(id) })) as unknown as KafkaBroker)),
      ),
    );
  }

  /** Ends the connection; what was asked and not answered rejects. */
  close(): void {
    this.closed = true;
    if (this.attempt) this.drop(this.attempt);
  }

  private async run<T>(ask: (attempt: Attempt) => Promise<T>): Promise<T> {
    if (this.closed) throw new Error('the connection to Kafka is closed');
    const attempt = (this.attempt ??= this.connect());
    try {
      await attempt.ready;
      return await ask(attempt);
    } catch (error) {
      if (!harmless.has((error as { type?: string }).type ?? '')) this.drop(attempt);
      throw error;
    }
  }

  private connect(): Attempt {
    const { brokers } = this.connection;
    // Another one first each time, as the first may be the one that is gone.
    const start = this.attempts++ % brokers.length;
    const order = [...brokers.slice(start), ...brokers.slice(0, start)];
    const sockets = new Set<Socket>();
    const cluster = createCluster({ ...this.connection, brokers: order }, sockets);
    const ready = cluster.connect().then(() => cluster.refreshMetadata());
    return { cluster, sockets, ready, leaders: new Map(), coordinators: new Map() };
  }

  /** Sockets are ended with an error: kafkajs would wait for what they still owe. */
  private drop(attempt: Attempt): void {
    if (this.attempt === attempt) this.attempt = undefined;
    for (const socket of attempt.sockets) socket.destroy(new Error('the connection to Kafka was given up'));
  }
}

async function findLeader(cluster: Cluster, topic: string): Promise<KafkaBroker> {
  await cluster.addTargetTopic(topic);
  const [nodeId] = Object.keys(cluster.findLeaderForPartitions(topic, [0]));
  if (nodeId === undefined) throw new Error(`topic '${topic}' has no leader now`);
  return (await cluster.findBroker({ nodeId })) as unknown as KafkaBroker;
}
