import { crc32 } from 'node:zlib';

/*
 * A log file:   header, entry, entry, ...
 *
 * header  ┌──────────────────┬────────┬───────────┐
 *         │ "gpuwhisk log 1\n"│ mark 8 │ crc u32   │           27 bytes
 *         └──────────────────┴────────┴───────────┘
 * entry   ┌────────┬─────────┬──────────┬──────────────┬───────────────────┬────────┬─────────┐
 *         │ mark 8 │ crc u32 │ body u32 │ position u48 │ stream length u16 │ stream │ payload │
 *         └────────┴─────────┴──────────┴──────────────┴───────────────────┴────────┴─────────┘
 *                              └───────────── the checksum covers this ──────────────────────┘
 *
 * body = length of stream and payload; numbers are little-endian. The mark is random, drawn once per opening, so
 * that a reader can find the next entry behind a damaged one and no payload can contain a forged one.
 */

export const markBytes = 8;
export const entryHeaderBytes = 24;
/** Longest stream and payload together. */
export const maxBodyBytes = 64 * 1024 * 1024;
const title = Buffer.from('gpuwhisk log 1\n');
export const fileHeaderBytes = title.length + markBytes + 4;

/** The first bytes of a log file whose entries carry `mark`. */
export function encodeFileHeader(mark: Uint8Array): Buffer {
  const header = Buffer.alloc(fileHeaderBytes);
  title.copy(header);
  header.set(mark, title.length);
  header.writeUInt32LE(crc32(header.subarray(0, title.length + markBytes)), title.length + markBytes);
  return header;
}

/** The mark that a file's first bytes announce; undefined if the header is damaged or cut. */
export function markOf(header: Buffer): Buffer | undefined {
  const end = title.length + markBytes;
  if (header.length < fileHeaderBytes || header.compare(title, 0, title.length, 0, title.length) !== 0)
    return undefined;
  if (header.readUInt32LE(end) !== crc32(header.subarray(0, end))) return undefined;
  return Buffer.from(header.subarray(title.length, end));
}

/**
 * Writes an entry at `at` and returns where it ends. `target` has room for entryHeaderBytes and the body, whose
 * parts are `streamBytes` and `payloadBytes` long.
 */
export function writeEntry(
  target: Buffer,
  at: number,
  mark: Buffer,
  position: number,
  stream: string,
  streamBytes: number,
  payload: Uint8Array | string,
  payloadBytes: number,
): number {
  const payloadAt = at + entryHeaderBytes + streamBytes;
  const end = payloadAt + payloadBytes;
  mark.copy(target, at);
  target.writeUInt32LE(streamBytes + payloadBytes, at + 12);
  target.writeUIntLE(position, at + 16, 6);
  target.writeUInt16LE(streamBytes, at + 22);
  target.write(stream, at + entryHeaderBytes);
  if (typeof payload === 'string') target.write(payload, payloadAt);
  else target.set(payload, payloadAt);
  target.writeUInt32LE(crc32(target.subarray(at + 12, end)), at + 8);
  return end;
}

/** Whether an entry header with the mark lies at `at`, and how long its body says it is. */
export function bodyBytesAt(bytes: Buffer, at: number, mark: Buffer): number | undefined {
  if (bytes.compare(mark, 0, markBytes, at, at + markBytes) !== 0) return undefined;
  const body = bytes.readUInt32LE(at + 12);
  return body <= maxBodyBytes && bytes.readUInt16LE(at + 22) <= body ? body : undefined;
}

/** The entry at `at`, whose `body` bytes are all there; undefined if its checksum is wrong. The payload is a view. */
export function readEntry(
  bytes: Buffer,
  at: number,
  body: number,
): { position: number; stream: string; payload: Buffer } | undefined {
  const end = at + entryHeaderBytes + body;
  if (bytes.readUInt32LE(at + 8) !== crc32(bytes.subarray(at + 12, end))) return undefined;
  const payloadAt = at + entryHeaderBytes + bytes.readUInt16LE(at + 22);
  return {
    position: bytes.readUIntLE(at + 16, 6),
    stream: bytes.toString('utf8', at + entryHeaderBytes, payloadAt),
    payload: bytes.subarray(payloadAt, end),
  };
}
