import type { Database, RootDatabase } from 'lmdb';
import { open } from 'lmdb';

/** A table of LMDB: bytes → bytes. */
export type Table = Database<Uint8Array, Uint8Array>;
export type Root = RootDatabase<Uint8Array, Uint8Array>;

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
