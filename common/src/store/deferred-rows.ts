import type { Table, LmdbWrites } from './lmdb-table.js';

/** Rows that are put into their view together. */
const rowsPerMerge = 1000;
const nothing = Buffer.alloc(0);

/** Rows that were written together, under their key in the log. */
interface Batch {
  key: Buffer;
  rows: readonly Buffer[];
}

/**
 * The rows of a view which documents that are created together have all over it. Put there with them, each would cost the
 * writing of a page or more; so they are in a log, one entry for all of them, until there are a thousand. A row is a key
 * without a value. Readers of the view look there, too (deferredWithin).
 */
export class DeferredRows {
  /** Durable in the log, the oldest first; those being put into the view are the first ones. */
  private readonly batches: Batch[];
  private nextEntry = 0;
  private merging: Promise<void> | undefined;

  constructor(
    private readonly view: Table,
    private readonly log: Table,
    private readonly writes: LmdbWrites,
  ) {
    this.batches = batchesIn(log);
    const last = this.batches.at(-1);
    if (last) this.nextEntry = Number(last.key.readBigUInt64BE()) + 1;
  }

  /** Logs rows as part of a durable write; the function returned is to be called when that has succeeded. */
  add(rows: readonly Buffer[]): () => void {
    if (rows.length === 0) return () => undefined;
    const key = Buffer.alloc(8);
    key.writeBigUInt64BE(BigInt(this.nextEntry++));
    this.writes.note(this.log.put(key, encode(rows)));
    return () => {
      this.batches.push({ key, rows });
      const waiting = this.batches.reduce((total, batch) => total + batch.rows.length, 0);
      // What cannot be put there now stays in the log, and is tried again with the next.
      if (waiting >= rowsPerMerge) this.merge().catch(() => undefined);
    };
  }

  /** Resolves when what is in the log now is in the view. Rejects with StoreWriteError. */
  async merged(): Promise<void> {
    await this.idle();
    if (this.batches.length > 0) await this.merge();
  }

  /** Resolves when nothing is being put into the view. */
  async idle(): Promise<void> {
    await this.merging?.catch(() => undefined);
  }

  private merge(): Promise<void> {
    this.merging ??= this.putAll([...this.batches]).finally(() => (this.merging = undefined));
    return this.merging;
  }

  private async putAll(batches: readonly Batch[]): Promise<void> {
    // In the view's order each page is found once.
    const rows = batches.flatMap((batch) => batch.rows).sort((one, other) => Buffer.compare(one, other));
    await this.writes.durable(() => {
      for (const row of rows) this.writes.note(this.view.put(row, nothing));
      for (const { key } of batches) this.writes.note(this.log.remove(key));
    });
    this.batches.splice(0, batches.length);
  }
}

/** The rows in the log from `start` (included) to `end` (excluded), in no order. Some may be in the view by now. */
export function deferredWithin(log: Table, start: Uint8Array, end: Uint8Array): Buffer[] {
  const isWithin = (row: Buffer): boolean => Buffer.compare(row, start) >= 0 && Buffer.compare(row, end) < 0;
  return batchesIn(log).flatMap(({ rows }) => rows.filter(isWithin));
}

function batchesIn(log: Table): Batch[] {
  return Array.from(log.getRange(), ({ key, value }) => ({ key: Buffer.from(key), rows: decode(Buffer.from(value)) }));
}

/** Each row after its length in two bytes. */
function encode(rows: readonly Buffer[]): Buffer {
  const bytes = Buffer.allocUnsafe(rows.reduce((total, row) => total + 2 + row.length, 0));
  let at = 0;
  for (const row of rows) {
    at = bytes.writeUInt16BE(row.length, at);
    at += row.copy(bytes, at);
  }
  return bytes;
}

function decode(bytes: Buffer): Buffer[] {
  const rows: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const length = bytes.readUInt16BE(at);
    at += 2;
    rows.push(bytes.subarray(at, at + length));
    at += length;
  }
  return rows;
}
