// Decisions of every policy on random worlds, kept as digests: a change that alters one shows here.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { walk } from '../testing/random-world.js';
import { makePolicy } from './make-policy.js';
import { policies } from './registry.js';
import { dividedSms } from '../testing/fixtures.js';

const seeds = Array.from({ length: 10 }, (_, at) => at + 1);
const steps = 40;

function digestOf(name: string, seed: number): string {
  const policy = makePolicy(name, {
    predictorOf: () => dividedSms,
    random: seededRandom(seed),
    admission: seed % 2 === 0 ? 'refuse' : 'best-effort',
  });
  const digest = createHash('sha256');
  walk(seededRandom(seed), policy, steps, (_, { starts, refused, bestEffort, order }) => {
    const placed = starts.map(({ task, gpu, alsoOn = [], share }) => [task, gpu, alsoOn, share]);
    digest.update(JSON.stringify([placed, refused.map(({ task }) => task), bestEffort, order]));
  });
  return digest.digest('hex').slice(0, 12);
}

const found = Object.fromEntries(
  Object.keys(policies).map((name) => [name, Object.fromEntries(seeds.map((seed) => [seed, digestOf(name, seed)]))]),
);

const kept = new URL('../../src/policies/golden-decisions.json', import.meta.url);

test('every policy decides as it did', () => {
  // For a change that is meant to change them, and says why.
  if (process.env['GOLDEN_UPDATE'] === '1') writeFileSync(kept, `${JSON.stringify(found, undefined, 2)}\n`);
  expect(found).toEqual(JSON.parse(readFileSync(kept, 'utf8')));
});
