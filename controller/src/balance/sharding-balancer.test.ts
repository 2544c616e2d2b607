import { describe, expect, test } from '@jest/globals';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { javaHash, probes, shareOf, stepSizes, ShardingBalancer } from './sharding-balancer.js';
import type { BalancedInvoker } from './sharding-balancer.js';

test('hashes are those of Java', () => {
  expect(javaHash('')).toBe(0);
  expect(javaHash('guest')).toBe(98708952);
  expect(javaHash('polygenelubricants')).toBe(-2147483648);
});

test('steps have no divisor in common with the count or each other', () => {
  expect(stepSizes(1)).toEqual([1]);
  expect(stepSizes(9)).toEqual([1, 2, 5, 7]);
  expect(stepSizes(10)).toEqual([1, 3, 7]);
  // The second call returns the cached array.
  expect(stepSizes(9999)).toBe(stepSizes(9999));
});

test('probes lead past every invoker', () => {
  for (const count of [1, 2, 3, 7, 10, 24]) {
    for (let hash = 0; hash < 50; hash++) {
      const asked = [...probes(hash, count)];
      expect(asked[0]).toBe(hash % count);
      expect(new Set(asked).size).toBe(count);
    }
  }
});

test('managed runtimes have those in front, images those behind', () => {
  const invokers = Array.from({ length: 10 }, (_, at) => at);
  expect(shareOf(invokers, false)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
  expect(shareOf(invokers, true)).toEqual([9]);
  expect(shareOf([0], false)).toEqual([0]);
  expect(shareOf([0], true)).toEqual([0]);
});

describe('the balancer', () => {
  const action = (name: string, memory: number, concurrency = 1): WhiskAction => ({
    namespace: 'guest',
    name,
    exec: { kind: 'nodejs:20', code: '', binary: false },
    parameters: [],
    limits: { timeout: 60_000, memory, logs: 10, concurrency },
    version: '0.0.1',
    publish: false,
    annotations: [],
    updated: 0,
    revision: '1-a',
  });
  const invokers = (count: number, memoryMiB = 1024): BalancedInvoker[] =>
    Array.from({ length: count }, (_, instance) => ({ instance, memoryMiB, isUsable: true }));
  const balancerOf = (all: readonly BalancedInvoker[], controllers = 1): ShardingBalancer =>
    new ShardingBalancer({
      clock: systemClock,
      random: seededRandom(1),
      invokers: () => all,
      controllers: () => controllers,
    });

  test('keeps an action at its home until that is full, and comes back when there is room', () => {
    const balancer = balancerOf(invokers(4));
    const hello = action('hello', 512);
    const home = balancer.choose(hello, 'guest', 'a');
    expect(balancer.choose(hello, 'guest', 'b')).toBe(home);
    expect(balancer.choose(hello, 'guest', 'c')).not.toBe(home);
    balancer.ended('a');
    balancer.ended('a');
    expect(balancer.choose(hello, 'guest', 'd')).toBe(home);
    expect(balancer.size).toBe(3);
  });

  test('gives out a share of the memory where there are other controllers', () => {
    const balancer = balancerOf(invokers(4), 2);
    const hello = action('hello', 512);
    expect(balancer.choose(hello, 'guest', 'a')).not.toBe(balancer.choose(hello, 'guest', 'b'));
  });

  test('has activations that share a container share its memory', () => {
    const balancer = balancerOf(invokers(4, 256));
    const shared = action('shared', 256, 3);
    const chosen = ['a', 'b', 'c', 'd'].map((id) => balancer.choose(shared, 'guest', id));
    expect(new Set(chosen.slice(0, 3)).size).toBe(1);
    expect(chosen[3]).not.toBe(chosen[0]);
    for (const id of ['a', 'b', 'c']) balancer.ended(id);
    expect(balancer.choose(shared, 'guest', 'f')).toBe(chosen[0]);
  });

  test('passes over invokers that cannot be used, overloads when all are full, and has none where none can', () => {
    const all = invokers(4, 256);
    for (const invoker of all.slice(1)) invoker.isUsable = false;
    const balancer = balancerOf(all);
    const hello = action('hello', 256);
    expect(['a', 'b', 'c'].map((id) => balancer.choose(hello, 'guest', id))).toEqual([0, 0, 0]);
    expect(balancerOf([]).choose(hello, 'guest', 'a')).toBeUndefined();
    expect(balancerOf(all.slice(1)).choose(hello, 'guest', 'a')).toBeUndefined();
  });
});
