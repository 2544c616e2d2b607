import { expect, test } from '@jest/globals';
import { crc32, tableCrc32 } from './log-format.js';

test('both ways agree, and with the published check value', () => {
  expect(crc32(Buffer.from('123456789'))).toBe(0xcbf43926);
  for (const length of [0, 1, 7, 1000]) {
    const bytes = Uint8Array.from({ length }, (_, i) => (i * 7919) & 0xff);
    expect(tableCrc32(bytes)).toBe(crc32(bytes));
  }
});
