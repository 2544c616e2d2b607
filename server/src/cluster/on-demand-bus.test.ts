import { expect, test } from '@jest/globals';
import { TopicFullError } from '@gpuwhisk/common/bus/message-bus';
import type { MessageBus } from '@gpuwhisk/common/bus/message-bus';
import type { JsonObject } from '@gpuwhisk/common/json';
import { onDemandBus } from './on-demand-bus.js';

const options = { durable: true, maxPendingMessages: 1, maxPendingBytes: 1 };

/** A bus whose topics open when `open` is called, or fail. */
function slowBus() {
  const sent: [string, JsonObject][] = [];
  const ensured: string[] = [];
  let settle: (error?: Error) => void = () => undefined;
  const bus: MessageBus = {
    ensureTopic: (topic) => {
      ensured.push(topic);
      return new Promise((resolve, reject) => {
        settle = (error) => (error === undefined ? resolve() : reject(error));
      });
    },
    send: (topic, message) => {
      sent.push([topic, message]);
      return { synced: () => Promise.resolve() };
    },
    subscribe: () => Promise.reject(new Error('not here')),
    lag: () => 0,
    close: () => Promise.resolve(),
  };
  return { bus, sent, ensured, open: (error?: Error) => settle(error) };
}

test('the first message opens its topic; all go out in order, and later ones at once', async () => {
  const { bus, sent, ensured, open } = slowBus();
  const onDemand = onDemandBus(bus, () => options);
  const receipts = [1, 2, 3].map((n) => onDemand.send('completed7', { n }));
  expect(sent).toEqual([]);
  open();
  for (const receipt of receipts) await receipt.synced();
  onDemand.send('completed7', { n: 4 });
  expect(sent.map(([, { n }]) => n)).toEqual([1, 2, 3, 4]);
  expect(ensured).toEqual(['completed7']);
});

test('what is sent in the moment in which its topic opens does not overtake what has waited', async () => {
  const { bus, sent, open } = slowBus();
  const onDemand = onDemandBus(bus, () => options);
  const receipts = [1, 2, 3].map((n) => onDemand.send('completed7', { n }));
  open();
  // Sends one message in each turn of the event loop while the topic opens, however many turns the opening takes.
  for (let n = 4; n < 20; n++) {
    await Promise.resolve();
    receipts.push(onDemand.send('completed7', { n }));
  }
  for (const receipt of receipts) await receipt.synced();
  expect(sent.map(([, { n }]) => n)).toEqual(Array.from({ length: 19 }, (_, at) => at + 1));
});

test('where a topic cannot be opened those who wait are told, and the next message tries again', async () => {
  const { bus, sent, ensured, open } = slowBus();
  const onDemand = onDemandBus(bus, () => options);
  const lost = onDemand.send('completed7', { n: 1 });
  open(new Error('no broker'));
  await expect(lost.synced()).rejects.toThrow('no broker');
  const next = onDemand.send('completed7', { n: 2 });
  open();
  await next.synced();
  expect(sent).toEqual([['completed7', { n: 2 }]]);
  expect(ensured).toHaveLength(2);
});

test('no more than a thousand messages wait for a topic', () => {
  const onDemand = onDemandBus(slowBus().bus, () => options);
  for (let n = 0; n < 1000; n++) onDemand.send('completed7', { n });
  expect(() => onDemand.send('completed7', { n: 1000 })).toThrow(TopicFullError);
});
