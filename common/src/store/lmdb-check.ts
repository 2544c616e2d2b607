import type { Disk, DiskFile } from '../system/disk.js';
import { StoreOpenError } from './store-error.js';

/*
 * Where LMDB (0.9.90, data version 2, 64 bit) keeps what we look at, from the start of its first page. The second
 * page is laid out alike; the one with the higher transaction number counts.
 */
const magicAt = 24;
const pageSizeAt = 48;
const freeRootAt = 88;
const mainRootAt = 136;
const lastPageAt = 144;
const transactionAt = 152;
const metaBytes = 160;
const magic = 0xbeefc0de;
const noPage = 0xffff_ffff_ffff_ffffn;

/**
 * Looks whether LMDB's file in `folder`, if there is one, can be opened: the library crashes the process on a file
 * that is none of its own or lacks its end. Throws StoreOpenError.
 */
export async function checkLmdbFile(disk: Disk, folder: string): Promise<void> {
  if (!(await disk.list(folder)).includes('data.mdb')) return;
  const file = await disk.open(`${folder}/data.mdb`);
  try {
    const reason = await damageOf(file);
    if (reason) throw new StoreOpenError(`the database in '${folder}' cannot be opened: data.mdb ${reason}`);
  } finally {
    await file.close();
  }
}

async function damageOf(file: DiskFile): Promise<string | undefined> {
  const size = await file.size();
  if (size === 0) return undefined;
  const first = await readMeta(file, 0);
  const pageSize = first?.readUInt32LE(pageSizeAt) ?? 0;
  const second = first && (await readMeta(file, pageSize));
  if (!first || !second) return 'is not an LMDB file, or is damaged';
  const newest = first.readBigUInt64LE(transactionAt) > second.readBigUInt64LE(transactionAt) ? first : second;
  const pages = BigInt(Math.floor(size / pageSize));
  const roots = [newest.readBigUInt64LE(freeRootAt), newest.readBigUInt64LE(mainRootAt)];
  // Pages at the end that were freed before they were ever written may be missing, so some must be allowed.
  const wanted = ((newest.readBigUInt64LE(lastPageAt) + 1n) * 3n) / 4n;
  if (pages < wanted || roots.some((root) => root !== noPage && root >= pages)) return 'lacks its end';
  return undefined;
}

async function readMeta(file: DiskFile, offset: number): Promise<Buffer | undefined> {
  const read = await file.read(offset, metaBytes);
  const meta = Buffer.from(read.buffer, read.byteOffset, read.byteLength);
  return meta.length === metaBytes && meta.readUInt32LE(magicAt) === magic ? meta : undefined;
}
