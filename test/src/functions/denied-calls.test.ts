import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { annotation } from '../support/api-client.js';
import { callsAction, deniedCalls } from './denied-calls.js';
import { hasPython, isolationLack } from '../support/machine.js';
import { manifestWithStemCells, prewarmersOf } from '../support/stem-cells.js';
import { newDataDir, removeDataDir, startPlatform, until } from '../support/running-platform.js';

const lack = isolationLack ?? (hasPython ? undefined : 'there is no Python');
const suite = lack === undefined ? describe : describe.skip;
const readyMs = 60_000;

suite(`system calls of a function${lack ? ` (skipped: ${lack})` : ''}`, () => {
  test.each([
    ['in a process of its own', undefined],
    ['injected into a warm process', 'injected'],
  ])('fail with the very error that the filter gives: %s', async (_, start) => {
    const dataDir = newDataDir();
    const own =
      start === undefined
        ? ['--containers', 'process', '--stem-cells', 'false']
        : ['--runtimes', manifestWithStemCells(join(dataDir, '..'), ['python'])];
    const flags = [...own, '--gpus', 'none', '--set', 'allowWeakIsolation=false'];
    const platform = await startPlatform({ dataDir, flags });
    try {
      if (start !== undefined) {
        await until('a pair is ready', async () => (await prewarmersOf(platform)).length > 0, readyMs);
      }
      await platform.api.putAction('calls', callsAction, { kind: 'python:default' });
      const calls = Object.fromEntries(
        Object.entries(deniedCalls).map(([name, { x86_64, aarch64, args = [] }]) => [
          name,
          { ...(x86_64 !== undefined && { x86_64 }), ...(aarch64 !== undefined && { aarch64 }), args: [...args] },
        ]),
      );
      const { record } = await platform.api.run('calls', { calls });
      if (start !== undefined) expect(annotation(record, 'start')).toBe(start);
      const { mode, errors } = record.response.result as { mode: string; errors: Record<string, string> };
      const expected = Object.entries(deniedCalls).filter(([call]) => call in errors);
      expect(errors).toEqual(Object.fromEntries(expected.map(([call, { error }]) => [call, error])));
      expect(expected.length).toBeGreaterThan(50);
      expect(mode).toBe('2');
    } finally {
      await platform.end('SIGTERM');
      removeDataDir(dataDir);
    }
  });
});
