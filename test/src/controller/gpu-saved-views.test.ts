// A live scheduler writes its views to files; each decision is then repeated from its file.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import type { Config } from '@gpuwhisk/common/config';
import { policies } from '@gpuwhisk/gpu/policies/registry';
import { repeatedLiveRun } from './live-run.js';

const choices: [string, Config['gpu']['policy']][] = [
  ...Object.keys(policies).map((name): [string, string] => [name, name]),
  ['faashare with reactive scaling', { base: 'faashare', scale: 'reactive', preempt: 'by-stop' }],
];

/** What live runs sent and told, by their decision records: a change that alters one shows here. */
const goldenRuns = new URL('../../src/controller/golden-live-runs.json', import.meta.url);

test.each(choices)('under policy %s every decision of a live run is the same from its file', async (name, policy) => {
  const folder = mkdtempSync(join(tmpdir(), 'views-'));
  try {
    const found = await repeatedLiveRun(policy, folder);
    const kept = JSON.parse(readFileSync(goldenRuns, 'utf8')) as Record<string, string>;
    // For a change that is meant to change them, and says why.
    if (process.env['GOLDEN_UPDATE'] === '1') {
      writeFileSync(goldenRuns, `${JSON.stringify({ ...kept, [name]: found }, undefined, 2)}\n`);
    } else expect(found).toBe(kept[name]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
