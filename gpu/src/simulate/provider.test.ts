import { expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { makePolicy } from '../policies/make-policy.js';
import type { Settings } from '../stages/policy-record.js';
import { dividedSms, fillingInTurn, taskOf } from '../testing/fixtures.js';
import { replay } from './replay.js';
import type { ReplayJob, ReplayRun } from './replay.js';
import type { SimulatedProvider } from './simulated-provider.js';

const truth = { noise: 0, slowdowns: (all: readonly unknown[]) => new Float64Array(all.length).fill(1), used: () => 1 };
const never = { noticedMs: Infinity, goneMs: Infinity };

/** One job of 10 s that comes at 60 s, on one machine that stage `procure: protean` rents from 0 on. */
function run(machine: SimulatedProvider['machine'], job: Partial<ReplayJob> = {}, settings: Settings = {}): ReplayRun {
  const choice = { ...fillingInTurn, procure: 'protean', settings };
  const needs = { predictorOf: () => dividedSms, random: seededRandom(1), admission: 'best-effort' } as const;
  const jobs = [{ task: taskOf('t', { arrivedAt: 60_000 }), workload: 'f', soloMs: 10_000, startMs: 0, ...job }];
  const provider = { wanted: 1, prices: { spot: 1, 'on-demand': 3 }, bootMs: 30_000, closesMs: 0, machine };
  const more = [{ type: 't', mode: 'mps', memoryMiB: 10_000 }] as const;
  return replay(jobs, { places: [], more, provider, fromMs: 0 }, truth, makePolicy(choice, needs), seededRandom(1));
}

test('a machine that is taken away stops its runs, and what may not be repeated is lost', () => {
  const takenAt65 = (_: string, request: number): typeof never =>
    request === 1 ? { noticedMs: 64_000, goneMs: 65_000 } : never;
  const repeated = run(takenAt65, { isIdempotent: true });
  expect(repeated.machines.map(({ askedAt, goneAt }) => [askedAt, goneAt])).toEqual([
    [0, 65_000],
    [64_000, Infinity],
  ]);
  // From the second machine on, which is up after its boot.
  expect(repeated.finished.map(({ startedAt, finishedAt }) => [startedAt, finishedAt])).toEqual([[94_000, 104_000]]);
  const lost = run(takenAt65);
  expect([lost.finished, lost.stopped]).toEqual([[], ['t']]);
});

test('a market without a machine is asked again, and a machine on demand is given back once its run is over', () => {
  const spotLater = (market: string, request: number): typeof never | undefined =>
    market === 'spot' && request < 3 ? undefined : never;
  const { machines, finished } = run(spotLater);
  expect(machines.map(({ market, askedAt, goneAt }) => [market, askedAt, goneAt])).toEqual([
    ['on-demand', 0, 70_000],
    ['spot', 30_000, Infinity],
  ]);
  expect(finished.map(({ startedAt }) => startedAt)).toEqual([60_000]);
});

test('tasks that no machine comes for are an error', () => {
  expect(() => run(() => undefined)).toThrow('waiting for ever');
});
