import type { Attachment, DatabaseName, NamedAttachment } from './artifact-store.js';
import { NoDocumentError } from './artifact-store.js';
import type { Table } from './lmdb-table.js';
import type { LmdbWrites } from './lmdb-writes.js';
import { rangeUnder, rowKey } from './view-key.js';

/** Attachments are cut into pieces, as LMDB looks for one stretch of free pages for each value. */
const pieceBytes = 1024 * 1024;

interface Description {
  contentType: string;
  bytes: number;
}

/** Attachments: [database, id, name] → its description, [database, id, name, 0...] → its pieces. */
export class LmdbAttachments {
  constructor(
    private readonly table: Table,
    private readonly writes: LmdbWrites,
  ) {}

  /** Gives a document these attachments in place of those that it had, as part of a durable write. */
  replace(database: DatabaseName, id: string, attachments: readonly NamedAttachment[]): void {
    this.removeAll(database, id);
    for (const { name, contentType, bytes } of attachments) {
      const source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const description: Description = { contentType, bytes: source.length };
      this.note(rowKey([database, id, name], ''), Buffer.from(JSON.stringify(description)));
      for (let piece = 0; piece * pieceBytes < source.length; piece++) {
        const part = source.subarray(piece * pieceBytes, (piece + 1) * pieceBytes);
        this.note(rowKey([database, id, name, piece], ''), part);
      }
    }
  }

  get(database: DatabaseName, id: string, name: string): Attachment {
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

  /** Removes a document's attachments, as part of a durable write. */
  removeAll(database: DatabaseName, id: string): void {
    for (const row of this.table.getKeys(rangeUnder([database, id]))) this.writes.note(this.table.remove(row));
  }

  private note(key: Buffer, value: Uint8Array): void {
    this.writes.note(this.table.put(key, value));
  }
}
