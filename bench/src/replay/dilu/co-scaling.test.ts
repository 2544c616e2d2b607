import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { diluScale, diluScaleDefaults } from '@gpuwhisk/gpu/scale/dilu';
import { reactive } from '@gpuwhisk/gpu/scale/reactive';
import { noScaling } from '@gpuwhisk/gpu/scale/scale';
import { latencySurface } from '../model/latency-surface.js';
import { serve, type Deployment, type Served } from './co-scaling.js';
import { gammaLoad, poissonLoad, sporadicRates, type Load } from './loads.js';
import { ratePerS, servedModel } from './served-models.js';

/** Latency 10 ms for one and 20 ms for two requests at half of the GPU or more, twice that at a quarter. */
const surface = latencySurface(
  [1, 2, 4].flatMap((batch) =>
    [0.25, 0.5, 1].map((share) => ({ batch, share, latencyMs: 10 * batch * (share < 0.5 ? 2 : 1) })),
  ),
);
const model = { ...servedModel('m', surface), batch: 1 };
const fixed = (share: number, scale: Deployment['scale']): Deployment => {
  const rate = ratePerS(surface, 1, share);
  return { share, reserved: share, served: { request: rate, limit: rate }, scale };
};
const evenly = (perS: number, lengthS: number): Load => ({
  arrivals: Float64Array.from({ length: perS * lengthS }, (_, at) => (at * 1000) / perS),
  lengthS,
});

test('the request of a function is the share of the most requests per share within half of its SLO', () => {
  // SLO 40 ms: half of it is one request at a quarter, or two at a half; both give 200 requests per second and share.
  const { sloMs, ...found } = servedModel('m', surface);
  expect(sloMs).toBeCloseTo(40);
  expect(found).toMatchObject({ batch: 1, request: 0.25, limit: 0.5 });
});

describe('serving a load', () => {
  test('counts what comes later than its SLO, and the time of devices and runs', () => {
    const light = serve(model, evenly(50, 10), fixed(0.5, noScaling), 5000);
    expect(light).toMatchObject({ requests: 500, violations: 0, coldStarts: 0, deviceS: 10, reservedS: 5 });
    expect(light.usedS).toBeCloseTo(500 * 0.01 * 0.5);
    // 100 a second are served; those that are late by then go after the others.
    const { violations } = serve(model, evenly(125, 10), fixed(0.5, noScaling), 5000);
    expect(violations).toBeGreaterThan(200);
    expect(violations).toBeLessThan(300);
  });

  test('launches and retires as the stage says: eagerly for each second, or lazily for load that lasts', () => {
    const step = {
      arrivals: Float64Array.from([...evenly(50, 60).arrivals, ...evenly(150, 60).arrivals.map((at) => at + 60_000)]),
      lengthS: 180,
    };
    const eager = serve(model, step, fixed(0.5, reactive({ windowS: 1, busy: 1, idleS: 0, least: 1 })), 2000);
    const lazy = serve(model, step, fixed(0.5, diluScale({ ...diluScaleDefaults, surgeSamples: 20 })), 2000);
    expect([eager.coldStarts, lazy.coldStarts]).toEqual([1, 1]);
    // Twenty seconds and the start, against two and the start.
    expect(lazy.violations / eager.violations).toBeGreaterThan(4);
    // The eager one is gone two seconds after the load, the lazy one after thirty.
    expect(lazy.deviceS).toBeGreaterThan(eager.deviceS);
    expect(eager.deviceS).toBeCloseTo(180 + 60, -1);
  });

  test('starts an instance for a request that finds none', () => {
    const scale: Deployment['scale'] = ({ instances = [] }) => ({
      launch: [],
      retire: instances.filter(({ state }) => state === 'idle').map(({ id }) => ({ instance: id, reason: 'idle' })),
    });
    const result = serve(model, { arrivals: Float64Array.of(10_000, 30_000), lengthS: 60 }, fixed(0.5, scale), 2000);
    expect(result).toMatchObject({ coldStarts: 2, violations: 2 });
  });

  test('is the same with the same seed', () => {
    const run = (): Served => {
      const random = seededRandom(3);
      return serve(
        model,
        poissonLoad(sporadicRates(random), 25, random),
        fixed(0.25, diluScale(diluScaleDefaults)),
        5000,
      );
    };
    expect(run()).toEqual(run());
  });
});

test('gamma arrivals have their mean and variation', () => {
  for (const cv of [1, 3]) {
    const { arrivals } = gammaLoad(50, cv, 2000, seededRandom(1));
    const gaps = Array.from(arrivals.subarray(1), (at, i) => at - (arrivals[i] as number));
    const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
    const deviation = Math.sqrt(gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length);
    expect(mean).toBeCloseTo(20, -0.5);
    expect(Math.abs(deviation / mean - cv)).toBeLessThan(0.1 * cv);
  }
});
