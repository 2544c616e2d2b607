import type { ViewKey } from './artifact-store.js';

/*
 * Keys as bytes whose order is CouchDB's: element by element, numbers before strings, a shorter key before a
 * longer one that starts with it. Strings compare by code point.
 *
 *     element = 0x02, 8 bytes (a double, turned so that bytes order as numbers do)
 *             | 0x04, UTF-8 with 0x00 written as 0x00 0xff, 0x00
 *     row     = element ... element, 0x01, document id in UTF-8
 */
const numberTag = 0x02;
const stringTag = 0x04;
const endTag = 0x01;
/** Longest key that LMDB takes with pages of 4 KiB. */
export const maxKeyBytes = 1978;

/** Bytes enough for a key of the longest names, even where every character takes three bytes. */
const scratch = Buffer.alloc(16 * 1024);

function writeElements(key: ViewKey): number {
  let at = 0;
  for (const element of key) {
    if (typeof element === 'number') {
      scratch[at++] = numberTag;
      at = writeNumber(element, at);
    } else {
      scratch[at++] = stringTag;
      at = writeText(element, at);
      scratch[at++] = 0;
    }
  }
  return at;
}

function writeText(text: string, at: number): number {
  if (text.length * 3 + at + 16 > scratch.length)
    throw new RangeError(`a key of ${text.length} characters is too long`);
  if (!text.includes('\0')) return at + scratch.write(text, at);
  for (const byte of Buffer.from(text)) {
    scratch[at++] = byte;
    if (byte === 0) scratch[at++] = 0xff;
  }
  return at;
}

function writeNumber(value: number, at: number): number {
  // Adding 0 turns -0 into 0.
  scratch.writeDoubleBE(value + 0, at);
  const flip = (scratch[at] ?? 0) & 0x80 ? 0xff : 0;
  if (flip) for (let i = 0; i < 8; i++) scratch[at + i] = (scratch[at + i] ?? 0) ^ flip;
  else scratch[at] = (scratch[at] ?? 0) | 0x80;
  return at + 8;
}

function finish(length: number): Buffer {
  if (length > maxKeyBytes) throw new RangeError(`a key of ${length} bytes is longer than the ${maxKeyBytes} allowed`);
  return Buffer.from(scratch.subarray(0, length));
}

/** The stored key of a document's row. Throws RangeError for names that make it longer than maxKeyBytes. */
export function rowKey(key: ViewKey, id: string): Buffer {
  const at = writeElements(key);
  scratch[at] = endTag;
  return finish(writeId(id, at + 1));
}

function writeId(id: string, at: number): number {
  if (id.length * 3 + at > scratch.length) throw new RangeError(`an id of ${id.length} characters is too long`);
  return at + scratch.write(id, at);
}

/** Where a range of rows starts (included) and ends (excluded), both keys being part of it. */
export function rangeOf(startKey: ViewKey, endKey: ViewKey): { start: Buffer; end: Buffer } {
  let at = writeElements(startKey);
  scratch[at++] = endTag;
  const start = finish(at);
  at = writeElements(endKey);
  // No id starts with 0xff, so this is behind every row of endKey.
  scratch[at++] = endTag;
  scratch[at++] = 0xff;
  return { start, end: finish(at) };
}

/** The range of all keys that begin with the elements of `prefix`. */
export function rangeUnder(prefix: ViewKey): { start: Buffer; end: Buffer } {
  const at = writeElements(prefix);
  const start = finish(at);
  scratch[at] = 0xff;
  return { start, end: finish(at + 1) };
}

/** The view key and the document id that rowKey made `row` of. */
export function parseRow(row: Uint8Array): { key: (string | number)[]; id: string } {
  const bytes = Buffer.from(row.buffer, row.byteOffset, row.length);
  const key: (string | number)[] = [];
  let at = 0;
  while (bytes[at] !== endTag) {
    if (bytes[at] === numberTag) {
      key.push(readNumber(bytes, at + 1));
      at += 9;
    } else {
      let end = at + 1;
      while (bytes[end] !== 0 || bytes[end + 1] === 0xff) end += bytes[end] === 0 ? 2 : 1;
      const text = bytes.toString('utf8', at + 1, end);
      key.push(text.includes('\0') ? unescape(bytes.subarray(at + 1, end)) : text);
      at = end + 1;
    }
    if (at >= bytes.length) throw new Error('a stored view key is damaged');
  }
  return { key, id: bytes.toString('utf8', at + 1) };
}

function unescape(bytes: Buffer): string {
  return Buffer.from(bytes.filter((_, at) => !(bytes[at - 1] === 0 && bytes[at] === 0xff))).toString('utf8');
}

function readNumber(bytes: Buffer, at: number): number {
  const turned = Buffer.from(bytes.subarray(at, at + 8));
  if ((turned[0] ?? 0) & 0x80) turned[0] = (turned[0] ?? 0) ^ 0x80;
  else for (let i = 0; i < 8; i++) turned[i] = (turned[i] ?? 0) ^ 0xff;
  return turned.readDoubleBE(0);
}
