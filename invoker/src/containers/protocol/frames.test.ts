import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { encodeFrame, FrameReader, maxFrameBytes } from './frames.js';

interface Seen {
  type: number;
  id: number;
  text: string;
  lengthBytes: number;
}

function reading(wantedBytes = Infinity): { seen: Seen[]; tooLong: number[]; reader: FrameReader } {
  const seen: Seen[] = [];
  const tooLong: number[] = [];
  const reader = new FrameReader({
    wanted: () => wantedBytes,
    frame: (type, id, payload, lengthBytes) => seen.push({ type, id, text: payload.toString(), lengthBytes }),
    tooLong: (lengthBytes) => tooLong.push(lengthBytes),
  });
  return { seen, tooLong, reader };
}

describe('FrameReader', () => {
  test('finds the same frames however the stream is cut', () => {
    const random = seededRandom(7);
    const frames = Array.from({ length: 200 }, (_, id) => {
      const text = 'é'.repeat(random.uint32() % 40);
      return { type: id % 9, id, text, lengthBytes: Buffer.byteLength(text) };
    });
    const stream = Buffer.concat(frames.map(({ type, id, text }) => encodeFrame(type, id, text)));
    for (let round = 0; round < 20; round++) {
      const { seen, reader } = reading();
      for (let at = 0; at < stream.length;) {
        const length = 1 + (random.uint32() % 60);
        reader.push(stream.subarray(at, at + length));
        at += length;
      }
      expect(seen).toEqual(frames);
    }
  });

  test('keeps only what is wanted of a long frame, and finds the next', () => {
    const stream = Buffer.concat([encodeFrame(4, 1, 'x'.repeat(1000)), encodeFrame(6, 1, '{}')]);
    for (const size of [1, 7, 100, 5000]) {
      const { seen, reader } = reading(10);
      for (let at = 0; at < stream.length; at += size) reader.push(stream.subarray(at, at + size));
      expect(seen.map(({ text, lengthBytes }) => [text, lengthBytes])).toEqual([
        ['x'.repeat(10), 1000],
        ['{}', 2],
      ]);
    }
  });

  test('stops at a frame over the maximum', () => {
    const header = Buffer.alloc(9);
    header.writeUInt32LE(maxFrameBytes + 1, 0);
    const { seen, tooLong, reader } = reading();
    reader.push(Buffer.concat([header, encodeFrame(6, 1, '{}')]));
    reader.push(encodeFrame(6, 2, '{}'));
    expect(tooLong).toEqual([maxFrameBytes + 1]);
    expect(seen).toEqual([]);
  });
});
