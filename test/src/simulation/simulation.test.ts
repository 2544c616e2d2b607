import { expect, test } from '@jest/globals';
import type { HistoryCounts } from './history-counts.js';
import { runSeeds } from './run-seeds.js';

const seeds = 120;

test(`${seeds} histories of calls and faults keep every promise`, async () => {
  const { exitCode, output } = await runSeeds('--seeds', String(seeds));
  console.info(output.trim());
  expect({ exitCode, output }).toEqual({ exitCode: 0, output: expect.any(String) });
  const totals = JSON.parse(output) as HistoryCounts & { seedsPerSecond: number };
  // The histories test the platform only if all these events happened in them.
  expect(totals.accepted).toBeGreaterThan(seeds * 10);
  expect(totals.completed).toBeGreaterThan(seeds * 2);
  expect(totals.refused).toBeGreaterThan(seeds);
  expect(totals.runs).toBeGreaterThan(seeds * 10);
  expect(totals.reloads).toBeGreaterThan(seeds);
  expect(totals.crashes).toBeGreaterThan(seeds / 2);
  expect(totals.crashedStarts).toBeGreaterThan(seeds / 20);
  expect(totals.batched).toBeGreaterThan(seeds / 10);
  expect(totals.gpuRefusals).toBeGreaterThan(seeds / 10);
  expect(totals.expired).toBeGreaterThan(seeds * 2);
  expect(totals.damage).toBeGreaterThan(seeds / 10);
}, 600_000);

test('a seed is the same history every time', async () => {
  const [one, other] = await Promise.all([runSeeds('--seed', '3', '--trace'), runSeeds('--seed', '3', '--trace')]);
  expect(one.output.split('\n').length).toBeGreaterThan(100);
  expect(withoutSpeed(one.output)).toBe(withoutSpeed(other.output));
}, 60_000);

function withoutSpeed(output: string): string {
  return output.replace(/"seedsPerSecond":[\d.]+,/, '');
}
