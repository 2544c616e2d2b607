import { TopicFullError } from '@gpuwhisk/common/bus/message-bus';
import type { MessageBus, Receipt, TopicOptions } from '@gpuwhisk/common/bus/message-bus';
import type { JsonObject } from '@gpuwhisk/common/json';

/** Messages that may wait for a topic to be opened. */
const maxWaiting = 1000;

/** A message that waits for its topic. */
interface Waiting {
  message: JsonObject;
  sent(receipt: Receipt): void;
  failed(error: unknown): void;
}

/**
 * A bus that opens a topic of another process when the first message is sent to it; messages go out in the order of
 * sending. `topicOptions` gives the options of a topic that another process consumes.
 */
export function onDemandBus(inner: MessageBus, topicOptions: (topic: string) => TopicOptions): MessageBus {
  const open = new Set<string>();
  const opening = new Map<string, Waiting[]>();

  async function ensureTopic(topic: string, options: TopicOptions): Promise<void> {
    await inner.ensureTopic(topic, options);
    // All in one step: a message that is sent next must not overtake the waiting ones.
    open.add(topic);
    const waiting = opening.get(topic) ?? [];
    opening.delete(topic);
    for (const { message, sent, failed } of waiting) {
      try {
        sent(inner.send(topic, message));
      } catch (error) {
        failed(error);
      }
    }
  }

  function waitingFor(topic: string): Waiting[] {
    const known = opening.get(topic);
    if (known !== undefined) return known;
    const waiting: Waiting[] = [];
    opening.set(topic, waiting);
    ensureTopic(topic, topicOptions(topic)).catch((error: unknown) => {
      if (opening.get(topic) === waiting) opening.delete(topic);
      for (const { failed } of waiting) failed(error);
    });
    return waiting;
  }

  function sendLater(topic: string, message: JsonObject): Receipt {
    const waiting = waitingFor(topic);
    if (waiting.length >= maxWaiting) throw new TopicFullError(topic, waiting.length, maxWaiting);
    const sent = new Promise<Receipt>((resolve, failed) => waiting.push({ message, sent: resolve, failed }));
    const synced = sent.then((receipt) => receipt.synced());
    // A receipt that is not awaited must not count as an unhandled rejection.
    synced.catch(() => undefined);
    return { synced: () => synced };
  }

  return {
    ensureTopic,
    send: (topic, message, text) => (open.has(topic) ? inner.send(topic, message, text) : sendLater(topic, message)),
    subscribe: (topic, group, options, handler) => inner.subscribe(topic, group, options, handler),
    lag: (topic, group) => inner.lag(topic, group),
    close: () => inner.close(),
  };
}
