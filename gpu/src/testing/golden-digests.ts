// Digests of decisions on random worlds, by which a change that alters one shows.
import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { makePolicy } from '../policies/make-policy.js';
import type { PolicyNeeds } from '../policies/make-policy.js';
import type { Policy } from '../policies/policy.js';
import { toPlain } from '../view/saved-view.js';
import type { Decision } from '../view/decision.js';
import { dividedSms } from './fixtures.js';
import { walk } from './random-world.js';
import { ServedWorld } from './served-world.js';

const steps = 40;

function needsOf(seed: number): PolicyNeeds {
  const admission = seed % 2 === 0 ? 'refuse' : 'best-effort';
  return { predictorOf: () => dividedSms, random: seededRandom(seed), admission };
}

/** A digest of the decisions of a policy on a random world. */
function digestOf(name: string, seed: number): string {
  const policy = makePolicy(name, needsOf(seed));
  const digest = createHash('sha256');
  walk(seededRandom(seed), policy, steps, (_, { starts, refused, bestEffort, order }) => {
    const placed = starts.map(({ task, gpu, alsoOn = [], share }) => [task, gpu, alsoOn, share]);
    digest.update(JSON.stringify([placed, refused.map(({ task }) => task), bestEffort, order]));
  });
  return digest.digest('hex').slice(0, 12);
}

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

/** By policy and seed: digests on worlds without instances. */
export function goldenDecisions(names: readonly string[]): Record<string, Record<string, string>> {
  const seeds = Array.from({ length: 10 }, (_, at) => at + 1);
  return Object.fromEntries(
    names.map((name) => [name, Object.fromEntries(seeds.map((seed) => [seed, digestOf(name, seed)]))]),
  );
}

/** By policy and seed: digests of passes with a ledger, instances, workloads and arrivals. */
export function goldenPasses(names: readonly string[]): Record<string, Record<string, string>> {
  return Object.fromEntries(
    names.map((name) => [name, Object.fromEntries([1, 3].map((seed) => [seed, passesOf(name, seed)]))]),
  );
}
