import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { standIn, startStandIn } from '@gpuwhisk/test/gpu/stand-in';
import type { StandIn } from '@gpuwhisk/test/gpu/stand-in';
import { loadInjector } from '@gpuwhisk/test/native/inject-addon';
import { measureInjection } from './injection.js';

const canRun = existsSync(standIn.daemon) && loadInjector() !== undefined;
let device: StandIn;

beforeEach(async () => {
  if (canRun) device = await startStandIn('h100', ['--context-ms', '1']);
});
afterEach(async () => {
  if (canRun) await device.close();
});

(canRun ? test : test.skip)('pairs with a context are measured on the stand-in, both ways', async () => {
  const lines: string[] = [];
  const { metrics, failures } = await measureInjection({
    simulated: true,
    native: dirname(standIn.folder),
    env: { PATH: process.env['PATH'], GPUWHISK_SIM_SOCKET: device.socket },
    budgetMs: 90_000,
    say: (line) => lines.push(line),
  });
  expect(failures).toEqual([]);
  expect(lines).toHaveLength(3);
  expect(metrics).toMatchObject({ 'injection.crashes': 200, 'injection.secretFound': 0 });
  for (const size of ['512MiB', '2GiB', '8GiB'])
    for (const step of ['', '.lock', '.checkpoint', '.restore', '.unlock'])
      expect(metrics[`readyAgainMs.checkpoint.${size}${step}`]).toBeGreaterThan(0);
  expect(metrics['readyAgainMs.sameOwner']).toBeGreaterThan(0);
  expect(metrics['readyAgainMs.checkpoint']).toBeGreaterThan(0);
});

(canRun ? test : test.skip)('a machine without a driver gives failures, not figures', async () => {
  const { metrics, failures } = await measureInjection({
    simulated: true,
    native: dirname(standIn.folder),
    env: { PATH: process.env['PATH'] },
    budgetMs: 60_000,
    say: () => undefined,
  });
  expect(metrics).toEqual({});
  expect(failures.length).toBeGreaterThan(0);
  for (const failure of failures) expect(failure).toContain("by 'none'");
});
