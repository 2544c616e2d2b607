import { TopicFullError } from '@gpuwhisk/common/bus/message-bus';
import type { MessageBus, Receipt, TopicOptions } from '@gpuwhisk/common/bus/message-bus';
import type { JsonObject } from '@gpuwhisk/common/json';

/** Messages that may wait for a topic to be opened. */
const maxWaiting = 1000;

/** A topic that is being opened, and how many messages wait for that. */
interface Opening {
  opened: Promise<void>;
  waiting: number;
}

/**
 * A bus whose topics of other processes are opened by the first message that is sent to them. `topicOptions` tells how a
 * topic is made that another process consumes.
 */
export function onDemandBus(inner: MessageBus, topicOptions: (topic: string) => TopicOptions): MessageBus {
  const open = new Set<string>();
  const opening = new Map<string, Opening>();

  async function ensureTopic(topic: string, options: TopicOptions): Promise<void> {
    await inner.ensureTopic(topic, options);
    open.add(topic);
  }

  function openingOf(topic: string): Opening {
    const known = opening.get(topic);
    if (known !== undefined) return known;
    const opened = ensureTopic(topic, topicOptions(topic)).finally(() => opening.delete(topic));
    const created = { opened, waiting: 0 };
    opening.set(topic, created);
    return created;
  }

  function sendLater(topic: string, message: JsonObject): Receipt {
    const found = openingOf(topic);
    if (found.waiting >= maxWaiting) throw new TopicFullError(topic, found.waiting, maxWaiting);
    found.waiting++;
    // In the order of sending: who waits for one promise goes on in the order of waiting.
    const sent = found.opened.then(() => inner.send(topic, message).synced());
    // Who does not ask does not care.
    sent.catch(() => undefined);
    return { synced: () => sent };
  }

  return {
    ensureTopic,
    send: (topic, message) => (open.has(topic) ? inner.send(topic, message) : sendLater(topic, message)),
    subscribe: (topic, group, options, handler) => inner.subscribe(topic, group, options, handler),
    lag: (topic, group) => inner.lag(topic, group),
    close: () => inner.close(),
  };
}
