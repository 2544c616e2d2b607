// The file that operators name in `gpu.policyModules`: the platform accepts it, and it decides as the code it is made of.
import { chmodSync, copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { policies } from '@gpuwhisk/gpu/policies/registry';
import { loadPolicyModules } from '@gpuwhisk/server/process/policy-modules';
import { goldenDecisions, goldenPasses } from '@gpuwhisk/gpu/testing/golden-digests';

const kept = (file: string): Record<string, unknown> =>
  JSON.parse(readFileSync(new URL(`../../src/baselines/${file}`, import.meta.url), 'utf8')) as Record<string, unknown>;
const names = Object.keys(kept('golden-decisions.json'));

let folder: string;
beforeAll(async () => {
  // A clone may be writable for a group, and modules may not.
  folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-baselines-'));
  const bundle = join(folder, 'baselines.mjs');
  copyFileSync(new URL('../baselines.mjs', import.meta.url), bundle);
  chmodSync(bundle, 0o644);
  await loadPolicyModules({ policyModules: [bundle], tokens: false });
});
afterAll(() => rmSync(folder, { recursive: true }));

test('it has every baseline', () => {
  expect(Object.keys(policies).slice(-names.length).sort()).toEqual([...names].sort());
});

test('it decides as the code that it is made of', () => {
  expect(goldenDecisions(names)).toEqual(kept('golden-decisions.json'));
  expect(goldenPasses(names)).toEqual(kept('golden-passes.json'));
});
