// Decisions of every baseline on random worlds, kept as digests: a change that alters one shows here. The baselines come from
// the file that operators name in `gpu.policyModules`: the platform accepts it, and it decides as the code it is made of.
import { chmodSync, copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { policies } from '@gpuwhisk/gpu/policies/registry';
import { goldenDecisions, goldenPasses } from '@gpuwhisk/gpu/testing/golden-digests';
import { loadPolicyModules } from '@gpuwhisk/server/process/policy-modules';
import module from './module.js';

const baselines = Object.keys(module.policies ?? {});
// A clone may be writable for a group, and modules may not.
const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-baselines-'));
const bundle = join(folder, 'baselines.mjs');
copyFileSync(new URL('../baselines.mjs', import.meta.url), bundle);
chmodSync(bundle, 0o644);
await loadPolicyModules({ policyModules: [bundle], tokens: false });
afterAll(() => rmSync(folder, { recursive: true }));

test('the file has every baseline', () => {
  expect(Object.keys(policies).slice(-baselines.length).sort()).toEqual([...baselines].sort());
});

test.each([
  ['decides as it did', 'golden-decisions.json', goldenDecisions],
  [
    'decides, holds and tells as it did, with a ledger, instances, workloads and arrivals',
    'golden-passes.json',
    goldenPasses,
  ],
])('every baseline %s', (_, file, digestsOf) => {
  const kept = new URL(`../../src/baselines/${file}`, import.meta.url);
  const found = digestsOf(baselines);
  // For a change that is meant to change them, and says why.
  if (process.env['GOLDEN_UPDATE'] === '1') writeFileSync(kept, `${JSON.stringify(found, undefined, 2)}\n`);
  expect(found).toEqual(JSON.parse(readFileSync(kept, 'utf8')));
});
