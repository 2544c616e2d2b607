// Decisions of every policy on random worlds, kept as digests: a change that alters one shows here.
import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { walk } from '../testing/random-world.js';
import { ServedWorld } from '../testing/served-world.js';
import { toPlain } from '../view/saved-view.js';
import type { Decision } from '../view/decision.js';
import { makePolicy } from './make-policy.js';
import type { PolicyNeeds } from './make-policy.js';
import type { Policy } from './policy.js';
import { policies } from './registry.js';
import { dividedSms } from '../testing/fixtures.js';

const seeds = Array.from({ length: 10 }, (_, at) => at + 1);
const steps = 40;

function needsOf(seed: number): PolicyNeeds {
  const admission = seed % 2 === 0 ? 'refuse' : 'best-effort';
  return { predictorOf: () => dividedSms, random: seededRandom(seed), admission };
}

function digestOf(name: string, seed: number): string {
  const policy = makePolicy(name, needsOf(seed));
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

/** Digests of the decisions of a policy as a live platform asks it: what it decides, what it holds, and what it says of it. */
function passesOf(name: string, seed: number): string {
  const policy = makePolicy(name, needsOf(seed));
  const world = new ServedWorld(seededRandom(seed + 1000));
  const [decided, held, told] = [0, 1, 2].map(() => createHash('sha256')) as [Hash, Hash, Hash];
  const actions = new Map<string, number>();
  const note = (decision: Decision): Decision => {
    const { starts, refused, rejected, order, bestEffort, wakeAt, sharings = [] } = decision;
    const placed = starts.map(({ task, gpu, alsoOn, share, request, predictedMs }) => {
      return { task, gpu, alsoOn, share, request, predictedMs };
    });
    const given = [placed, refused.map(({ task }) => task), bestEffort, order, wakeAt, sharings];
    const wanted = (decision.actions ?? []).map((action) => ({ ...action, reason: '' }));
    for (const { kind } of wanted) actions.set(kind, (actions.get(kind) ?? 0) + 1);
    decided.update(JSON.stringify(toPlain([...given, wanted])));
    held.update(JSON.stringify(toPlain(starts.map(({ choice }) => [choice?.placement, choice?.reuses]))));
    const reasons = [...starts, ...refused, ...(decision.actions ?? [])].map(({ reason }) => reason);
    told.update(JSON.stringify(toPlain([reasons, rejected, starts.map(({ choice }) => choice?.rejected)])));
    return decision;
  };
  const asked: Policy = {
    ...policy,
    decide(seen, event) {
      for (const kind of ['tick', 'report'] as const) note(policy.decide(world.view(seen), { kind }));
      return note(policy.decide(world.view(seen), event));
    },
  };
  walk(seededRandom(seed), asked, steps, () => undefined);
  const digests = [decided, held, told].map((one) => one.digest('hex').slice(0, 12));
  return [...digests, ...Array.from(actions, ([kind, count]) => `${count} ${kind}`).sort()].join(', ');
}

const passesKept = new URL('../../src/policies/golden-passes.json', import.meta.url);

test('every policy decides, holds and tells as it did, with a ledger, instances, workloads and arrivals', () => {
  const passes = Object.fromEntries(
    Object.keys(policies).map((name) => [name, Object.fromEntries([1, 3].map((seed) => [seed, passesOf(name, seed)]))]),
  );
  // For a change that is meant to change them, and says why.
  if (process.env['GOLDEN_UPDATE'] === '1') writeFileSync(passesKept, `${JSON.stringify(passes, undefined, 2)}\n`);
  expect(passes).toEqual(JSON.parse(readFileSync(passesKept, 'utf8')));
});
