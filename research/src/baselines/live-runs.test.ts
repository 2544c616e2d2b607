// Live runs under baselines: each decision is repeated from its saved view, and all are as they were.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { repeatedLiveRun } from '@gpuwhisk/test/controller/live-run';
import './register.js';

const goldenRuns = new URL('../../src/baselines/golden-live-runs.json', import.meta.url);
const kept = JSON.parse(readFileSync(goldenRuns, 'utf8')) as Record<string, string>;

test.each(Object.keys(kept))('under %s', async (name) => {
  const folder = mkdtempSync(join(tmpdir(), 'views-'));
  try {
    const found = await repeatedLiveRun(name, folder);
    // For a change that is meant to change them, and says why.
    if (process.env['GOLDEN_UPDATE'] === '1') {
      kept[name] = found;
      writeFileSync(goldenRuns, `${JSON.stringify(kept, undefined, 2)}\n`);
    } else expect(found).toBe(kept[name]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
