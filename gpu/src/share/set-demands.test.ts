import { expect, test } from '@jest/globals';
import { SetDemands, decodeWantedSet, encodeWantedSet } from './set-demands.js';
import type { WantedSet } from './set-demands.js';
import type { QuotaJob } from './quotas.js';

const job = (name: string, soloMs?: number): QuotaJob => ({
  ...{ function: name, version: '1', batch: 1, ...(soloMs !== undefined && { soloMs }) },
});

test('sets are counted in whatever order they are named, by kind of GPU; the one asked for most is first', () => {
  const demands = new SetDemands();
  const [a, b, c] = [job('a'), job('b'), job('c')];
  demands.asked([a, c], { gpuType: 'v100', mode: 'mps' }, [Infinity, Infinity]);
  demands.asked([a, b], { gpuType: 'v100', mode: 'mps' }, [Infinity, Infinity]);
  demands.asked([b, a], { gpuType: 'v100', mode: 'mps' }, [Infinity, Infinity]);
  demands.asked([a, b], { gpuType: 'h100', mode: 'mps' }, [Infinity, Infinity]);
  expect(demands.list().map(({ key, asked }) => [key, asked])).toEqual([
    ['v100/mps a@1#1 b@1#1', 2],
    ['v100/mps a@1#1 c@1#1', 1],
    ['h100/mps a@1#1 b@1#1', 1],
  ]);
  demands.restart('v100/mps a@1#1 b@1#1');
  demands.forget('h100/mps a@1#1 b@1#1');
  expect(demands.list().map(({ asked }) => asked)).toEqual([1, 0]);
});

test('tells what is to be stored: sets formed twice, their counts, and what was searched for', () => {
  const told = new Map<string, string>();
  const tell = (key: string, wanted: WantedSet | undefined): void => {
    if (wanted === undefined) told.delete(key);
    else told.set(key, encodeWantedSet(wanted));
  };
  const demands = new SetDemands(tell);
  const ask = (name: string): void =>
    demands.asked([job('a', 10), job(name)], { gpuType: 'v100', mode: 'mps' }, [20, Infinity]);
  ask('once');
  for (let count = 0; count < 3; count += 1) ask('often');
  for (let count = 0; count < 3; count += 1) ask('searched');
  demands.forget('v100/mps a@1#1 searched@1#1');
  const next = new SetDemands();
  // Asked for before it was read.
  next.asked([job('a', 10), job('often')], { gpuType: 'v100', mode: 'mps' }, [20, Infinity]);
  for (const text of told.values()) next.restore(decodeWantedSet(text));
  expect(next.list()).toEqual([
    {
      ...{ key: 'v100/mps a@1#1 often@1#1', gpuType: 'v100', mode: 'mps', asked: 3, maxSlowdowns: [2, Infinity] },
      set: [job('a', 10), job('often')],
    },
  ]);
});

test.each(['null', '{}', '{"key":"k","gpuType":"v100","mode":"mps","asked":-1,"set":[],"maxSlowdowns":[]}'])(
  'no wanted set: %s is refused',
  (text) => {
    expect(() => decodeWantedSet(text)).toThrow('this is no set that a search is wanted for');
  },
);

test('a budget bounds the slowdown where the time alone is known and it can be kept at all', () => {
  const demands = new SetDemands();
  demands.asked([job('a', 100), job('b', 100), job('c'), job('d', 10)], { gpuType: 'v100', mode: 'mps' }, [
    200,
    90,
    50,
    Infinity,
  ]);
  expect(demands.list()[0]?.maxSlowdowns).toEqual([2, Infinity, Infinity, Infinity]);
});

test('of very many sets the one goes that was not asked for for longest', () => {
  const demands = new SetDemands();
  const ask = (at: number): void =>
    demands.asked([job('a'), job(`f${at}`)], { gpuType: 'v100', mode: 'mps' }, [Infinity, Infinity]);
  for (let at = 0; at < 1000; at += 1) ask(at);
  ask(0);
  ask(1000);
  const keys = new Set(demands.list().map(({ key }) => key));
  expect([keys.size, keys.has('v100/mps a@1#1 f0@1#1'), keys.has('v100/mps a@1#1 f1@1#1')]).toEqual([
    1000,
    true,
    false,
  ]);
});
