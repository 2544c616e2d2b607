// Tasks, GPUs and measured runs for tests and benchmarks.
import type { JsonValue } from '@gpuwhisk/common/json';
import { randomFraction, seededRandom, type Random } from '@gpuwhisk/common/system/random';
import type { SlowdownPredictor, CoLocated } from '../predict/slowdown-predictor.js';
import type { Decision } from '../view/decision.js';
import { toPlain } from '../view/saved-view.js';
import type { ReportedPlace } from '../simulate/node-rows.js';
import type { RunningTask, Task } from '../view/view.js';
import type { SlowdownSample } from '../predict/samples.js';

/** A task of which little is known, for tests and benchmarks. */
export function taskOf(id: string, changes: Partial<Task> = {}): Task {
  const known = { function: '/a/f', version: '1', namespace: 'a', batch: 1, gpus: 1, memoryMiB: 1000, arrivedAt: 0 };
  return { id, ...known, class: 'inference', ...changes };
}

/** A task that is known well: it uses `smUtil` of the SMs, half as much memory bandwidth, and a tenth of the cache. */
export function profiledTask(id: string, soloMs: number, smUtil: number, changes: Partial<Task> = {}): Task {
  return taskOf(id, { soloMs, features: { smUtil, dramUtil: smUtil / 2, l2Util: 0.1 }, ...changes });
}

/** An empty GPU under MPS. */
export function gpuOf(id: string, changes: Partial<ReportedPlace> = {}): ReportedPlace {
  return { id, node: 'n', type: 't', mode: 'mps', memoryMiB: 10_000, running: [], ...changes };
}

/** A task that runs with a share (0–1) since `startedAt`, ms. */
export function runningTask(task: Task, share: number, startedAt = 0): RunningTask {
  return { task, share, startedAt };
}

/** A world in which SMs are divided up to their number, and memory bandwidth costs a fifth of what others use of it. */
export const dividedSms: SlowdownPredictor = {
  slowdown(one, others) {
    const used = ({ features, share }: typeof one): number => Math.min(features.smUtil, share);
    const demand = others.reduce((total, other) => total + used(other), used(one));
    const bandwidth = others.reduce((total, { features }) => total + (features.dramUtil ?? 0), 0);
    return Math.max(1, one.features.smUtil / one.share) * Math.max(1, demand) * (1 + 0.2 * bandwidth);
  },
};

/** A decision as JSON, with the reasons of its alternatives, to be compared with another one. */
export function plainDecision(decision: Decision): JsonValue {
  const starts = decision.starts.map(({ choice, ...start }) => {
    if (choice === undefined) return start;
    const { placement, reuses, rejected } = choice;
    return { ...start, choice: { placement, reuses, rejected } };
  });
  return toPlain({ ...decision, starts });
}

function workload(random: Random): CoLocated {
  const [smUtil, dramUtil, l2Util] = [0, 0, 0].map(() => randomFraction(random)) as [number, number, number];
  return { features: { smUtil, dramUtil, l2Util }, share: (1 + Math.floor(randomFraction(random) * 10)) / 10 };
}

/** Invented runs beside one to three neighbours, under a law that no predictor here has, with 2 % of noise. For tests. */
export function inventedSamples(count: number, seed: number): SlowdownSample[] {
  const random = seededRandom(seed);
  return Array.from({ length: count }, () => {
    const one = workload(random);
    const others = Array.from({ length: 1 + Math.floor(randomFraction(random) * 3) }, () => workload(random));
    const dram = others.reduce((sum, { features, share }) => sum + features.dramUtil! * share, 0);
    const l2 = others.reduce((sum, { features, share }) => sum + features.l2Util! * share, 0);
    const alone = Math.max(1, one.features.smUtil / one.share);
    const contended = 1 + 0.4 * one.features.dramUtil! * dram + 0.2 * one.features.l2Util! * l2 * l2;
    return { one, others, slowdown: alone * contended * (0.98 + 0.04 * randomFraction(random)) };
  });
}

/** First come, first served, each task with the share that it fills: for tests that replace a stage of it. */
export const fillingInTurn = { base: 'exclusive', share: 'filling', place: 'best-fit' } as const;
