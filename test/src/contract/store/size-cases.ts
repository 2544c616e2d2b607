import { describe, expect, test } from '@jest/globals';
import { until } from '../../support/running-platform.js';
import { action, activation } from './documents.js';
import type { StoreUnderTest } from './documents.js';

const waitMs = 10_000;
const code = (length: number) => ({ name: 'code', contentType: 'text/plain', bytes: Buffer.alloc(length, 'x') });

/** Registers the cases for the bytes that namespaces have stored. */
export function testSizes(held: StoreUnderTest): void {
  const isWithin = (namespace: string, least: number, most: number) => async (): Promise<boolean> => {
    const bytes = held.store.storedBytes(namespace);
    return Promise.resolve(bytes !== undefined && bytes >= least && bytes <= most);
  };
  const expectBytes = (namespace: string, least: number, most = least): Promise<unknown> =>
    until(`${namespace} has stored ${least} to ${most} bytes`, isWithin(namespace, least, most), waitMs);

  describe('the bytes that a namespace has stored', () => {
    test('are those of its entities, code, versions and records, and of no others', async () => {
      const { store } = held;
      const first = await store.put('whisks', action('a', 1), [code(300_000)]);
      await store.put('whisks', action('b', 1, { _id: 'other/b', namespace: 'other' }), [code(50_000)]);
      await expectBytes('guest', 300_000, 303_000);
      await expectBytes('other', 50_000, 53_000);
      const version = { _id: 'action-version/guest/a//1-0.0.1' };
      const kept = await store.put('gpu', version, [code(300_000)]);
      await expectBytes('guest', 600_000, 606_000);
      const second = await store.put('whisks', { ...action('a', 2), _rev: first }, [code(1000)]);
      await expectBytes('guest', 301_000, 306_000);
      const records = Array.from({ length: 20 }, (_, at) => activation(at, at, { logs: ['x'.repeat(10_000)] }));
      await store.createMany('activations', records);
      // What is there already counts once.
      await store.createMany('activations', records);
      await expectBytes('guest', 501_000, 530_000);
      await expectBytes('other', 50_000, 53_000);
      expect([...store.storedNamespaces()].map(([namespace]) => namespace).sort()).toEqual(['guest', 'other']);
      for await (const removed of store.expire(1000)) expect(removed).toBeGreaterThanOrEqual(0);
      await store.delete('gpu', version._id, kept);
      await expectBytes('guest', 1000, 4000);
      await store.delete('whisks', 'guest/a', second);
      await expectBytes('guest', 0);
      await expectBytes('other', 50_000, 53_000);
    });

    test('are known after opening again', async () => {
      await held.store.put('whisks', action('a', 1), [code(10_000)]);
      await held.store.createMany('activations', [activation(1, 1)]);
      await expectBytes('guest', 10_400, 14_000);
      const bytes = held.store.storedBytes('guest') ?? 0;
      await held.store.close();
      held.store = await held.home.open();
      await expectBytes('guest', bytes);
    });

    test('are not those of accounts and of what the platform has learned', async () => {
      await held.store.put('subjects', { _id: 'guest', subject: 'guest' });
      await held.store.put('subjects', { _id: 'guest/limits', storedMiB: 1 });
      await held.store.put('gpu', { _id: 'workload/guest' });
      await expectBytes('guest', 0);
    });
  });
}
