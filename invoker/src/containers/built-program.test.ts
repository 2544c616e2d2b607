import { describe, expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { readProgram } from './built-program.js';

const MiB = 1024 * 1024;
const bytes = (length: number): Buffer =>
  Buffer.from(Uint8Array.from({ length }, (_, at) => (at * 31 + (at >> 9)) & 0xff));

describe("the program in a builder's answer", () => {
  test.each([0, 1, 2, 3, 3 * 256 * 1024, 3 * 256 * 1024 + 1, 2 * MiB + 2])('of %d bytes is read', async (length) => {
    const program = bytes(length);
    const text = program.toString('base64');
    for (const [answer, rest] of [
      [JSON.stringify({ program: text }), {}],
      [`{"program": "${text}", "report": {"compiled": 2}}`, { report: { compiled: 2 } }],
    ] as const) {
      const read = await readProgram(systemClock, Buffer.from(answer));
      expect(read?.rest).toEqual(rest);
      expect(Buffer.compare(read?.program ?? Buffer.from('none'), program)).toBe(0);
    }
  });

  test.each([
    '',
    '{}',
    '{"other":"","program":""}',
    '{"program":5}',
    '{"program":"aa',
    '{"program":"aa"',
    '{"program":"aa",x}',
  ])('is none in %j', async (answer) => {
    expect(await readProgram(systemClock, Buffer.from(answer))).toBeUndefined();
  });

  test('is read in pieces, between which others have their turns', async () => {
    const answer = Buffer.from(JSON.stringify({ program: Buffer.alloc(30 * MiB, 'program').toString('base64') }));
    let turns = 0;
    let isRead = false;
    const turn = (): void => {
      turns += 1;
      if (!isRead) setImmediate(turn);
    };
    setImmediate(turn);
    const read = await readProgram(systemClock, answer);
    isRead = true;
    expect(read?.program).toHaveLength(30 * MiB);
    // 40 MiB of base64, a quarter of a MiB a turn.
    expect(turns).toBeGreaterThan(150);
  });
});
