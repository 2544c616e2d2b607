// A count of all that is stored in LMDB, by namespace.
import type { DatabaseName } from './artifact-store.js';
import { attachmentTable, describedBytes } from './lmdb-attachments.js';
import { openSizes, readCounts } from './lmdb-sizes.js';
import { bytesAt, tableOptions } from './lmdb-table.js';
import type { ReadTransaction, Root, Table } from './lmdb-table.js';
import { addBytes, namespaceOfDocument } from './stored-bytes.js';
import type { NamespaceBytes } from './stored-bytes.js';
import { parseRow } from './view-key.js';
import { viewsOf } from './views.js';

/** Rows that are looked at between two looks at whether to stop. */
const pageRows = 1000;

/** Bytes in one state of the store. */
export interface FullCount {
  /** As all documents, rows and attachments add up. */
  all: NamespaceBytes;
  /** As the writes since there are counts add up. */
  counted: NamespaceBytes;
}

/**
 * Counts all documents, rows and attachments, in one transaction; undefined once `isStopped`. Keeps its thread for as long as that
 * takes: some microseconds a row, and the reading of all values.
 */
export function countAll(root: Root, isStopped: () => boolean): FullCount | undefined {
  // A transaction sees the tables that were open before it.
  const documents = openTables(root);
  const attachments = attachmentTable(root);
  const sizes = openSizes(root);
  const transaction = root.useReadTransaction();
  try {
    const all: NamespaceBytes = new Map();
    const counting: Counting = { transaction, isStopped, all };
    for (const { table, documentOf } of documents) countRows(counting, table, documentOf);
    countAttachments(counting, attachments);
    if (isStopped()) return undefined;
    const { store, records, largeRecords } = readCounts(sizes, transaction);
    const counted: NamespaceBytes = new Map(store);
    for (const [namespace, bytes] of [...records, ...largeRecords]) addBytes(counted, namespace, bytes);
    return { all, counted };
  } finally {
    transaction.done();
  }
}

/** The document that a row of a table belongs to. */
type DocumentOf = (row: Buffer) => [DatabaseName, string];

/** The tables of documents and of views. */
function openTables(root: Root): { table: Table; documentOf: DocumentOf }[] {
  return (Object.keys(viewsOf) as DatabaseName[]).flatMap((database) => [
    {
      table: root.openDB(database, tableOptions) as Table,
      documentOf: (row: Buffer): [DatabaseName, string] => [database, row.toString('utf8')],
    },
    ...viewsOf[database].map((view) => ({
      table: root.openDB(`view ${view}`, tableOptions) as Table,
      documentOf: (row: Buffer): [DatabaseName, string] => [database, parseRow(row).id],
    })),
  ]);
}

interface Counting {
  transaction: ReadTransaction;
  isStopped: () => boolean;
  all: NamespaceBytes;
}

function countRows({ transaction, isStopped, all }: Counting, table: Table, documentOf: DocumentOf): void {
  for (const row of rowsOf(table, transaction, isStopped)) {
    addBytes(all, namespaceOfDocument(...documentOf(row)), bytesAt(table, row, transaction));
  }
}

function countAttachments({ transaction, isStopped, all }: Counting, table: Table): void {
  for (const row of rowsOf(table, transaction, isStopped)) {
    const [database, id] = parseRow(row).key as [DatabaseName, string];
    addBytes(all, namespaceOfDocument(database, id), describedBytes(table, row, transaction));
  }
}

/** The keys of a table, until `isStopped`. Values may be read meanwhile, as no range is open. */
function* rowsOf(table: Table, transaction: ReadTransaction, isStopped: () => boolean): Generator<Buffer> {
  let after: Buffer | undefined;
  while (!isStopped()) {
    const begin = after === undefined ? {} : { start: after, exclusiveStart: true };
    const keys = table.getKeys({ ...begin, limit: pageRows, transaction });
    const page = Array.from(keys, (key) => Buffer.from(key as unknown as Uint8Array));
    yield* page;
    if (page.length < pageRows) return;
    after = page.at(-1);
  }
}
