import { describe, expect, test } from '@jest/globals';
import { DocumentConflictError, NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { NamedAttachment } from '@gpuwhisk/common/store/artifact-store';
import { action } from './documents.js';
import type { StoreUnderTest } from './documents.js';

function bytes(length: number, seed: number): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => (i * 31 + (i >> 8) + seed) & 0xff);
}

const attachment = (name: string, length = 9, seed = 1): NamedAttachment => ({
  name,
  contentType: 'a/b',
  bytes: bytes(length, seed),
});

/** Registers the cases for attachments. */
export function testAttachments(held: StoreUnderTest): void {
  describe('attachments', () => {
    test.each([0, 1, 100_000, 5_000_000])('%d bytes are read back, with their type', async (length) => {
      const id = 'guest/my pkg/a';
      const contentType = 'text/plain; charset=UTF-8';
      await held.store.put('whisks', action('a', 1, { _id: id }), [
        { name: 'co/de 1', contentType, bytes: bytes(length, 1) },
      ]);
      const read = await held.store.getAttachment('whisks', id, 'co/de 1');
      expect(read.contentType).toBe(contentType);
      expect(Buffer.compare(read.bytes, bytes(length, 1))).toBe(0);
    });

    test('they come and go with what is put, and a document shows nothing of them', async () => {
      const first = await held.store.put('whisks', action('a', 1), [attachment('x', 3_000_000), attachment('y')]);
      await held.store.put('whisks', action('ab', 1), [attachment('x')]);
      expect((await held.store.getAttachment('whisks', 'guest/a', 'y')).bytes).toHaveLength(9);
      const second = await held.store.put('whisks', { ...action('a', 2), _rev: first }, [attachment('x', 10, 2)]);
      const { bytes: shorter } = await held.store.getAttachment('whisks', 'guest/a', 'x');
      expect(Buffer.compare(shorter, bytes(10, 2))).toBe(0);
      await expect(held.store.getAttachment('whisks', 'guest/a', 'y')).rejects.toBeInstanceOf(NoDocumentError);
      expect(await held.store.get('whisks', 'guest/a')).toEqual({ ...action('a', 2), _rev: second });
      const [row] = await held.store.list('whisks', { limit: 1 });
      expect(row).toEqual({ ...action('a', 2), _rev: second });
      const third = await held.store.put('whisks', { ...action('a', 3), _rev: second }, []);
      await expect(held.store.getAttachment('whisks', 'guest/a', 'x')).rejects.toBeInstanceOf(NoDocumentError);
      const fourth = await held.store.put('whisks', { ...action('a', 4), _rev: third }, [attachment('z')]);
      await held.store.delete('whisks', 'guest/a', fourth);
      await expect(held.store.getAttachment('whisks', 'guest/a', 'z')).rejects.toBeInstanceOf(NoDocumentError);
      expect((await held.store.getAttachment('whisks', 'guest/ab', 'x')).bytes).toHaveLength(9);
    });

    test('a document that is replaced without any keeps what it had', async () => {
      const first = await held.store.put('whisks', action('a', 1), [attachment('x', 100_000)]);
      const second = await held.store.put('whisks', { ...action('a', 2), _rev: first });
      await held.store.put('whisks', { ...action('a', 3), _rev: second });
      const read = await held.store.getAttachment('whisks', 'guest/a', 'x');
      expect(Buffer.compare(read.bytes, bytes(100_000, 1))).toBe(0);
    });

    test('a put that is refused leaves them alone', async () => {
      const first = await held.store.put('whisks', action('a', 1), [attachment('x')]);
      await held.store.put('whisks', { ...action('a', 2), _rev: first });
      const stale = held.store.put('whisks', { ...action('a', 3), _rev: first }, [attachment('x', 5)]);
      await expect(stale).rejects.toBeInstanceOf(DocumentConflictError);
      expect((await held.store.getAttachment('whisks', 'guest/a', 'x')).bytes).toHaveLength(9);
    });

    test('a document that is made anew has none of the one that was deleted', async () => {
      const revision = await held.store.put('whisks', action('a', 1), [attachment('x')]);
      await held.store.delete('whisks', 'guest/a', revision);
      await held.store.put('whisks', action('a', 1));
      await expect(held.store.getAttachment('whisks', 'guest/a', 'x')).rejects.toBeInstanceOf(NoDocumentError);
    });
  });
}
