import { expect, test } from '@jest/globals';
import type { Delivery } from '@gpuwhisk/common/bus/message-bus';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { systemRandom } from '@gpuwhisk/common/system/random';
import { GroupProgress } from './group-progress.js';
import type { KafkaLink } from './kafka-link.js';
import type { KafkaBroker, KafkaRecord } from './kafka-broker.js';
import { TopicReader } from './topic-reader.js';

const batch = 100;
const text = 'x'.repeat(1000);

/** A broker that has messages without end, and gives a hundred of a thousand bytes at once. */
function endlessTopic() {
  const told = { fetches: 0 };
  const broker = {
    fetch: ({ offset: from }: Parameters<KafkaBroker['fetch']>[0]) => {
      told.fetches++;
      const records: KafkaRecord[] = Array.from({ length: batch }, (_, index) => ({
        offset: from + index,
        value: Buffer.from(JSON.stringify({ text })),
        isControl: false,
        batch: { firstOffset: from, producerId: '1', firstSequence: 0 },
      }));
      return Promise.resolve({ records, end: 1_000_000 });
    },
  } as unknown as KafkaBroker;
  const link = {
    atLeader: (_topic: string, ask: (broker: KafkaBroker) => Promise<unknown>) => ask(broker),
    close: () => undefined,
  } as unknown as KafkaLink;
  return { told, link };
}

/** Resolves once no more is fetched. */
async function settled(told: { fetches: number }): Promise<void> {
  for (let seen = -1; seen !== told.fetches;) {
    seen = told.fetches;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

test('a slow consumer has no more fetched for it than a bound; what it takes makes room', async () => {
  const { told, link } = endlessTopic();
  const nothing = (): void => undefined;
  const progress: GroupProgress = new GroupProgress(nothing, () => reader.wake());
  const got: Delivery[] = [];
  progress.subscribe(10, (delivery) => got.push(delivery));
  const reader: TopicReader = new TopicReader({
    ...{ topic: 't', link, progress, clock: systemClock, random: systemRandom },
    ...{ onFetched: nothing, onMalformed: nothing, onLost: nothing, onTrouble: nothing },
  });
  await settled(told);
  const before = told.fetches;
  expect(got).toHaveLength(10);
  expect(progress.waitingBytes).toBeLessThan(256 * 1024 + batch * 1100);

  for (let turn = 0; turn < 30; turn++) {
    for (const delivery of got.splice(0)) delivery.done();
    await Promise.resolve();
  }
  await settled(told);
  expect(told.fetches).toBeGreaterThan(before);
  expect(progress.waitingBytes).toBeLessThan(256 * 1024 + batch * 1100);
  reader.close();
});
