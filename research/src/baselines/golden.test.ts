// Decisions of every baseline on random worlds, kept as digests: a change that alters one shows here.
import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { goldenDecisions, goldenPasses } from '@gpuwhisk/gpu/testing/golden-digests';
import { baselines } from './register.js';

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
