import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { FunctionForecasts } from '../../forecast/function-forecasts.js';
import { lsLstmDefaults, trainLsLstm } from '../../forecast/ls-lstm.js';
import { makePolicy } from '../../policies/make-policy.js';
import type { PolicyChoice } from '../../policies/make-policy.js';
import { dividedSms, taskOf } from '../../testing/fixtures.js';
import { replay } from '../../simulate/replay.js';
import type { ReplayJob, ReplayRun } from '../../simulate/replay.js';

const truth = {
  noise: 0,
  slowdowns: (clients: readonly unknown[]) => new Float64Array(clients.length).fill(1),
  used: () => 1,
};
const places = ['g0', 'g1'].map((id) => ({ id, node: 'n', type: 't', mode: 'mps' as const, memoryMiB: 10_000 }));

function jobs(arrivals: readonly number[], soloMs: number): ReplayJob[] {
  return arrivals.map((arrivedAt, at) => ({
    ...{ workload: 'f', soloMs, startMs: 2000 },
    task: taskOf(`t${at}`, { arrivedAt, soloMs, startMs: 2000, share: 0.1 }),
  }));
}

function run(policy: PolicyChoice, of: ReplayJob[], forecasts?: FunctionForecasts): ReplayRun {
  const random = seededRandom(1);
  const made = makePolicy(policy, { predictorOf: () => dividedSms, random, admission: 'best-effort' });
  return replay(of, { places, warmMs: 1, ...(forecasts && { forecasts }) }, truth, made, random);
}

const kinds = ({ actions }: ReplayRun): string[] => [...new Set(actions.map(({ action: { kind } }) => kind))].sort();
const meanMs = ({ finished }: ReplayRun): number =>
  finished.reduce((sum, { finishedAt, job }) => sum + finishedAt - job.task.arrivedAt, 0) / finished.length;

describe('reactive', () => {
  // The rate rises from one to twelve a second within two minutes.
  const rising: number[] = [];
  for (let at = 0; at < 120_000; at += 1000 / (1 + (11 * at) / 120_000)) rising.push(Math.round(at));
  const load = jobs(rising, 500);

  test('keeps as many instances as arrivals keep busy, so that fewer start cold', () => {
    const scaled = run({ base: 'least-loaded', scale: 'reactive' }, load);
    expect(scaled.finished).toHaveLength(load.length);
    expect(kinds(scaled)).toContain('launch');
    expect(scaled.actions.filter(({ refused }) => refused !== undefined)).toEqual([]);
    expect(meanMs(scaled)).toBeLessThan(meanMs(run('least-loaded', load)));
  });

  test('retires instances once they are not wanted', () => {
    const burst = jobs([...Array.from({ length: 50 }, (_, at) => at * 10), 200_000], 500);
    const { actions } = run({ base: 'least-loaded', scale: 'reactive', settings: { idleS: 20 } }, burst);
    const retired = actions.filter(({ action }) => action.kind === 'retire');
    expect(retired.length).toBeGreaterThan(0);
    for (const { at, refused } of retired) expect([at >= 20_000, refused]).toEqual([true, undefined]);
  });
});

test('keep-alive retires an instance after it has idled for as long as it may', () => {
  const { actions } = run(
    { base: 'least-loaded', scale: 'keep-alive', settings: { keepAliveS: 5 } },
    jobs([0, 20_000], 500),
  );
  const [first] = actions;
  expect([first?.action.kind, actions.length]).toEqual(['retire', 1]);
  // It ran from 0 to 2500 ms.
  expect(first?.at).toBeGreaterThanOrEqual(7500);
  expect(first?.at).toBeLessThan(9500);
});

test('smore launches an instance before each request of a period, and removes it in between', () => {
  // Each tenth minute, 30 s after it began.
  const period = 10;
  const requests = Array.from({ length: 300 }, (_, minute) => (minute % period === 0 ? 1 : 0));
  const training = { ...lsLstmDefaults, hidden: 8, updates: 150, lanes: 8, seed: 1, isLong: false };
  const forecasts = new FunctionForecasts(trainLsLstm([{ minute: 0, requests }], training));
  const arrivals = Array.from({ length: 20 }, (_, at) => at * period * 60_000 + 30_000);
  const policy = { base: 'least-loaded', scale: 'smore', settings: { quantile: 0.9 } };
  const { finished, actions } = run(policy, jobs(arrivals, 500), forecasts);
  const waits = finished.map(({ finishedAt, job }) => finishedAt - job.task.arrivedAt);
  // The first requests start cold: the model knows the period, not yet the function.
  expect(waits.slice(10).every((ms) => ms < 1000)).toBe(true);
  expect(waits[0]).toBeGreaterThan(2000);
  expect(actions.filter(({ action }) => action.kind === 'retire').length).toBeGreaterThan(10);
});

test('without a scale stage nothing is launched or retired', () => {
  expect(run('least-loaded', jobs([0, 100, 20_000], 500)).actions).toEqual([]);
});
