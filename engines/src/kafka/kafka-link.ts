import { loadKafkaClient } from './kafka-broker.js';
import type { KafkaBroker, KafkaClientName, KafkaCluster, KafkaConnection } from './kafka-broker.js';

/** A connection to brokers with what was learnt through it. */
interface Attempt {
  cluster: Promise<KafkaCluster>;
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
 * A connection to Kafka that begins again after every failure: whatever has gone stale or stuck in it is thrown away. It
 * retries nothing itself.
 */
export class KafkaLink {
  private attempt: Attempt | undefined;
  private attempts = 0;
  private closed = false;

  constructor(
    private readonly connection: KafkaConnection,
    private readonly client: KafkaClientName,
  ) {}

  /** Asks the broker that leads the only partition of `topic`. Rejects with what the client makes of the failure. */
  atLeader<T>(topic: string, ask: (broker: KafkaBroker) => Promise<T>): Promise<T> {
    return this.run(async (attempt) => {
      let broker = attempt.leaders.get(topic);
      if (!broker?.isConnected()) {
        broker = await (await attempt.cluster).leader(topic);
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
        broker = await (await attempt.cluster).coordinator(group);
        attempt.coordinators.set(group, broker);
      }
      return ask(broker);
    });
  }

  /** Asks the broker that may create topics. */
  atController<T>(ask: (broker: KafkaBroker) => Promise<T>): Promise<T> {
    return this.run(async ({ cluster }) => ask(await (await cluster).controller()));
  }

  /** Asks every broker. */
  atEach<T>(ask: (broker: KafkaBroker) => Promise<T>): Promise<T[]> {
    return this.run(async ({ cluster }) => Promise.all((await (await cluster).all()).map(ask)));
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
    const connection = { ...this.connection, brokers: order };
    const cluster = loadKafkaClient(this.client).then((client) => client(connection));
    const ready = cluster.then((connected) => connected.connect());
    // It may be dropped before anything waits for it.
    ready.catch(() => undefined);
    return { cluster, ready, leaders: new Map(), coordinators: new Map() };
  }

  private drop(attempt: Attempt): void {
    if (this.attempt === attempt) this.attempt = undefined;
    const reason = new Error('the connection to Kafka was given up');
    void attempt.cluster.then(
      (cluster) => cluster.destroy(reason),
      () => undefined,
    );
  }
}
