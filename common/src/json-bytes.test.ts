import { expect, test } from '@jest/globals';
import { hasControlCharacter, isPlainJsonText } from './json-bytes.js';

/** Bytes at the edges of what is looked for, and others. */
const some = [0x00, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x5b, 0x5c, 0x5d, 0x7f];

test('finds control characters and marks at every place, wherever the bytes lie in memory', () => {
  for (const byte of some) {
    for (let length = 1; length <= 37; length += 1) {
      for (let start = 0; start < 4; start += 1) {
        for (let at = 0; at < length; at += 1) {
          const bytes = Buffer.alloc(length + start, 'a').subarray(start);
          bytes[at] = byte;
          expect(hasControlCharacter(bytes)).toBe(byte < 0x20);
          expect(isPlainJsonText(bytes)).toBe(byte >= 0x20 && byte !== 0x22 && byte !== 0x5c);
        }
      }
    }
  }
});

test('plain is what JSON.stringify leaves as it is', () => {
  expect(isPlainJsonText(Buffer.from('tw€o \u{1f600} \u2028'))).toBe(true);
  expect(hasControlCharacter(Buffer.from('tw€o \u{1f600}'))).toBe(false);
  expect(isPlainJsonText(Buffer.from([0x61, 0xff, 0x61]))).toBe(false);
  expect(isPlainJsonText(Buffer.alloc(0))).toBe(true);
});
