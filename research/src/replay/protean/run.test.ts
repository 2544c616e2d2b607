import { expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { batchesOf, constantWindow, type Batch } from './arrivals.js';
import { compliance, quantiles, tailBreakdown } from './metrics.js';
import { schemes, serve, type Scheme } from './run.js';
import { completed, drawWorld, profiles, type ServedModel, type World } from './world.js';

function modelWith(changes: Partial<ServedModel> = {}): ServedModel {
  return {
    ...{ name: 'm', kind: 'vision', batch: 128, soloMs: 100, memoryMiB: 3000, isHigh: true },
    deficiency: [1, 1.5, 2, 3, 5],
    bandwidth: [0.8, 0.8, 0.8, 0.8, 0.8],
    ...changes,
  };
}

/** Full batches that can start at the given times, ms. */
function batchesAt(times: readonly number[], model = modelWith()): Batch[] {
  return times.map((at, id) => ({
    ...{ id, model, isStrict: true, firstMs: at, lastMs: at, readyMs: at, count: model.batch, soloMs: model.soloMs },
  }));
}

const worldOf = (model: ServedModel): World => ({ models: [model], clientCost: 0, noise: 0 });
const schemeOf = (name: string): Scheme => schemes[name] as Scheme;
const endsOf = (batches: readonly Batch[], name: string): number[] =>
  serve(worldOf((batches[0] as Batch).model), batches, schemeOf(name), { count: 1 }).served.map(({ endedMs }) =>
    Math.round(endedMs),
  );

test('batches beside each other take as long as their bandwidth lasts (equation 1)', () => {
  expect(endsOf(batchesAt([0]), 'infless')).toEqual([100]);
  // 1.6 times the bandwidth.
  expect(endsOf(batchesAt([0, 0]), 'infless')).toEqual([160, 160]);
  // The second one begins when half of the first is done.
  expect(endsOf(batchesAt([0, 50]), 'infless')).toEqual([130, 180]);
});

test('a slice costs its deficiency, and the breakdown adds up to the latency', () => {
  const { served } = serve(worldOf(modelWith()), batchesAt([0, 0]), schemeOf('naive'), { count: 1 });
  expect(served.map(({ endedMs }) => Math.round(endedMs))).toEqual([150, 200]);
  const { waiting, alone, deficiency, interference } = tailBreakdown(served) as NonNullable<
    ReturnType<typeof tailBreakdown>
  >;
  expect(waiting + alone + deficiency + interference).toBeCloseTo(2);
  expect(deficiency).toBeCloseTo(1);
});

test('of five batches in turn on one GPU three meet an SLO of three times their time', () => {
  const { served } = serve(worldOf(modelWith()), batchesAt([0, 0, 0, 0, 0]), schemeOf('molecule'), { count: 1 });
  // The paper's table 4 has 60.12 % for Molecule with strict requests only.
  expect(compliance(served, 3)).toBeCloseTo(0.6);
});

test('memory bounds the batches that run together', () => {
  const model = modelWith({ memoryMiB: 20_000, bandwidth: [0.1, 0.1, 0.1, 0.1, 0.1] });
  expect(endsOf(batchesAt([0, 0], model), 'infless')).toEqual([100, 200]);
});

test('protean begins with 4g, 2g and 1g, and puts strict batches first and on the largest slice', () => {
  const rest = { ...(batchesAt([0])[0] as Batch), isStrict: false };
  const strict = { ...rest, id: 1, isStrict: true };
  const { served } = serve(worldOf(modelWith()), [rest, strict], schemeOf('protean'), { count: 1 });
  expect(served.map(({ batch, endedMs }) => [batch.isStrict, Math.round(endedMs)])).toEqual([
    [true, 150],
    [false, 500],
  ]);
});

test('a batch whose machine is taken away begins again on the next one', () => {
  const [market, fromMs] = [{ wanted: 1, prices: {}, bootMs: 1000, closesMs: 0 }, -2000];
  const lives = [{ noticedMs: 1500, goneMs: 2060 }];
  const provider = {
    ...market,
    machine: (_: string, request: number) => lives[request - 1] ?? { noticedMs: Infinity, goneMs: Infinity },
  };
  const { served, machines } = serve(worldOf(modelWith()), batchesAt([0]), schemeOf('protean'), { provider, fromMs });
  expect(machines.map(({ upAt, goneAt }) => [upAt, goneAt])).toEqual([
    [-1000, 60],
    [500, Infinity],
  ]);
  // Late by then, it is best effort, which gets the smallest slice.
  expect(served.map(({ endedMs }) => Math.round(endedMs))).toEqual([1000]);
});

test('bursts and spread arrivals carry the rate, and no batch is more than full', () => {
  const model = modelWith();
  const rates = constantWindow.map(() => 2500);
  for (const pattern of ['bursts', 'spread'] as const) {
    const batches = batchesOf([{ isStrict: true, rates, modelAt: () => model }], pattern, 0.03, seededRandom(1));
    const requests = batches.reduce((sum, { count }) => sum + count, 0);
    expect(requests / 240).toBeGreaterThan(2450);
    expect(requests / 240).toBeLessThan(2550);
    expect(Math.max(...batches.map(({ count }) => count))).toBe(128);
    expect(batches.every(({ firstMs, lastMs, readyMs }) => firstMs <= lastMs && lastMs <= readyMs)).toBe(true);
  }
});

test('a slice that a measured job did not fit on is continued from the larger ones', () => {
  const row = completed(new Map(Object.entries({ '7g.40gb': 1, '4g.20gb': 1.5, '3g.20gb': 1.8, '2g.10gb': 2.7 })));
  // ln 1.5 / ln 1.5 = 1: half of the compute takes twice the time.
  expect(row[4]).toBeCloseTo(5.4);
  expect(completed(new Map(Object.entries({ '7g.40gb': 1, '4g.20gb': 1.05, '3g.20gb': 0.99 })))[2]).toBe(1.05);
});

test('a draw keeps to what the paper states of models', () => {
  const data = {
    deficiencies: [
      [1, 1.1, 1.2, 1.5, 2],
      [1, 1.7, 2, 3, 6],
    ],
    dramUse: new Map([
      ['resnet50', 64],
      ['googlenet', 56],
      ['mobilenet_v2', 69],
    ]),
    activations: new Map([['resnet50', 11e6]]),
  };
  const { models } = drawWorld(data, seededRandom(3));
  expect(models).toHaveLength(22);
  const named = (name: string): ServedModel => models.find((one) => one.name === name) as ServedModel;
  expect(named('ShuffleNet V2').bandwidth[0]).toBeLessThan(named('DPN 92').bandwidth[0] as number);
  expect(named('GoogleNet').bandwidth[0]).toBeLessThan(named('ResNet 50').bandwidth[0] as number);
  for (const { soloMs, memoryMiB, bandwidth } of models) {
    expect(soloMs).toBeGreaterThanOrEqual(50);
    expect(soloMs).toBeLessThanOrEqual(200);
    expect(memoryMiB).toBeLessThanOrEqual(14 * 1024);
    expect(bandwidth).toHaveLength(profiles.length);
    expect(Math.max(...bandwidth)).toBeLessThanOrEqual(1);
  }
});

test('percentiles count requests, not batches', () => {
  const values = [
    { value: 1, weight: 98 },
    { value: 9, weight: 2 },
  ];
  expect(quantiles(values, [50, 98, 99])).toEqual([1, 1, 9]);
});
