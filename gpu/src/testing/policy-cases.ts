// Properties that every policy has.
import { describe, expect, test } from '@jest/globals';
import type { JsonValue } from '@gpuwhisk/common/json';
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { SlowdownPredictor } from '../predict/slowdown-predictor.js';
import { mostRejections } from '../view/decision.js';
import type { Decision } from '../view/decision.js';
import type { Policy } from '../policies/policy.js';
import type { View } from '../view/view.js';
import { pick, randomTask, unreliable, walk } from './random-world.js';
import { makePolicy } from '../policies/make-policy.js';
import { trainingLast } from '../policies/training-last.js';
import { neededMiB } from '../ledger/account.js';
import { dividedSms, gpuOf, plainDecision, runningTask, taskOf } from './fixtures.js';
import { gpusOf, viewOf } from './views.js';
import type { ViewParts } from './views.js';

/** Constraints that go by no number. */
const withoutNumbers = [
  ...['kept for one that waits for longer', 'it may not run there', 'it is cut into slices'],
  'nothing holds it to the share that its namespace may have',
];

/** Every alternative names what decided against it, with its numbers. */
function assertExplained({ rejected }: Decision): void {
  const told = new Map<string, Set<string>>();
  for (const { task, what } of rejected) told.set(task, (told.get(task) ?? new Set()).add(what));
  const sizes = [...told.values()].map(({ size }) => size);
  const silent = rejected.filter(
    ({ reason, numbers }) => Object.keys(numbers).length === 0 && !withoutNumbers.includes(reason),
  );
  expect([silent, Math.max(0, ...sizes) <= mostRejections]).toEqual([[], true]);
  expect(rejected.length).toBe(sizes.reduce((sum, size) => sum + size, 0));
}

const seeds = Array.from({ length: 3 }, (_, at) => at + 1);
function assertSound(view: View, decision: Decision): void {
  const { waiting } = view;
  const gpus = gpusOf(view);
  const { starts, refused, order, bestEffort } = decision;
  const ended = [...starts.map(({ task }) => task), ...refused.map(({ task }) => task), ...order];
  expect([...ended].sort()).toEqual(waiting.map(({ id }) => id).sort());
  expect(waiting.map(({ id }) => id)).toEqual(expect.arrayContaining([...bestEffort]));
  const tasks = new Map(waiting.map((task) => [task.id, task]));
  for (const gpu of gpus) {
    const here = starts.filter((one) => one.gpu === gpu.id || one.alsoOn?.includes(gpu.id));
    const all = [...gpu.running.map(({ task }) => task), ...here.map(({ task }) => tasks.get(task)!)];
    if (here.length === 0) continue;
    expect(all.reduce((total, task) => total + neededMiB(task, { capacityMiB: gpu.memoryMiB }), 0)).toBeLessThanOrEqual(
      gpu.memoryMiB,
    );
    if (gpu.mode === 'exclusive') expect(all).toHaveLength(1);
  }
  for (const { task: id, gpu, alsoOn = [], share } of starts) {
    const task = tasks.get(id)!;
    const used = [gpu, ...alsoOn].map((name) => gpus.find((one) => one.id === name)!);
    expect(new Set(used.map(({ node, type, mode }) => `${node} ${type} ${mode}`)).size).toBe(1);
    expect(new Set([gpu, ...alsoOn]).size).toBe(task.gpus);
    expect(share).toBeGreaterThan(0);
    expect(share).toBeLessThanOrEqual(task.share ?? 1);
    for (const one of used) expect(task.allowed?.has(one.id) ?? true).toBe(true);
    if (task.maxShare !== undefined) for (const { mode } of used) expect(['mps', 'mig']).toContain(mode);
  }
}

