import { describe, expect, test } from '@jest/globals';
import { DocumentConflictError, NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import { action } from './documents.js';
import type { StoreUnderTest } from './documents.js';

/** Registers the cases for documents and their revisions. */
export function testDocuments(held: StoreUnderTest): void {
  describe('documents', () => {
    test('a new document gets revision 1-..., and is read back with it', async () => {
      const revision = await held.store.put('whisks', action('hello', 1));
      expect(revision).toMatch(/^1-[0-9a-f]{32}$/);
      expect(await held.store.get('whisks', 'guest/hello')).toEqual({ ...action('hello', 1), _rev: revision });
    });

    test('a replacement needs the stored revision and counts on', async () => {
      const first = await held.store.put('whisks', action('hello', 1));
      const second = await held.store.put('whisks', { ...action('hello', 2), _rev: first });
      expect(second).toMatch(/^2-/);
      expect((await held.store.get('whisks', 'guest/hello')).updated).toBe(2);
    });

    test.each([
      ['a stale revision', '1-00000000000000000000000000000000'],
      ['no revision', undefined],
    ])('a replacement with %s is refused', async (_, revision) => {
      await held.store.put('whisks', action('hello', 1));
      const attempt = revision === undefined ? action('hello', 2) : { ...action('hello', 2), _rev: revision };
      await expect(held.store.put('whisks', attempt)).rejects.toBeInstanceOf(DocumentConflictError);
      expect((await held.store.get('whisks', 'guest/hello')).updated).toBe(1);
    });

    test('a revision for a document that is not there is refused', async () => {
      const attempt = { ...action('hello', 1), _rev: '1-00000000000000000000000000000000' };
      await expect(held.store.put('whisks', attempt)).rejects.toBeInstanceOf(DocumentConflictError);
    });

    test('of two creations at once one wins', async () => {
      const results = await Promise.allSettled([
        held.store.put('whisks', action('hello', 1)),
        held.store.put('whisks', action('hello', 2)),
      ]);
      expect(results.map((result) => result.status).sort()).toEqual(['fulfilled', 'rejected']);
    });

    test('of many replacements of one revision at once one wins', async () => {
      const first = await held.store.put('whisks', action('hello', 0));
      const attempts = Array.from({ length: 10 }, (_, i) =>
        held.store.put('whisks', { ...action('hello', i), _rev: first }),
      );
      const results = await Promise.allSettled(attempts);
      expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(1);
      expect((await held.store.get('whisks', 'guest/hello'))._rev).toMatch(/^2-/);
    });

    test('a document that is not there cannot be read or deleted', async () => {
      await expect(held.store.get('whisks', 'guest/none')).rejects.toBeInstanceOf(NoDocumentError);
      await expect(held.store.delete('whisks', 'guest/none', '1-0')).rejects.toBeInstanceOf(NoDocumentError);
    });

    test('deleting needs the stored revision, and frees the id', async () => {
      const revision = await held.store.put('whisks', action('hello', 1));
      await expect(held.store.delete('whisks', 'guest/hello', '1-0')).rejects.toBeInstanceOf(DocumentConflictError);
      await held.store.delete('whisks', 'guest/hello', revision);
      await expect(held.store.get('whisks', 'guest/hello')).rejects.toBeInstanceOf(NoDocumentError);
      await held.store.put('whisks', action('hello', 2));
      expect((await held.store.get('whisks', 'guest/hello')).updated).toBe(2);
    });

    test('databases are apart', async () => {
      await held.store.put('whisks', action('hello', 1));
      await expect(held.store.get('activations', 'guest/hello')).rejects.toBeInstanceOf(NoDocumentError);
    });

    test.each([
      ['spaces and slashes', 'guest/my package/a b.c@d'],
      ['letters beyond ASCII', 'gäst/世界/😀'],
      ['700 characters', `guest/${'p'.repeat(256)}/${'n'.repeat(256)}${'x'.repeat(180)}`],
    ])('ids may have %s', async (_, id) => {
      await held.store.put('whisks', { _id: id, text: 'ünïcödé 😀 \u0000 \u2028' });
      expect((await held.store.get('whisks', id)).text).toBe('ünïcödé 😀 \u0000 \u2028');
    });

    test('a document may have a megabyte', async () => {
      const code = 'é'.repeat(500_000);
      await held.store.put('whisks', action('large', 1, { exec: { kind: 'nodejs:20', code, binary: false } }));
      expect((await held.store.get('whisks', 'guest/large')).exec).toEqual({ kind: 'nodejs:20', code, binary: false });
    });

    test('a document that was read belongs to the reader', async () => {
      await held.store.put('whisks', action('hello', 1));
      const mine = await held.store.get('whisks', 'guest/hello');
      mine.updated = 99;
      expect((await held.store.get('whisks', 'guest/hello')).updated).toBe(1);
    });
  });
}
