import { randomFraction } from '@gpuwhisk/common/system/random';
import type { Random } from '@gpuwhisk/common/system/random';
import type { SlowdownPredictor } from '../predict/slowdown-predictor.js';
import type { Decision } from '../view/decision.js';
import type { ReportedPlace } from '../simulate/node-rows.js';
import type { RunningTask, SchedulingEvent, View, Task } from '../view/view.js';
import type { Policy } from '../policies/policy.js';
import { dividedSms, gpuOf, taskOf } from './fixtures.js';
import { viewOf } from './views.js';

const modes = ['mps', 'mps', 'exclusive', 'timeslice', 'mig'] as const;

/** One of `from`, each as likely. */
export const pick = <One>(random: Random, from: readonly One[]): One => from[random.uint32() % from.length]!;

/** Predicts what `dividedSms` does, and now and then no number, Infinity or a negative one. */
export const unreliable = (random: Random): SlowdownPredictor => ({
  slowdown: (one, others) =>
    pick(random, [dividedSms.slowdown(one, others), dividedSms.slowdown(one, others), NaN, Infinity, -1]),
});

/** A task with any combination of what tasks can have, unknown and senseless values included. */
export function randomTask(random: Random, id: string, at: number): Task {
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

/**
 * Runs `policy` for `steps` decisions on GPUs that come and go and a clock that may be set back; tells `onDecision` of each
 * snapshot and what was decided on it.
 */
export function walk(
  random: Random,
  policy: Policy,
  steps: number,
  onDecision: (snapshot: View, decision: Decision) => void,
): void {
  let gpus: ReportedPlace[] = Array.from({ length: 1 + (random.uint32() % 6) }, (_, at) =>
    gpuOf(`g${at}`, { mode: pick(random, modes), node: pick(random, ['n', 'm']), memoryMiB: 10_000 }),
  );
  let waiting: Task[] = [];
  let at = 1_000_000;
  for (let step = 0; step < steps; step += 1) {
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
    const snapshot = viewOf({ at, gpus, waiting });
    const decision = policy.decide(snapshot, pick(random, events));
    onDecision(snapshot, decision);
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
}
