import type { Database } from 'lmdb';

/** A table of LMDB: bytes → bytes. */
export type Table = Database<Uint8Array, Uint8Array>;

/** What every table is opened with. */
export const tableOptions = { keyEncoding: 'binary', encoding: 'binary' } as const;

/** A stored value as text. */
export function textOf(value: Uint8Array): string {
  return Buffer.from(value.buffer, value.byteOffset, value.length).toString('utf8');
}
