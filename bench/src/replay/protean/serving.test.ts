import { expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { batchesOf, constantWindow, type Batch } from './arrivals.js';
import { compliance, quantiles, tailBreakdown } from './metrics.js';
import { oracle, trueSlowdowns } from './oracle.js';
import { baselines, figure2Schemes } from './schemes.js';
import { serve, type Scheme } from './serving.js';
import { completed, drawWorld, profiles, type ServedModel, type World } from './world.js';

const world = { clientCost: 0 };

function modelWith(changes: Partial<ServedModel> = {}): ServedModel {
  return {
    ...{ name: 'm', kind: 'vision', batch: 128, soloMs: 100, memoryMiB: 3000, isHigh: true },
    deficiency: [1, 1.5, 2, 3, 5],
    bandwidth: [0.8, 0.8, 0.8, 0.8, 0.8],
    ...changes,
  };
}

/** Full batches that can start at the given times, ms. */
function batchesAt(times: readonly number[], changes: Partial<Batch> = {}): Batch[] {
  const model = changes.model ?? modelWith();
  return times.map((at, id) => ({
    ...{ id, model, isStrict: true, firstMs: at, lastMs: at, readyMs: at, count: model.batch, soloMs: model.soloMs },
    ...changes,
  }));
}

const schemeOf = (name: string): Scheme => (baselines[name] as () => Scheme)();
const endsOf = (batches: readonly Batch[], scheme: Scheme, count = 1): number[] =>
  serve(world, batches, scheme, count).served.map(({ endedMs }) => Math.round(endedMs));

test('batches beside each other take as long as their bandwidth lasts (equation 1)', () => {
  expect(endsOf(batchesAt([0]), schemeOf('infless'))).toEqual([100]);
  // 1.6 times the bandwidth.
  expect(endsOf(batchesAt([0, 0]), schemeOf('infless'))).toEqual([160, 160]);
  // The second one begins when half of the first is done.
  expect(endsOf(batchesAt([0, 50]), schemeOf('infless'))).toEqual([130, 180]);
});

test('a slice costs its deficiency, and the breakdown adds up to the latency', () => {
  const { served } = serve(world, batchesAt([0, 0]), figure2Schemes['both']?.() as Scheme, 1);
  expect(served.map(({ profile, endedMs }) => [profile, Math.round(endedMs)])).toEqual([
    ['4g.20gb', 150],
    ['3g.20gb', 200],
  ]);
  const { waiting, alone, deficiency, interference } = tailBreakdown(served) as NonNullable<
    ReturnType<typeof tailBreakdown>
  >;
  expect(waiting + alone + deficiency + interference).toBeCloseTo(2);
  expect(deficiency).toBeCloseTo(1);
});

test('of five batches in turn on one GPU three meet an SLO of three times their time', () => {
  const { served } = serve(world, batchesAt([0, 0, 0, 0, 0]), schemeOf('molecule'), 1);
  // The paper's table 4 has 60.12 % for Molecule with strict requests only.
  expect(compliance(served, 3)).toBeCloseTo(0.6);
});

test('memory bounds the batches that run together', () => {
  const model = modelWith({ memoryMiB: 20_000, bandwidth: [0.1, 0.1, 0.1, 0.1, 0.1] });
  expect(endsOf(batchesAt([0, 0], { model }), schemeOf('infless'))).toEqual([100, 200]);
});

test('a cut waits for the runs on the device, and lasts two seconds', () => {
  const scheme = trueSlowdowns(['4g.20gb', '3g.20gb'], 'packed');
  let ticks = 0;
  const cuts: Scheme = {
    ...scheme,
    tickMs: 100,
    tick(cluster) {
      ticks += 1;
      const [device] = cluster.devices;
      if (ticks === 1 && device !== undefined) cluster.cut(device, ['7g.40gb']);
    },
  };
  // The first batch has 150 ms on 4g; the second waits for the new slice.
  expect(endsOf(batchesAt([0, 110]), cuts)).toEqual([150, 2250]);
});

test('a batch whose machine leaves begins again elsewhere', () => {
  const batches = batchesAt([0]);
  const { served, totals } = serve(world, batches, trueSlowdowns(['7g.40gb'], 'packed'), 2, [
    {
      atMs: 60,
      act: (cluster) => cluster.devices.filter(({ running }) => running > 0).forEach((one) => cluster.lose(one)),
    },
  ]);
  expect(served.map(({ endedMs }) => Math.round(endedMs))).toEqual([160]);
  expect(totals.stopped).toBe(1);
});

test('a scheme that starts nothing fails', () => {
  const idle: Scheme = { geometry: ['7g.40gb'], arrived: () => undefined, dispatch: () => undefined };
  expect(() => serve(world, batchesAt([0]), idle)).toThrow('1 batches wait for ever');
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

test('an oracle is no worse than the schemes that it may imitate', () => {
  const drawn: World = { models: [modelWith()], clientCost: 0.02, noise: 0 };
  const batches = batchesAt(Array.from({ length: 40 }, (_, at) => Math.floor(at / 10) * 1000));
  const found = compliance(oracle(drawn, batches, 3, 2), 3);
  expect(found).toBeGreaterThanOrEqual(compliance(serve(drawn, batches, schemeOf('infless'), 2).served, 3));
  expect(found).toBeGreaterThanOrEqual(compliance(serve(drawn, batches, schemeOf('naive'), 2).served, 3));
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
