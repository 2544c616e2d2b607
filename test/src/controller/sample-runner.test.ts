// Measured times of samples on a simulated clock: runs that are too long, too short or too few, and failures.
import { beforeEach, describe, expect, test } from '@jest/globals';
import { ActivationStatus } from '@gpuwhisk/common/entities/activation';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import type { InvokeRequest, InvokeService } from '@gpuwhisk/controller/invoke/invoke-service';
import { SampleRunner } from '@gpuwhisk/controller/gpu/search/sample-runner';
import type { SharedSample } from '@gpuwhisk/controller/gpu/search/sample-runner';
import { SimulatedClock } from '../simulation/simulated-clock.js';
import { actionNamed, identity } from './gpu-cluster.js';

const maxSampleMs = 5000;
/** A simulated run. Records have times in whole ms. */
interface Ran {
  /** Duration of the run; absent: the run fails. */
  ms?: number;
  isCold?: boolean;
  /** Time from the end in the record until the next run begins. */
  gapMs?: number;
}

let clock: SimulatedClock;
let runs: InvokeRequest[];
/** Describes the n-th run of a function, from 0. */
let howItGoes: (name: string, nth: number) => Ran;
const never = new AbortController().signal;

const invoker: InvokeService = {
  async invoke(request) {
    const { name } = request.action;
    const nth = runs.filter(({ action }) => action.name === name).length;
    runs.push(request);
    const { ms, isCold = false, gapMs = 0 } = howItGoes(name, nth);
    const maxMs = request.sample?.maxMs ?? Infinity;
    const isOverlong = ms !== undefined && ms > maxMs;
    const start = clock.now();
    await new Promise<void>((done) => void clock.setTimer(Math.min(ms ?? 1, maxMs), done));
    const end = clock.now();
    await new Promise<void>((done) => void clock.setTimer(gapMs, done));
    const annotations = [
      ...(isCold ? [{ key: 'initTime', value: 0 }] : []),
      ...(isOverlong ? [{ key: 'timeout', value: true }] : []),
    ];
    const statusCode = ms === undefined || isOverlong ? ActivationStatus.developerError : ActivationStatus.success;
    const activation = { activationId: `run ${nth} of ${name}`, annotations, response: { statusCode }, start, end };
    return { type: 'completed', activation: activation as unknown as WhiskActivation };
  },
};
const sampleOf = (name: string): SharedSample => ({
  sample: {
    ...{ job: { function: `/alice/${name}`, version: '1', batch: 1 }, identity, action: actionNamed(name) },
    ...{ payload: {}, memoryMiB: 1000 },
  },
  shareClass: 50,
});
let runner: SampleRunner;
beforeEach(() => {
  clock = new SimulatedClock();
  runs = [];
  runner = new SampleRunner({ invoker, clock, maxSampleMs });
});
/** Runs the clock until the promise settles. Returns its value, or the message of its error. */
async function settled<Value>(work: Promise<Value>): Promise<Value | string> {
  return clock.runUntil(work.catch((error: Error) => error.message));
}
const alone = (name = 'f', signal = never) => settled(runner.alone(sampleOf(name), 'GPU-0', signal));
const together = (soloMs: number[], names = ['f', 'g']) =>
  settled(runner.together(names.map(sampleOf), soloMs, 'GPU-0', never));

describe('a sample alone', () => {
  test('takes what is typical of its warm runs, on the GPU and with the share that were asked for', async () => {
    howItGoes = (_, nth) => (nth === 0 ? { ms: 900, isCold: true } : { ms: 100 });
    expect(await alone()).toBe(100);
    expect(runs[0]).toMatchObject({ blocking: true, sample: { gpu: 'GPU-0', shareClass: 50, maxMs: maxSampleMs } });
  });

  test('that takes too long has no time, and is not run again', async () => {
    howItGoes = () => ({ ms: maxSampleMs + 1 });
    expect(await alone()).toBe(Infinity);
    expect(runs).toHaveLength(1);
  });

  test.each<[string, (nth: number) => Ran, string, number]>([
    ['takes no time', () => ({ ms: 0 }), 'the sample of /alice/f takes less than a millisecond', 10],
    ['never stays warm', () => ({ ms: 100, isCold: true }), 'no instance of /alice/f stays warm', 200],
    ['fails', (nth) => (nth < 2 ? { ms: 10 } : {}), 'the sample of /alice/f failed in activation run 2 of f', 3],
  ])('that %s is given up', async (_, goes, reason, count) => {
    howItGoes = (_name, nth) => goes(nth);
    expect(await alone()).toBe(reason);
    expect(runs).toHaveLength(count);
  });

  test('that is interrupted is given up at once', async () => {
    const search = new AbortController();
    howItGoes = () => ({ ms: 1000 });
    clock.setTimer(300, () => search.abort(new Error('work has come')));
    const from = clock.monotonicMs();
    expect(await alone('f', search.signal)).toBe('work has come');
    expect(clock.monotonicMs() - from).toBe(300);
    expect(runs).toHaveLength(1);
  });
});

describe('samples together', () => {
  test('are as much slower as they take longer, however unlike in length', async () => {
    howItGoes = (name) => ({ ms: name === 'f' ? 30 : 900 });
    expect(await together([20, 600])).toEqual([1.5, 1.5]);
  });

  test('one of which takes too long: that one is at least so slow, and nobody is run any longer', async () => {
    howItGoes = (name) => ({ ms: name === 'f' ? 100 : 2 * maxSampleMs });
    expect(await together([100, 1000])).toEqual([1, maxSampleMs / 1000]);
    expect(clock.monotonicMs()).toBeLessThanOrEqual(2 * maxSampleMs);
  });

  test.each<[string, (name: string) => Ran, number]>([
    ['take no time', () => ({ ms: 0 }), 1000],
    ['are beside each other for moments only', (name) => ({ ms: 20, gapMs: name === 'f' ? 2000 : 1700 }), 100_000],
  ])('that %s are given up within bounds', async (_, goes, withinMs) => {
    howItGoes = (name) => goes(name);
    expect(await together([10, 10])).toBe(
      'the samples are too short or differ too much in length to be measured together',
    );
    expect(runs.length).toBeLessThanOrEqual(2 * 201);
    expect(clock.monotonicMs()).toBeLessThan(withinMs);
  });

  test('one of which fails: the others begin no further run', async () => {
    howItGoes = (name, nth) => (name === 'f' && nth === 3 ? {} : { ms: 10 });
    expect(await together([10, 10])).toBe('the sample of /alice/f failed in activation run 3 of f');
    const count = runs.length;
    await clock.runFor(1000);
    expect(runs).toHaveLength(count);
  });
});
