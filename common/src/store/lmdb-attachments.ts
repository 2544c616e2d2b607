// Attachments in LMDB, in pieces.
import type { Attachment, DatabaseName, NamedAttachment } from './artifact-store.js';
import { NoDocumentError } from './artifact-store.js';
import { KeyQueue } from './key-queue.js';
import type { LmdbWrites, ReadTransaction, Root, Table } from './lmdb-table.js';
import { tableOptions, textOf } from './lmdb-table.js';
import { parseRow, rangeUnder, rowKey } from './view-key.js';

/** Attachments are cut into pieces, as LMDB looks for one stretch of free pages for each value. */
const pieceBytes = 1024 * 1024;

interface Description {
  contentType: string;
  bytes: number;
  /** The revision in the keys of its pieces, where they were written before the document. */
  revision?: string;
}

/** Opens the table of attachments. */
export const attachmentTable = (root: Root): Table => root.openDB('attachments', tableOptions);

/** Elements of the key of a description. */
const describingElements = 3;

/** Bytes of the attachment that a row of the table describes; 0 for a row of one of its pieces. */
export function describedBytes(table: Table, row: Buffer, transaction?: ReadTransaction): number {
  if (parseRow(row).key.length > describingElements) return 0;
  const described = table.get(row, transaction && { transaction });
  return described === undefined ? 0 : (JSON.parse(textOf(described)) as Description).bytes;
}

/** Of a document that is being written. */
interface Owner {
  database: DatabaseName;
  id: string;
  /** The one that it will have. */
  revision: string;
}

/**
 * Attachments: [database, id, name] → its description, [database, id, name, 0...] → its pieces. Pieces of a large one are
 * written before its document, at [database, id, name, revision, 0...]: one commit each, as every other write waits for a
 * commit, and 48 MiB take 150 ms. A note at [database, id, revision] says so until the document is there.
 */
export class LmdbAttachments {
  /** One piece at a time, of all documents. */
  private readonly turns = new KeyQueue();

  private readonly table: Table;
  private readonly ahead: Table;

  constructor(
    root: Root,
    private readonly writes: LmdbWrites,
  ) {
    this.table = attachmentTable(root);
    this.ahead = root.openDB('attachments ahead', tableOptions);
  }

  /** Writes the pieces of large attachments, which `replace` then makes a document's. Rejects with StoreWriteError. */
  async writeAhead(owner: Owner, attachments: readonly NamedAttachment[]): Promise<void> {
    const large = attachments.filter(isLarge);
    if (large.length === 0) return;
    const { database, id, revision } = owner;
    const commit = (gather: () => void): Promise<void> => this.turns.run('piece', () => this.writes.durable(gather));
    await commit(() => this.writes.note(this.ahead.put(noteKey(owner), Buffer.alloc(0))));
    try {
      for (const { name, bytes } of large) {
        for (const [at, piece] of piecesOf(bytes).entries()) {
          await commit(() => this.note(rowKey([database, id, name, revision, at], ''), piece));
        }
      }
    } catch (error) {
      // What cannot be removed now is removed when the store is opened again.
      await commit(() => this.removeAhead(owner)).catch(() => undefined);
      throw error;
    }
  }

  /**
   * Gives a document these attachments in place of those that it had, as part of a durable write. Returns by how many bytes
   * there are more of them.
   */
  replace({ database, id, revision }: Owner, attachments: readonly NamedAttachment[]): number {
    let more = -this.removeAll(database, id, revision);
    for (const attachment of attachments) {
      const { name, contentType, bytes } = attachment;
      more += bytes.length;
      const large = isLarge(attachment);
      const description: Description = { contentType, bytes: bytes.length, ...(large && { revision }) };
      this.note(rowKey([database, id, name], ''), Buffer.from(JSON.stringify(description)));
      if (large) continue;
      for (const [at, piece] of piecesOf(bytes).entries()) this.note(rowKey([database, id, name, at], ''), piece);
    }
    this.writes.note(this.ahead.remove(noteKey({ database, id, revision })));
    return more;
  }

  /** Removes pieces whose documents were never written. Rejects with StoreWriteError. */
  async removeUnfinished(): Promise<void> {
    for (const note of Array.from(this.ahead.getKeys(), (key) => Buffer.from(key))) {
      const [database, id, revision] = parseRow(note).key as [DatabaseName, string, string];
      await this.writes.durable(() => this.removeAhead({ database, id, revision }));
    }
  }

  /** The size of an attachment, bytes. Throws NoDocumentError. */
  bytesOf(database: DatabaseName, id: string, name: string): number {
    return this.described(database, id, name).bytes;
  }

  /** An attachment, in a buffer of its own. Throws NoDocumentError. */
  get(database: DatabaseName, id: string, name: string): Attachment {
    const description = this.described(database, id, name);
    const under = description.revision === undefined ? [name] : [name, description.revision];
    const bytes = Buffer.allocUnsafeSlow(description.bytes);
    let at = 0;
    for (let piece = 0; at < bytes.length; piece++) {
      const part = this.table.getBinary(rowKey([database, id, ...under, piece], ''));
      if (!part) throw new Error(`attachment '${name}' of '${id}' is incomplete`);
      bytes.set(part, at);
      at += part.length;
    }
    return { contentType: description.contentType, bytes };
  }

  private described(database: DatabaseName, id: string, name: string): Description {
    const described = this.table.getBinary(rowKey([database, id, name], ''));
    if (!described) throw new NoDocumentError(`${id}/${name}`);
    return JSON.parse(described.toString('utf8')) as Description;
  }

  /**
   * Removes a document's attachments, but for pieces of `revision`, as part of a durable write. Returns the bytes that they
   * had.
   */
  removeAll(database: DatabaseName, id: string, revision?: string): number {
    let bytes = 0;
    for (const row of this.rowsOf(database, id)) {
      if (revision !== undefined && isAhead(row, revision)) continue;
      bytes += describedBytes(this.table, row);
      this.writes.note(this.table.remove(row));
    }
    return bytes;
  }

  private removeAhead({ database, id, revision }: Owner): void {
    for (const row of this.rowsOf(database, id)) if (isAhead(row, revision)) this.writes.note(this.table.remove(row));
    this.writes.note(this.ahead.remove(noteKey({ database, id, revision })));
  }

  /** Read whole first: reading a value goes through the buffer that the range lends its keys from. */
  private rowsOf(database: DatabaseName, id: string): Buffer[] {
    return Array.from(this.table.getKeys(rangeUnder([database, id])), (key) => Buffer.from(key));
  }

  private note(key: Buffer, value: Uint8Array): void {
    this.writes.note(this.table.put(key, value));
  }
}

const isLarge = ({ bytes }: NamedAttachment): boolean => bytes.length > pieceBytes;

const noteKey = ({ database, id, revision }: Owner): Buffer => rowKey([database, id, revision], '');

/** Whether a row is a piece that was written before its document got `revision`. */
const isAhead = (row: Uint8Array, revision: string): boolean => parseRow(row).key[3] === revision;

function piecesOf(bytes: Uint8Array): Buffer[] {
  const source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const count = Math.ceil(source.length / pieceBytes);
  return Array.from({ length: count }, (_, at) => source.subarray(at * pieceBytes, (at + 1) * pieceBytes));
}
