import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { dayMs, drawDay, type AzureData, type DayFunction } from './arrivals.js';
import type { SetCosts } from './costs.js';
import { bestKeepAlive, keepAlive } from './keep-alive.js';
import { MemoryMeter } from './memory-meter.js';
import { runPoolDay } from './pool-day.js';

const cost: SetCosts = {
  ...{ language: 'python', processMs: 10, importedMs: 500, metMs: 4, readyMs: 40, limitMiB: 512 },
  ...{ plainMiB: 40, copyMiB: 8, plainSharedMiB: 20, copySharedMiB: 60 },
};
const hourMs = 3_600_000;
const called = (name: string, callsMs: readonly number[], durationMs = 100): DayFunction => ({
  ...{ name, set: 0, durationMs, callsMs },
});

describe('functions of a day', () => {
  const data: AzureData = {
    functions: Array.from({ length: 50 }, (_, at) => ({ durationMs: 100 + at, calls: 1 + 4 * at })),
    variations: [
      { value: 0, part: 0.3 },
      { value: 1, part: 0.7 },
      { value: 40, part: 1 },
    ],
  };

  test('have the calls of the trace within the day, even ones at equal distances, and are the same for a seed', () => {
    const day = drawDay(data, 40, 12, 7);
    expect(day).toEqual(drawDay(data, 40, 12, 7));
    expect(day).not.toEqual(drawDay(data, 40, 12, 8));
    for (const { durationMs, callsMs, set } of day) {
      expect(callsMs).toHaveLength(1 + 4 * (durationMs - 100));
      expect(callsMs).toEqual([...callsMs].sort((a, b) => a - b));
      expect(callsMs[0]).toBeGreaterThanOrEqual(0);
      expect(callsMs.at(-1)).toBeLessThan(dayMs);
      expect(set).toBeLessThan(12);
    }
    const even = drawDay({ ...data, variations: [{ value: 0, part: 1 }] }, 5, 1, 1).find(
      ({ callsMs }) => callsMs.length > 9,
    );
    const gaps = even?.callsMs.slice(1).map((atMs, at) => Math.round(atMs - (even.callsMs[at] ?? 0))) ?? [];
    expect(new Set(gaps).size).toBeLessThanOrEqual(2); // Of rounding.
  });
});

describe('keep-alive', () => {
  const hourly = called(
    'hourly',
    Array.from({ length: 24 }, (_, hour) => hour * hourMs),
  );

  test('has a call wait for the imports after the time kept, and pays for that time', () => {
    expect(keepAlive([hourly], [cost], 0)).toEqual({ waitedS: 12, gibS: expect.closeTo((24 * 0.6 * 60) / 1024, 3) });
    const kept = keepAlive([hourly], [cost], hourMs);
    expect(kept.waitedS).toBe(0.5);
    expect(kept.gibS).toBeCloseTo((86_400 * 60) / 1024, 0);
  });

  test('has a call at the same moment wait for whichever is ready first', () => {
    expect(keepAlive([called('pair', [0, 0], 100)], [cost], hourMs).waitedS).toBeCloseTo(0.5 + 0.5, 5);
    expect(keepAlive([called('pair', [0, 1000, 1000], 200)], [cost], hourMs).waitedS).toBeCloseTo(0.5 + 0.2, 5);
    expect(keepAlive([called('pair', [0, 1000, 1000], 2000)], [cost], hourMs).waitedS).toBeCloseTo(0.5 + 0.5 + 0.5, 5);
  });

  test('gets the longest time that its memory allows', () => {
    const { gibS } = keepAlive([hourly], [cost], 600_000);
    const best = bestKeepAlive([hourly], [cost], gibS);
    expect(best.keptMs).toBeGreaterThan(598_000);
    expect(best.gibS).toBeLessThanOrEqual(gibS);
    expect(bestKeepAlive([hourly], [cost], Infinity).keptMs).toBe(dayMs);
  });
});

test('shared memory counts once, and stays where it is to', () => {
  let nowMs = 0;
  const meter = new MemoryMeter(() => nowMs);
  const shared = { of: 'libraries', miB: 10, stays: false };
  meter.hold('a', 1, shared);
  meter.hold('b', 2, shared);
  nowMs = 1;
  expect(meter.mibMs()).toBe(13);
  meter.hold('b', 5, { of: 'template', miB: 100, stays: true });
  meter.drop('a');
  nowMs = 2;
  expect(meter.mibMs()).toBe(13 + 105);
  meter.drop('b');
  nowMs = 3;
  expect(meter.mibMs()).toBe(13 + 105 + 100);
});

describe('the pool', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gpuwhisk-day-'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test('has functions wait for imports once, and then meet their modules', async () => {
    const functions = Array.from({ length: 6 }, (_, at) => called(`f${at}`, [at * 60_000, at * 60_000 + 2000]));
    const day = { functions, costs: [cost, { ...cost, language: 'nodejs' as const }] };
    const rest = { rollbackMs: 1, memoryMiB: 4096, namespaces: 1, folder, learns: true, lastsMs: 600_000 };
    const { waitedS, gibS, ...counts } = await runPoolDay({ ...day, ...rest });
    expect(counts).toEqual({ met: 5, unmet: 1, warm: 6 });
    expect(waitedS).toBeGreaterThan(0.49);
    expect(waitedS).toBeLessThan(1.2);
    expect(gibS).toBeGreaterThan(0);
    const alone = await runPoolDay({ ...day, ...rest, namespaces: 6 });
    expect(alone).toMatchObject({ met: 0, unmet: 6 });
    expect(await runPoolDay({ ...day, ...rest, learns: false })).toMatchObject({ met: 0, unmet: 6 });
  });
});
