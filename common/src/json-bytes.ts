// What bytes of UTF-8 mean in a JSON text, found four at a time: each byte of large code is looked at.
import { isUtf8 } from 'node:buffer';

const [quotes, backslashes, spaces] = [0x22222222, 0x5c5c5c5c, 0x20202020];
const ones = 0x01010101;
const highBits = 0x80808080;

/** Whether there is a byte that may not stand in a JSON text: a control character. */
export function hasControlCharacter(bytes: Uint8Array): boolean {
  return finds(bytes, false);
}

/** Whether the bytes may stand in a JSON text as they are: UTF-8 without quotes, backslashes and control characters. */
export function isPlainJsonText(bytes: Uint8Array): boolean {
  return isUtf8(bytes) && !finds(bytes, true);
}

/** Whether there is a control character or, if `alsoMarks`, a quote or backslash. */
function finds(bytes: Uint8Array, alsoMarks: boolean): boolean {
  const { buffer, byteOffset, length } = bytes;
  const head = Math.min(length, -byteOffset & 3);
  const words = length < 4 + head ? new Int32Array() : new Int32Array(buffer, byteOffset + head, (length - head) >> 2);
  let found = 0;
  for (let at = 0; at < words.length; at += 1) found |= marksIn(words[at] as number, alsoMarks);
  const tail = head + words.length * 4;
  for (const byte of [...bytes.subarray(0, head), ...bytes.subarray(tail)]) {
    found |= marksIn((spaces << 8) | byte, alsoMarks);
  }
  return (found & highBits) !== 0;
}

/** Has one of `highBits` if one of four bytes is what `finds` looks for. */
function marksIn(word: number, alsoMarks: boolean): number {
  const control = below(word, spaces);
  return alsoMarks ? control | below(word ^ quotes, ones) | below(word ^ backslashes, ones) : control;
}

/** Has one of `highBits` if a byte of `word` is less than the byte that `bound` has four times, at most 128. */
const below = (word: number, bound: number): number => ((word - bound) | 0) & ~word;
