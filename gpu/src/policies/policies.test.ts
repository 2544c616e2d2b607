import { describe, expect, test } from '@jest/globals';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import type { Random } from '@gpuwhisk/common/system/random';
import type { SlowdownPredictor } from '../predict/slowdown-predictor.js';
import type { Decision, GpuState, Policy, RunningTask, SchedulingEvent, Snapshot, Task } from './policy.js';
import { makePolicy, policies } from './registry.js';
import { needMiB } from './rooms.js';
import { dividedSms, gpuOf, taskOf } from './testing.js';

const seeds = Array.from({ length: 6 }, (_, at) => at + 1);
const modes = ['mps', 'mps', 'exclusive', 'timeslice', 'mig'] as const;
const pick = <One>(random: Random, from: readonly One[]): One => from[random.uint32() % from.length]!;

/** Sometimes no number at all. */
const unreliable = (random: Random): SlowdownPredictor => ({
  slowdown: (one, others) =>
    pick(random, [dividedSms.slowdown(one, others), dividedSms.slowdown(one, others), NaN, Infinity, -1]),
});

function randomTask(random: Random, id: string, at: number): Task {
  const smUtil = randomFraction(random);
  return taskOf(id, {
    function: `/a/f${random.uint32() % 5}`,
    namespace: pick(random, ['a', 'b', 'c']),
    memoryMiB: pick(random, [500, 2000, 4000, 9000, 30_000, 0, NaN]),
    gpus: pick(random, [1, 1, 1, 1, 2, 9]),
    arrivedAt: at - (random.uint32() % 60_000) + 100,
    class: pick(random, ['inference', 'training', 'compute']),
    ...pick(random, [{}, { soloMs: 50 }, { soloMs: 3000 }, { soloMs: 3000 }, { soloMs: NaN }, { soloMs: 0 }]),
    ...pick(random, [{}, { sloMs: 1 }, { sloMs: 500 }, { sloMs: 20_000 }, { sloMs: 120_000 }]),
    ...pick(random, [{}, { features: { smUtil, dramUtil: smUtil / 2, l2Util: 0.1 } }]),
    ...pick(random, [{}, {}, {}, { share: 0.3 }, { maxShare: 0.5 }]),
    ...pick(random, [{}, {}, {}, { allowed: new Set(['g1', 'g2']) }]),
  });
}

function assertSound({ gpus, waiting }: Snapshot, decision: Decision): void {
  const { starts, refused, order, bestEffort } = decision;
  const ended = [...starts.map(({ task }) => task), ...refused.map(({ task }) => task), ...order];
  expect([...ended].sort()).toEqual(waiting.map(({ id }) => id).sort());
  expect(waiting.map(({ id }) => id)).toEqual(expect.arrayContaining([...bestEffort]));
  const tasks = new Map(waiting.map((task) => [task.id, task]));
  for (const gpu of gpus) {
    const here = starts.filter((one) => one.gpu === gpu.id || one.alsoOn?.includes(gpu.id));
    const all = [...gpu.running.map(({ task }) => task), ...here.map(({ task }) => tasks.get(task)!)];
    if (here.length === 0) continue;
    expect(all.reduce((total, task) => total + needMiB(task, gpu), 0)).toBeLessThanOrEqual(gpu.memoryMiB);
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

describe.each(Object.keys(policies))('the policy %s', (name) => {
  const make = (predictor: SlowdownPredictor, seed: number, admission: 'best-effort' | 'refuse'): Policy =>
    makePolicy(name, { predictorOf: () => predictor, random: seededRandom(seed), admission });

  test.each(seeds)('loses nothing, places nothing twice and exceeds no memory, whatever comes (seed %i)', (seed) => {
    const random = seededRandom(seed);
    const policy = make(unreliable(random), seed, pick(random, ['best-effort', 'refuse']));
    let gpus: GpuState[] = Array.from({ length: 1 + (random.uint32() % 6) }, (_, at) =>
      gpuOf(`g${at}`, { mode: pick(random, modes), node: pick(random, ['n', 'm']), memoryMiB: 10_000 }),
    );
    let waiting: Task[] = [];
    let at = 1_000_000;
    for (let step = 0; step < 60; step += 1) {
      // The clock may be set back.
      at += pick(random, [0, 5, 200, 10_000, -60_000]);
      const arrived = Array.from({ length: random.uint32() % 8 }, (_, n) => randomTask(random, `t${step}.${n}`, at));
      waiting.push(...arrived);
      // A GPU vanishes with what runs on it, or an empty one comes.
      if (random.uint32() % 10 === 0) gpus = gpus.slice(1);
      if (random.uint32() % 10 === 0) gpus.push(gpuOf(`new${step}`, { mode: pick(random, modes) }));
      const [ended] = gpus.flatMap(({ running }) => running);
      gpus = gpus.map((gpu) => ({ ...gpu, running: gpu.running.filter((one) => one !== ended) }));
      const events: SchedulingEvent[] = [{ kind: 'timer' }];
      if (ended !== undefined) events.push({ kind: 'completion', task: ended.task.id, gpu: 'g0' });
      if (arrived[0] !== undefined) events.push({ kind: 'arrival', task: arrived[0].id });
      const snapshot: Snapshot = { at, gpus, waiting };
      const decision = policy.decide(snapshot, pick(random, events));
      assertSound(snapshot, decision);
      const gone = new Set([...decision.starts, ...decision.refused].map(({ task }) => task));
      gpus = gpus.map((gpu) => {
        const starts = decision.starts.filter((one) => one.gpu === gpu.id || one.alsoOn?.includes(gpu.id));
        const added = starts.map(({ task, share }): RunningTask => ({
          task: waiting.find(({ id }) => id === task)!,
          share,
          startedAt: at,
        }));
        return { ...gpu, running: [...gpu.running, ...added] };
      });
      waiting = waiting.filter(({ id }) => !gone.has(id));
    }
  });

  test.each(seeds.slice(0, 4))('starts all that fits somewhere in the end (seed %i)', (seed) => {
    const random = seededRandom(seed);
    const policy = make(unreliable(random), seed, 'best-effort');
    let gpus = ['g0', 'g1', 'g2'].map((id) => gpuOf(id));
    let waiting = Array.from({ length: 40 }, (_, at) => ({
      ...randomTask(random, `t${at}`, 0),
      ...{ gpus: 1 + (random.uint32() % 2), memoryMiB: pick(random, [0, 900, 5000, 10_000]) },
    }));
    for (let at = 0; waiting.length > 0; at += 1000) {
      expect(at).toBeLessThan(200_000);
      const { starts, bestEffort } = policy.decide({ at, gpus, waiting }, { kind: 'timer' });
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

  test('has everybody wait while there is no GPU', () => {
    const waiting = [taskOf('t'), taskOf('strict', { sloMs: 1000, soloMs: 10 })];
    const { starts, order } = make(dividedSms, 1, 'refuse').decide({ at: 5, gpus: [], waiting }, { kind: 'timer' });
    expect([starts, [...order].sort()]).toEqual([[], ['strict', 't']]);
  });
});
