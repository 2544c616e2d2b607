// Bytes that each namespace has stored in LMDB, counted with the writes that change them.
import { tableOptions, textOf } from './lmdb-table.js';
import type { LmdbWrites, ReadTransaction, Root, Table } from './lmdb-table.js';
import { addBytes } from './stored-bytes.js';
import type { NamespaceBytes } from './stored-bytes.js';

/**
 * Who has counted: the store's thread, the thread that creates and expires records, the one that creates large ones, or the
 * count of data that was stored before there were counts. Each writes its own rows, so that no write waits for another
 * thread. A namespace has the sum.
 */
export type Counter = 'store' | 'records' | 'largeRecords' | 'before';

/** Notes a change of a namespace's bytes that a durable write makes; undefined is the platform. */
export type NoteBytes = (namespace: string | undefined, bytes: number) => void;

/** Row that is there once the data of earlier releases has been counted. */
const completeRow = Buffer.from('complete');

/** Opens the table of counts: `<counter> <namespace>` → bytes. */
export const openSizes = (root: Root): Table => root.openDB('stored bytes', tableOptions);

/** Counts by counter and namespace, as a transaction (absent: the present one) has them. */
export function readCounts(table: Table, transaction?: ReadTransaction): Record<Counter, NamespaceBytes> {
  const counts: Record<Counter, NamespaceBytes> = {
    store: new Map(),
    records: new Map(),
    largeRecords: new Map(),
    before: new Map(),
  };
  for (const { key, value } of table.getRange(transaction === undefined ? {} : { transaction })) {
    const row = textOf(key);
    const space = row.indexOf(' ');
    const counter = row.slice(0, space);
    if (space > 0 && counter in counts) counts[counter as Counter].set(row.slice(space + 1), Number(textOf(value)));
  }
  return counts;
}

/** Whether the data that was stored before there were counts is counted. */
export const isComplete = (table: Table): boolean => table.doesExist(completeRow);

/** The counts of one thread. A count is stored in the transaction that changes the data, so that a crash leaves both or none. */
export class LmdbSizes {
  private readonly table: Table;

  constructor(
    root: Root,
    private readonly writes: LmdbWrites,
    private readonly counter: Counter,
    /** As they are stored; they are changed with each write. */
    private readonly counts: NamespaceBytes,
  ) {
    this.table = openSizes(root);
  }

  /** LmdbWrites.durable with a change of sizes. Resolves with the counts that have changed. Rejects with StoreWriteError. */
  async durable(gather: (note: NoteBytes) => void): Promise<NamespaceBytes> {
    const changes: NamespaceBytes = new Map();
    let counted: NamespaceBytes = new Map();
    try {
      await this.writes.durable(() => {
        gather((namespace, bytes) => addBytes(changes, namespace, bytes));
        counted = changes;
        for (const [namespace, bytes] of counted) {
          addBytes(this.counts, namespace, bytes);
          this.put(namespace, this.count(namespace));
        }
      });
    } catch (error) {
      // The next write of the namespace stores the count without this one.
      for (const [namespace, bytes] of counted) addBytes(this.counts, namespace, -bytes);
      throw error;
    }
    return new Map(Array.from(counted.keys(), (namespace) => [namespace, this.count(namespace)]));
  }

  /** Stores all counts, and that nothing is left to be counted. Rejects with StoreWriteError. */
  async complete(): Promise<void> {
    await this.writes.durable(() => {
      for (const [namespace, bytes] of this.counts) this.put(namespace, bytes);
      this.writes.note(this.table.put(completeRow, Buffer.alloc(0)));
    });
  }

  private count(namespace: string): number {
    return this.counts.get(namespace) ?? 0;
  }

  private put(namespace: string, bytes: number): void {
    const row = Buffer.from(`${this.counter} ${namespace}`);
    this.writes.note(this.table.put(row, Buffer.from(String(bytes))));
  }
}
