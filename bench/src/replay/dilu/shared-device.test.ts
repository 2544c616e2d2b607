import { describe, expect, test } from '@jest/globals';
import { noScaling } from '@gpuwhisk/gpu/scale/scale';
import { latencySurface } from '../model/latency-surface.js';
import {
  runCluster,
  type ClusterResult,
  type LoadedFunction,
  type SharingWay,
  type SubmittedTraining,
} from './cluster.js';
import { shareCurve, SharedDevice, speedOf, type Control } from './shared-device.js';
import type { ServedModel } from './served-models.js';

/** Work that takes 10 ms on the whole device, and one over its share up to half of it. */
const curve = shareCurve((share) => 10 / Math.min(1, 2 * share), 0.1);
/** Latency 20 ms from half of the device on, 40 ms at a quarter. */
const surface = latencySurface(
  [0.1, 0.25, 0.5, 1].map((share) => ({ batch: 1, share, latencyMs: 20 / Math.min(1, 2 * share) })),
);
const model: ServedModel = { name: 'm', surface, sloMs: 80, batch: 1, request: 0.25, limit: 0.5 };

const evenly = (perS: number, lengthS: number): LoadedFunction => ({
  ...{ model, kind: 'inference', memoryMiB: 1000 },
  load: { arrivals: Float64Array.from({ length: perS * lengthS }, (_, at) => (at * 1000) / perS), lengthS },
});
const training = (workers: number, steps: number): SubmittedTraining => ({
  ...{ name: 't', workers, curve, syncMs: 10, steps, request: 0.4, limit: 1, memoryMiB: 1000, atS: 0 },
});
/** Everything on the first devices, one member each. */
const way = (control: Control, most: 'request' | 'limit' = 'limit'): SharingWay => ({
  rule: ({ devices }, { gpus, request, memoryMiB, ...of }) =>
    devices
      .slice(0, gpus)
      .map((device) => ({ device, request, limit: most === 'limit' ? of.limit : request, memoryMiB })),
  ...{ control, scale: noScaling, served: () => ({ request: 0, limit: 0 }) },
});
const run = (
  functions: LoadedFunction[],
  trainings: SubmittedTraining[],
  sharing: SharingWay,
  lengthS = 10,
): ClusterResult =>
  runCluster(functions, trainings, sharing, { nodes: 1, perNode: 2, memoryMiB: 40_000 }, { lengthS, coldMs: 0 });

describe('a shared device', () => {
  test('divides its SMs max-min fairly among those that are active', () => {
    const device = new SharedDevice('fixed');
    const [small, large, idle] = [0.2, 1, 1].map((limit) =>
      device.add(
        { request: 0.1, limit, violation: 0 },
        shareCurve((share) => 10 / share, 0.1),
      ),
    );
    for (const one of [small!, large!]) one.isActive = true;
    device.divide();
    expect([small!.share, large!.share, idle!.share]).toEqual([0.2, 0.8, 0]);
    expect(speedOf(large!)).toBeCloseTo(0.8);
    idle!.isActive = true;
    device.divide();
    expect([small!.share, large!.share, idle!.share]).toEqual([0.2, 0.4, 0.4]);
  });
});

describe('functions and training together', () => {
  test('one alone has the times of its share', () => {
    const { functions, trainings, gpus } = run([evenly(10, 10)], [], way('fixed', 'request'));
    expect(Math.max(...functions[0]!.latenciesMs)).toBeCloseTo(40);
    expect([functions[0]!.violations, trainings.length, gpus]).toEqual([0, 0, 1]);
    // 10 ms of computation and 10 ms without, 100 times.
    const alone = run([], [training(2, 100)], way('fixed'));
    expect(alone.trainings[0]!.jctS).toBeCloseTo(2);
    expect(alone.mostGpus).toBe(2);
  });

  test('a training waits for its slowest member', () => {
    // A function that is always busy takes a part of the first device; the second member is as fast as before, and waits.
    const slow = (workers: number): SubmittedTraining => ({
      ...{ ...training(workers, 100), curve: shareCurve((share) => 10 / share, 0.1) },
    });
    const both = run([evenly(50, 10)], [slow(2)], way('fixed'));
    const alone = run([evenly(50, 10)], [slow(1)], way('fixed'));
    expect(both.trainings[0]!.jctS).toBeCloseTo(alone.trainings[0]!.jctS!, 1);
    expect(both.trainings[0]!.jctS).toBeGreaterThan(2.5);
  });

  test('tokens leave a training what the function does not use, and keep the function fast', () => {
    const job = { ...training(1, Infinity), curve: shareCurve((share) => 10 / share, 0.1), syncMs: 0 };
    const seen = (control: Control, most: 'request' | 'limit'): { p: number; steps: number } => {
      const { functions, trainings } = run([evenly(5, 20)], [job], way(control, most), 20);
      return { p: Math.max(...functions[0]!.latenciesMs), steps: trainings[0]!.steps };
    };
    const tokens = seen({ maxTokens: 1 }, 'limit');
    const requests = seen('fixed', 'request');
    // With its request alone the training has 40 % for ever; the function's tokens lie idle.
    expect(tokens.steps).toBeGreaterThan(1.2 * requests.steps);
    expect(tokens.p).toBeLessThan(2 * requests.p);
    // A hundredth of the blocks starves both.
    expect(seen({ maxTokens: 0.25 }, 'limit').steps).toBeLessThan(tokens.steps);
  });

  test('what finds no place waits, and a job that does not end is an error', () => {
    const nowhere: SharingWay = { ...way('fixed'), rule: () => undefined };
    expect(() => run([], [training(1, 100)], nowhere, 1)).toThrow('training has not ended');
    const { functions } = run([evenly(10, 1)], [], nowhere, 1);
    expect(functions[0]).toMatchObject({ requests: 10, violations: 10, coldStarts: 0 });
  });
});
