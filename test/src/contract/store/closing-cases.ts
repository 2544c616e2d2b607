import { describe, expect, test } from '@jest/globals';
import { action, activation, idsIn, newestFirst } from './documents.js';
import type { StoreUnderTest } from './documents.js';

/** Registers the cases for data that must survive closing and reopening a store. */
export function testClosing(held: StoreUnderTest): void {
  describe('closing', () => {
    test('everything is there after opening again', async () => {
      const code = { name: 'x', contentType: 'a/b', bytes: Buffer.from('code') };
      const revision = await held.store.put('whisks', action('hello', 1), [code]);
      await held.store.createMany('activations', [activation(1, 1), activation(2, 2)]);
      await held.store.close();
      held.store = await held.home.open();
      expect((await held.store.get('whisks', 'guest/hello'))._rev).toBe(revision);
      expect(await idsIn(held.store, newestFirst('activations', 'guest'))).toEqual([
        activation(2, 2)._id,
        activation(1, 1)._id,
      ]);
      expect(Buffer.from((await held.store.getAttachment('whisks', 'guest/hello', 'x')).bytes).toString()).toBe('code');
    });

    test('a write that was under way is finished or fails', async () => {
      const write = held.store.put('whisks', action('hello', 1)).then(
        () => true,
        () => false,
      );
      await held.store.close();
      const written = await write;
      held.store = await held.home.open();
      const found = await held.store.get('whisks', 'guest/hello').then(
        () => true,
        () => false,
      );
      expect(found || !written).toBe(true);
    });

    test('a closed held.store refuses; closing twice is once', async () => {
      await held.store.close();
      await held.store.close();
      await expect(held.store.put('whisks', action('hello', 1))).rejects.toThrow('closed');
      await expect(held.store.get('whisks', 'guest/hello')).rejects.toThrow('closed');
      await expect(held.store.query('whisks', newestFirst('actions', 'guest'))).rejects.toThrow('closed');
    });
  });
}
