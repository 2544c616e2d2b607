import { expect, test } from '@jest/globals';
import { PairDrifts, type ObservedTerm } from './degradation-drift.js';

const group = { gpuType: 'a100-40', mode: 'mps', victim: 'workload', neighbour: 'function' } as const;
const term = (neighbour: string, contribution = 0.1): ObservedTerm => ({
  group,
  victim: 'bert',
  neighbour,
  contribution,
});
const repeat = (count: number, act: () => void): void => {
  for (let i = 0; i < count; i += 1) act();
};

test('ten of twenty observations above the prediction make a pair drift; twenty good ones clear it', () => {
  const drifts = new PairDrifts(100);
  repeat(10, () => drifts.observe([term('vgg')], 0.5, 0.54));
  repeat(9, () => drifts.observe([term('vgg')], 0.5, 0.8));
  expect(drifts.list()).toEqual([]);
  drifts.observe([term('vgg')], 0.5, 0.8);
  expect(drifts.list()).toEqual([
    {
      gpuType: 'a100-40',
      mode: 'mps',
      victimKind: 'workload',
      neighbourKind: 'function',
      victim: 'bert',
      neighbour: 'vgg',
      direction: 'worse',
      departed: 10,
      observed: 20,
      meanExcess: expect.closeTo(0.17) as unknown,
      meanPredicted: expect.closeTo(0.5) as unknown,
      meanMeasured: expect.closeTo(0.67) as unknown,
    },
  ]);
  repeat(19, () => drifts.observe([term('vgg')], 0.5, 0.5));
  expect(drifts.list()).toHaveLength(1);
  drifts.observe([term('vgg')], 0.5, 0.45);
  expect(drifts.list()).toEqual([]);
});

test('predictions that are too high are told apart', () => {
  const drifts = new PairDrifts(100);
  repeat(10, () => drifts.observe([term('vgg')], 0.5, 0.3));
  expect(drifts.list()).toMatchObject([{ direction: 'better', departed: 10 }]);
});

test('of several neighbours those with the larger predicted part are charged', () => {
  const drifts = new PairDrifts(100);
  repeat(10, () => drifts.observe([term('vgg', 0.3), term('gpt', 0.01)], 0.5, 1));
  expect(drifts.list().map(({ neighbour }) => neighbour)).toEqual(['vgg']);
  const equal = new PairDrifts(100);
  repeat(10, () => equal.observe([term('vgg', 0), term('gpt', 0)], 0.5, 1));
  expect(equal.list()).toHaveLength(2);
});

test('the pairs least recently observed are forgotten', () => {
  const drifts = new PairDrifts(3);
  for (const name of ['a', 'b', 'c', 'a', 'd']) drifts.observe([term(name)], 0.5, 0.5);
  expect(drifts.state().windows.map(({ models }) => models[1])).toEqual(['c', 'a', 'd']);
});

test('stored windows come back as they were; those of another version are refused', () => {
  const drifts = new PairDrifts(100);
  repeat(12, () => drifts.observe([term('vgg'), term('gpt')], 0.5, 0.7));
  const state = JSON.parse(JSON.stringify(drifts.state())) as ReturnType<typeof drifts.state>;
  expect(new PairDrifts(100, state).list()).toEqual(drifts.list());
  expect(new PairDrifts(100, state).state()).toEqual(drifts.state());
  expect(() => new PairDrifts(100, { ...state, version: 0 as 1 })).toThrow('Drifts of version 0 cannot be read');
});
