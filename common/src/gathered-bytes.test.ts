import { expect, test } from '@jest/globals';
import { gather } from './gathered-bytes.js';

test('keeps the bytes in their order, in few pieces', () => {
  for (const sizeOf of [() => 1, (at: number) => (at * 7919) % 13, (at: number) => 1 + ((20_000 - at) >> 4)]) {
    const pieces: Buffer[] = [];
    const given: Buffer[] = [];
    for (let at = 0; at < 20_000; at++) {
      const piece = Buffer.alloc(sizeOf(at), at % 251);
      given.push(piece);
      gather(pieces, piece);
    }
    expect(Buffer.concat(pieces).equals(Buffer.concat(given))).toBe(true);
    expect(pieces.length).toBeLessThan(40);
  }
});

test('takes no longer for pieces that are put together late', () => {
  // Each a little smaller than the one before, and a last one that takes them all in.
  const began = process.cpuUsage();
  const pieces: Buffer[] = [];
  for (let size = 4000; size > 0; size--) gather(pieces, Buffer.alloc(size));
  gather(pieces, Buffer.alloc(1_000_000));
  expect(pieces.reduce((sum, { length }) => sum + length, 0)).toBe(9_002_000);
  // Of the processor, as other suites run beside this one.
  const { user, system } = process.cpuUsage(began);
  expect((user + system) / 1000).toBeLessThan(1000);
});
