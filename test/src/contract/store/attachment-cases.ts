import { describe, expect, test } from '@jest/globals';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import { action } from './documents.js';
import type { StoreUnderTest } from './documents.js';

/** Attachments. */
export function testAttachments(held: StoreUnderTest): void {
  describe('attachments', () => {
    const bytes = (length: number, seed: number): Uint8Array =>
      Uint8Array.from({ length }, (_, i) => (i * 31 + (i >> 8) + seed) & 0xff);

    test.each([0, 1, 100_000, 5_000_000])('%d bytes are read back, with their type', async (length) => {
      await held.store.putAttachment(
        'whisks',
        'guest/my pkg/a',
        'couch:1',
        'text/plain; charset=UTF-8',
        bytes(length, 1),
      );
      const read = await held.store.getAttachment('whisks', 'guest/my pkg/a', 'couch:1');
      expect(read.contentType).toBe('text/plain; charset=UTF-8');
      expect(Buffer.compare(read.bytes, bytes(length, 1))).toBe(0);
    });

    test('a shorter attachment replaces a longer one', async () => {
      await held.store.putAttachment('whisks', 'guest/a', 'x', 'a/b', bytes(3_000_000, 1));
      await held.store.putAttachment('whisks', 'guest/a', 'x', 'c/d', bytes(10, 2));
      const read = await held.store.getAttachment('whisks', 'guest/a', 'x');
      expect(read.contentType).toBe('c/d');
      expect(Buffer.compare(read.bytes, bytes(10, 2))).toBe(0);
    });

    test('all but one can be deleted, and all go with the document', async () => {
      const revision = await held.store.put('whisks', action('a', 1));
      for (const name of ['x', 'y', 'z']) await held.store.putAttachment('whisks', 'guest/a', name, 'a/b', bytes(9, 1));
      await held.store.putAttachment('whisks', 'guest/ab', 'x', 'a/b', bytes(9, 1));
      await held.store.deleteAttachments('whisks', 'guest/a', 'y');
      await expect(held.store.getAttachment('whisks', 'guest/a', 'x')).rejects.toBeInstanceOf(NoDocumentError);
      expect((await held.store.getAttachment('whisks', 'guest/a', 'y')).bytes).toHaveLength(9);
      const replaced = await held.store.put('whisks', { ...action('a', 2), _rev: revision });
      expect((await held.store.getAttachment('whisks', 'guest/a', 'y')).bytes).toHaveLength(9);
      await held.store.delete('whisks', 'guest/a', replaced);
      await expect(held.store.getAttachment('whisks', 'guest/a', 'y')).rejects.toBeInstanceOf(NoDocumentError);
      expect((await held.store.getAttachment('whisks', 'guest/ab', 'x')).bytes).toHaveLength(9);
    });
  });
}
