import type { Database } from 'lmdb';
import type { DatabaseName } from './artifact-store.js';
import { NoDocumentError } from './artifact-store.js';
import type { LmdbWrites } from './lmdb-writes.js';
import { parseRow, rangeUnder, rowKey } from './view-key.js';

/** Attachments are cut into pieces, as LMDB looks for one stretch of free pages for each value. */
const pieceBytes = 1024 * 1024;

interface Description {
  contentType: string;
  bytes: number;
}

/** Attachments: [database, id, name] → its description, [database, id, name, 0...] → its pieces. */
export class LmdbAttachments {
  constructor(
    private readonly table: Database<Uint8Array, Uint8Array>,
    private readonly writes: LmdbWrites,
  ) {}

  put(database: DatabaseName, id: string, name: string, contentType: string, bytes: Uint8Array): Promise<void> {
    const { table, writes } = this;
    const source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return writes.durable(() => {
      this.removeUnder([database, id, name]);
      const description: Description = { contentType, bytes: source.length };
      writes.note(table.put(rowKey([database, id, name], ''), Buffer.from(JSON.stringify(description))));
      for (let piece = 0; piece * pieceBytes < source.length; piece++) {
        const part = source.subarray(piece * pieceBytes, (piece + 1) * pieceBytes);
        writes.note(table.put(rowKey([database, id, name, piece], ''), part));
      }
    });
  }

  get(database: DatabaseName, id: string, name: string): { contentType: string; bytes: Uint8Array } {
    const described = this.table.getBinary(rowKey([database, id, name], ''));
    if (!described) throw new NoDocumentError(`${id}/${name}`);
    const description = JSON.parse(described.toString('utf8')) as Description;
    const bytes = Buffer.allocUnsafeSlow(description.bytes);
    let at = 0;
    for (let piece = 0; at < bytes.length; piece++) {
      const part = this.table.getBinary(rowKey([database, id, name, piece], ''));
      if (!part) throw new Error(`attachment '${name}' of '${id}' is incomplete`);
      bytes.set(part, at);
      at += part.length;
    }
    return { contentType: description.contentType, bytes };
  }

  /** Removes all of a document's attachments but `except`, as part of a durable write. */
  removeAll(database: DatabaseName, id: string, except?: string): void {
    this.removeUnder([database, id], except);
  }

  private removeUnder(prefix: string[], except?: string): void {
    for (const row of this.table.getKeys(rangeUnder(prefix))) {
      if (except === undefined || parseRow(row).key[2] !== except) this.writes.note(this.table.remove(row));
    }
  }
}