/** Runs the cases with each of the policies. */
export function policyCases(names: readonly string[]): void {
  describe.each(names)('the policy %s', (name) => {
    const make = (predictor: SlowdownPredictor, seed: number, admission: 'best-effort' | 'refuse'): Policy =>
      makePolicy(name, { predictorOf: () => predictor, random: seededRandom(seed), admission });

    test.each(seeds)('loses nothing, places nothing twice and exceeds no memory, whatever comes (seed %i)', (seed) => {
      const random = seededRandom(seed);
      const policy = make(unreliable(random), seed, pick(random, ['best-effort', 'refuse']));
      walk(random, policy, 60, (view, decision) => {
        assertSound(view, decision);
        assertExplained(decision);
      });
    });

    test('decides the same on the same views with the same seed', () => {
      const decided = (): JsonValue[] => {
        const decisions: JsonValue[] = [];
        const random = seededRandom(9);
        walk(random, make(unreliable(random), 9, 'best-effort'), 40, (_, decision) =>
          decisions.push(plainDecision(decision)),
        );
        return decisions;
      };
      expect(decided()).toEqual(decided());
    });

    test.each(seeds)('starts all that fits somewhere in the end (seed %i)', (seed) => {
      const random = seededRandom(seed);
      const policy = make(unreliable(random), seed, 'best-effort');
      let gpus = ['g0', 'g1', 'g2'].map((id) => gpuOf(id));
      let waiting = Array.from({ length: 40 }, (_, at) => ({
        ...randomTask(random, `t${at}`, 0),
        ...{ gpus: 1 + (random.uint32() % 2), memoryMiB: pick(random, [0, 900, 5000, 10_000]) },
      }));
      for (let at = 0; waiting.length > 0; at += 1000) {
        expect(at).toBeLessThan(200_000);
        const { starts, bestEffort } = policy.decide(viewOf({ at, gpus, waiting }), { kind: 'timer' });
        const started = new Set(starts.map(({ task }) => task));
        // Everything has ended by the next look.
        gpus = gpus.map((gpu) => ({ ...gpu, running: [] }));
        waiting = waiting
          .filter(({ id }) => !started.has(id))
          .map(({ sloMs, ...task }) => ({
            ...task,
            ...(sloMs !== undefined && !bestEffort.includes(task.id) && { sloMs }),
          }));
      }
    });

    test('places training after tasks with an SLO, and never where it makes one late by prediction', () => {
      const policy = trainingLast(make(dividedSms, 1, 'best-effort'), () => dividedSms);
      const started = (parts: ViewParts): string[][] =>
        policy.decide(viewOf(parts), { kind: 'timer' }).starts.map(({ task, gpu }) => [task, gpu]);
      const wide = { features: { smUtil: 1, dramUtil: 0.5, l2Util: 0.1 }, soloMs: 1000 };
      const training = taskOf('training', { ...wide, function: '/a/train', class: 'training' });
      const strict = taskOf('strict', { ...wide, function: '/a/strict', arrivedAt: 1, sloMs: 1500 });
      const [gpu, other] = [gpuOf('g0'), gpuOf('g1')];
      // One GPU for both: the one that came later goes first; the other one once nothing waits.
      const held = policy.decide(viewOf({ at: 1, gpus: [gpu], waiting: [training, strict] }), { kind: 'timer' });
      expect(held.starts.map(({ task }) => task)).toEqual(['strict']);
      expect([held.order, held.wakeAt]).toEqual([['training'], expect.any(Number)]);
      expect(started({ at: 1, gpus: [gpu], waiting: [training] })).toEqual([['training', 'g0']]);
      // Beside the strict task it would double its time.
      const busy = { ...gpu, running: [runningTask(strict, 1, 1)] };
      expect(started({ at: 1, gpus: [busy, other], waiting: [training] })).toEqual([['training', 'g1']]);
      expect(started({ at: 1, gpus: [busy], waiting: [training] })).toEqual([]);
      // A task that misses its SLO all the same holds nothing back, and neither does load that never ends.
      expect(started({ at: 5000, gpus: [gpu, other], waiting: [training, strict] }).flat()).toContain('training');
      const endless = taskOf('endless', { ...wide, memoryMiB: 1e6, arrivedAt: 700_000, sloMs: 60_000 });
      expect(started({ at: 700_001, gpus: [gpu, other], waiting: [training, endless] }).flat()).toContain('training');
    });

    test('has everybody wait while there is no GPU', () => {
      const waiting = [taskOf('t'), taskOf('strict', { sloMs: 1000, soloMs: 10 })];
      const { starts, order } = make(dividedSms, 1, 'refuse').decide(viewOf({ at: 5, waiting }), { kind: 'timer' });
      expect([starts, [...order].sort()]).toEqual([[], ['strict', 't']]);
    });
  });
}
