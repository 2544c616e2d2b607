// Whether bytes of UTF-8 may stand in a JSON text: each byte of large code is looked at.
import { isUtf8 } from 'node:buffer';

const [quote, backslash, space] = [0x22, 0x5c, 0x20];
const spaces = 0x20202020;
const highBits = 0x80808080;
/** Words looked at together: without a choice between them the compiler keeps them in registers. */
const stride = 4;

/** Whether the bytes may stand in a JSON text as they are: UTF-8 without quotes, backslashes and control characters. */
export function isPlainJsonText(bytes: Uint8Array): boolean {
  return isUtf8(bytes) && !bytes.includes(quote) && !bytes.includes(backslash) && !hasControlCharacter(bytes);
}

/** Whether there is a byte that may not stand in a JSON text: a control character. */
export function hasControlCharacter(bytes: Uint8Array): boolean {
  const { buffer, byteOffset, length } = bytes;
  const head = Math.min(length, -byteOffset & 3);
  const words = length < 4 + head ? new Int32Array() : new Int32Array(buffer, byteOffset + head, (length - head) >> 2);
  const whole = words.length - (words.length % stride);
  let found = 0;
  for (let at = 0; at < whole; at += stride) {
    const [first, second] = [words[at] as number, words[at + 1] as number];
    const [third, fourth] = [words[at + 2] as number, words[at + 3] as number];
    found |= controlIn(first) | controlIn(second) | controlIn(third) | controlIn(fourth);
  }
  const tail = head + whole * 4;
  return (found & highBits) !== 0 || hasControl(bytes, 0, head) || hasControl(bytes, tail, length);
}

function hasControl(bytes: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at += 1) {
    if ((bytes[at] as number) < space) return true;
  }
  return false;
}

/** Has one of `highBits` if one of four bytes is a control character. */
const controlIn = (word: number): number => (word - spaces) & ~word;
