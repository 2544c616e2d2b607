import type { MessageBus, Subscription } from '@gpuwhisk/common/bus/message-bus';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { InvalidationMessage } from '@gpuwhisk/common/messages';

/** The name of OpenWhisk's topic. */
const topic = 'cacheInvalidation';
const maxInFlight = 1000;
const maxPendingMessages = 100_000;

/**
 * Tells controllers about each other's changes, so that their caches drop changed entities. An entity whose change was
 * missed expires by its age.
 */
export class EntityChanges {
  private readonly listeners = new Set<(id: string) => void>();
  private readonly own: string;
  private subscription: Subscription | undefined;

  constructor(
    private readonly bus: MessageBus,
    private readonly logger: Logger,
    instance: number,
  ) {
    this.own = `controller${instance}`;
  }

  async open(): Promise<void> {
    await this.bus.ensureTopic(topic, { durable: false, maxPendingMessages, maxPendingBytes: Infinity });
    this.subscription = await this.bus.subscribe(topic, `${topic}${this.own}`, { maxInFlight }, (delivery) => {
      this.take(delivery.message);
      delivery.done();
    });
  }

  async close(): Promise<void> {
    await this.subscription?.close();
  }

  /** Announces that the entity of an id, `ns/name` or `ns/pkg/name`, was or may have been changed here. */
  announce(id: string): void {
    const message: InvalidationMessage = { key: { mainId: id }, instanceId: this.own };
    try {
      this.bus.send(topic, message as unknown as JsonObject);
    } catch (error) {
      this.logger.error({ id, error: String(error) }, 'a change will take effect late at other controllers');
    }
  }

  /** Calls `listener`, which must not throw, with the id of each entity that another controller has changed. */
  onElsewhere(listener: (id: string) => void): void {
    this.listeners.add(listener);
  }

  private take(message: JsonObject): void {
    const { key, instanceId } = message as { key?: { mainId?: unknown }; instanceId?: unknown };
    const id = key?.mainId;
    if (instanceId === this.own || typeof id !== 'string') return;
    for (const listener of this.listeners) listener(id);
  }
}
