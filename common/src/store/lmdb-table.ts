// Tables of LMDB and their writes.
import type { Database, RootDatabase } from 'lmdb';
import { open } from 'lmdb';
import { StoreWriteError } from './artifact-store.js';

/** A table of LMDB: bytes → bytes. */
export type Table = Database<Uint8Array, Uint8Array>;
export type Root = RootDatabase<Uint8Array, Uint8Array>;
/** A view of all tables as of one moment. */
export type ReadTransaction = ReturnType<Root['useReadTransaction']>;

/** What every table is opened with. */
export const tableOptions = { keyEncoding: 'binary', encoding: 'binary' } as const;

/** Opens the file in a folder; every thread has it open for itself. Throws what the library throws. */
export function openRoot(folder: string): Root {
  // Without overlappingSync a commit is reported once it is on disk, which is what put and createMany promise.
  return open({ path: folder, noSubdir: false, overlappingSync: false, maxDbs: 32, ...tableOptions });
}

/** A stored value as text. */
export function textOf(value: Uint8Array): string {
  return Buffer.from(value.buffer, value.byteOffset, value.length).toString('utf8');
}

/** What the library's types leave out: the transaction that a fast read is made in. */
interface FastReads {
  getBinaryFast(key: Uint8Array, options?: { transaction: ReadTransaction }): Buffer | undefined;
}

/** Bytes of a stored value, as a transaction (absent: the present one) has it; 0 if there is none. */
export function bytesAt(table: FastReads, key: Uint8Array, transaction?: ReadTransaction): number {
  return table.getBinaryFast(key, transaction && { transaction })?.length ?? 0;
}

/** Gathers the promises of LMDB's asynchronous operations, which share a commit when made in one turn. */
export class LmdbWrites {
  private noted: Promise<unknown>[] = [];
  refused = false;

  /** Takes part in the `durable` that is being gathered. */
  note(operation: Promise<unknown>): void {
    if (this.noted[this.noted.length - 1] !== operation) this.noted.push(operation);
  }

  /** After this durable rejects. */
  refuse(): void {
    this.refused = true;
  }

  /** Resolves when all that `gather` (synchronous) wrote and noted is on disk. Rejects with StoreWriteError. */
  async durable(gather: () => void): Promise<void> {
    if (this.refused) throw new StoreWriteError('the store is closed');
    this.noted = [];
    let failure: unknown;
    try {
      gather();
    } catch (error) {
      failure = error;
    }
    const results = await Promise.allSettled(this.noted);
    if (failure !== undefined) throw failure;
    for (const result of results) if (result.status === 'rejected') throw await writeError(result.reason as Error);
  }
}

/** LMDB's binding gives the reason of a failed commit as a promise that rejects. */
async function writeError(error: Error & { commitError?: Promise<unknown> }): Promise<StoreWriteError> {
  let cause: unknown = error;
  try {
    await error.commitError;
  } catch (reason) {
    cause = reason;
  }
  return new StoreWriteError(`the database could not be written: ${(cause as Error).message}`, { cause });
}
