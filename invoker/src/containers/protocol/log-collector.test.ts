import { PassThrough } from 'node:stream';
import { describe, expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { LogCollector, sentinel, truncationNotice, withoutPartialCharacter } from './log-collector.js';

const clock: Clock = { ...systemClock, now: () => Date.UTC(2026, 0, 2, 3, 4, 5, 6) };
const prefix = '2026-01-02T03:04:05.006000000Z';

function collecting(sentinels = false): { logs: LogCollector; out: PassThrough; err: PassThrough } {
  const logs = new LogCollector(clock, { sentinels });
  const [out, err] = [new PassThrough(), new PassThrough()];
  logs.attach(out, 'stdout');
  logs.attach(err, 'stderr');
  return { logs, out, err };
}

const handled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('LogCollector', () => {
  test('prefixes lines and joins chunks, characters included', async () => {
    const { logs, out, err } = collecting();
    const text = Buffer.from('one\n\ntw€o\nrest');
    for (const byte of text) out.write(Buffer.from([byte]));
    err.write('bad\n');
    await handled();
    expect(logs.cut().sort()).toEqual(
      ['stderr: bad', 'stdout: ', 'stdout: one', 'stdout: rest', 'stdout: tw€o'].map((line) => `${prefix} ${line}`),
    );
    expect(logs.cut()).toEqual([]);
  });

  test('takes a large chunk as it takes the same text in small ones', async () => {
    const text = Buffer.from(Array.from({ length: 2000 }, (_, n) => `line ${n} é${'.'.repeat(n % 50)}\n`).join(''));
    for (const limit of [1_000_000, 60_000]) {
      const cuts: string[][] = [];
      for (const size of [100, 20_000]) {
        const { logs, out } = collecting(true);
        logs.limit(limit);
        for (let at = 0; at < text.length; at += size) out.write(text.subarray(at, at + size));
        out.write(`${sentinel}\n`);
        while (out.readableLength > 0) await handled();
        cuts.push(logs.cut());
      }
      expect(cuts[1]).toEqual(cuts[0]);
      expect(cuts[0]?.length).toBeGreaterThan(500);
    }
  });

  test('cuts at the limit within a line, once, and starts afresh', async () => {
    const { logs, out } = collecting();
    logs.limit(120);
    out.write(`${'a'.repeat(20)}\n${'€'.repeat(20)}\nnever\n`);
    await handled();
    const lines = logs.cut();
    expect(lines).toHaveLength(3);
    expect(lines[1]).toMatch(/stdout: €+$/);
    expect(Buffer.byteLength(lines.slice(0, 2).join('\n')) + 1).toBeLessThanOrEqual(120);
    expect(lines[2]).toBe(`${prefix} stderr: ${truncationNotice(120)}`);
    out.write('again\n');
    await handled();
    expect(logs.cut()).toEqual([`${prefix} stdout: again`]);
  });

  test('holds no more of an endless line than the limit', async () => {
    const { logs, out } = collecting();
    logs.limit(1000);
    for (let i = 0; i < 100; i++) {
      out.write('x'.repeat(10_000));
      await handled();
    }
    out.write('\nnext\n');
    await handled();
    expect(logs.cut().join('').length).toBeLessThan(1200);
  });

  test('sees sentinels, which are not lines, even behind the limit and across chunks', async () => {
    const { logs, out, err } = collecting(true);
    logs.limit(50);
    let completed = 0;
    logs.whenComplete(() => completed++);
    out.write(`${'x'.repeat(100)}\n${sentinel.slice(0, 10)}`);
    await handled();
    out.write(`${sentinel.slice(10)}\n`);
    await handled();
    expect(logs.complete).toBe(false);
    err.write(`${sentinel}\n`);
    await handled();
    expect([logs.complete, completed]).toEqual([true, 1]);
    expect(logs.cut().join()).not.toContain('XXX');
    expect(logs.complete).toBe(false);
  });
});

test('withoutPartialCharacter drops only what is cut off', () => {
  const text = 'aé€😀';
  const bytes = Buffer.from(text);
  for (let length = 0; length <= bytes.length; length++) {
    const whole = withoutPartialCharacter(bytes.subarray(0, length)).toString();
    expect(text.startsWith(whole)).toBe(true);
    expect(length - Buffer.byteLength(whole)).toBeLessThan(4);
  }
  expect(withoutPartialCharacter(bytes).toString()).toBe(text);
});
