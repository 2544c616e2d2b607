import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { boundsOf, type FleetShape, type PackingRule } from './fleet.js';
import { drawnInstances, type PackedInstance, type PackingEvent } from './instances.js';
import { ledgerPacker } from './ledger-packer.js';
import { change, noLoad, relaxationBound, wholeBound } from './lower-bound.js';
import { pack, packerOf, repacked } from './packing.js';
import { diluLiteral, exclusive, infless, ours } from './rules.js';

const shape: FleetShape = { nodes: 60, perNode: 4, memoryMiB: 40 * 1024 };
const bounds = { omega: 1, gamma: 1.5 };
const within = boundsOf(bounds);
const whole = { complementarity: true, affinity: true, spans: 4 };
const gib = 1024;

function instance(id: string, changes: Partial<PackedInstance>): PackedInstance {
  const usual = { kind: 'inference', gpus: 1, request: 300, limit: 500, memoryMiB: 5 * gib } as const;
  return { id, function: id, ...usual, ...changes };
}

const started = (...instances: PackedInstance[]): PackingEvent[] =>
  instances.map((one, atS) => ({ atS, isStart: true, instance: one }));

describe("the platform's rule", () => {
  test.each([
    [1, false],
    [2, true],
    [3, true],
  ])('in the ledger is that of an exhaustive search (seed %i)', (seed, recurs) => {
    const events = drawnInstances(150, seededRandom(seed), recurs);
    const ledger = ledgerPacker(shape, bounds);
    const search = packerOf(shape, ours(within, whole));
    const used = (packer: typeof search): number[] =>
      events.map((event) => {
        if (event.isStart) packer.start(event);
        else packer.end(event);
        return packer.used();
      });
    const expected = used(search);
    expect(used(ledger)).toEqual(expected);
    expect(Math.max(...expected)).toBeGreaterThan(20);
    const ended = new Set(events.filter(({ isStart }) => !isStart).map(({ instance: { id } }) => id));
    const training = events.find(({ instance: { id, kind } }) => kind === 'training' && !ended.has(id))!;
    expect(ledger.lagOf(training)).toBeCloseTo(search.lagOf(training), 9);
  });
});

describe('each rule', () => {
  const rules: [string, PackingRule, typeof bounds][] = [
    ['ours', ours(within, whole), bounds],
    ['literal', diluLiteral(within), bounds],
    ['INFless-l', infless('limit'), { omega: 1, gamma: Infinity }],
    ['INFless-r', infless('request'), { omega: 1, gamma: Infinity }],
    ['exclusive', exclusive, bounds],
  ];
  test.each(rules)('uses no fewer devices than the lower bound: %s', (_, rule, its) => {
    const events = drawnInstances(150, seededRandom(4), false);
    const packed = pack(events, packerOf(shape, rule), shape, its);
    expect(packed.gpus).toBeGreaterThanOrEqual(packed.bound);
    expect(packed.mostGpus).toBeGreaterThanOrEqual(packed.gpus);
    for (const part of [packed.smFragments, packed.memoryFragments]) {
      expect(part > 0 && part < 1).toBe(true);
    }
  });

  const llm = instance('llm', { kind: 'llm', request: 400, limit: 600, memoryMiB: 20 * gib });
  // Three devices of a node in use, with 10, 15 and 12 GiB left.
  const held = [30, 25, 28].map((used, at) => instance(`h${at}`, { request: 500, limit: 700, memoryMiB: used * gib }));
  test.each<[string, PackingRule, number]>([
    ['ours spans fragments', ours(within, whole), 3],
    ['without complementarity it opens a device', ours(within, { ...whole, complementarity: false }), 4],
    ['literal spreads', diluLiteral(within), 3],
    ['INFless opens a device', infless('request'), 4],
    ['exclusive opens a device', exclusive, 4],
  ])('puts a large model: %s', (_, rule, expected) => {
    const packer = packerOf(shape, rule);
    for (const event of started(...held, llm)) packer.start(event);
    expect(packer.used()).toBe(expected);
    packer.end({ atS: 9, isStart: false, instance: llm });
    expect(packer.used()).toBe(3);
  });
});

test('instances are repacked as they are there', () => {
  const events = drawnInstances(150, seededRandom(5), false);
  const rule = ours(within, whole);
  const { usedAt, bound } = pack(events, packerOf(shape, rule), shape, bounds);
  const again = repacked(events, shape, rule);
  const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0);
  expect([usedAt.length, again.length]).toEqual([100, 100]);
  expect(sum(again)).toBeLessThanOrEqual(sum(usedAt));
  expect(sum(again) / 100).toBeGreaterThan(0.9 * bound);
});

test('the lower bound is the greatest of four sums, in whole devices', () => {
  const load = noLoad();
  const boundNow = (): number => relaxationBound(load, within, shape.memoryMiB);
  expect(boundNow()).toBe(0);
  const small = Array.from({ length: 10 }, (_, at) => instance(`i${at}`, {}));
  const add = (one: PackedInstance, by: 1 | -1 = 1): void => change(load, one, by, shape.memoryMiB);
  for (const one of small) add(one);
  // 3 by requests, 5000 / 1500 by limits, 50 / 40 by memory.
  expect(boundNow()).toBe(4);
  const large = instance('t', { gpus: 4, request: 10, limit: 10, memoryMiB: 40 * gib });
  add(large);
  // 210 GiB of memory.
  expect(boundNow()).toBe(6);
  for (const one of small) add(one, -1);
  add(large, -1);
  add(instance('g', { gpus: 4, request: 10, limit: 10, memoryMiB: gib }));
  expect(boundNow()).toBe(4);
  for (let at = 0; at < 6; at += 1) add(instance(`l${at}`, { kind: 'training', memoryMiB: 21 * gib, request: 10 }));
  expect([boundNow(), wholeBound(load, within, shape.memoryMiB)]).toEqual([4, 6]);
});
