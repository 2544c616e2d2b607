import { beforeEach, expect, test } from '@jest/globals';
import { activationDocument } from '@gpuwhisk/common/entities/activation';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { createLogger } from '@gpuwhisk/common/logging';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import type { SimulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { BlockingWaits } from '@gpuwhisk/controller/dispatch/blocking-waits';
import { SimulatedClock } from '../simulation/simulated-clock.js';

const activation: WhiskActivation = {
  ...{ namespace: 'ns', name: 'act', version: '0.0.1', subject: 'caller', activationId: 'id', start: 1, end: 2 },
  response: { statusCode: 0, result: { ok: true } },
  ...{ logs: ['a line'], publish: false, annotations: [] },
};
const completed = { type: 'completed', activation: { ...activation, logs: [] } };
const accepted = { type: 'accepted', activationId: 'id' };

let clock: SimulatedClock;
let store: SimulatedStore;
let waits: BlockingWaits;
/** Reads of the record so far. `failure`, if set, is the error of all further reads. */
let looks: number;
let failure: Error | undefined;

beforeEach(() => {
  clock = new SimulatedClock();
  store = simulatedStore({ clock, random: seededRandom(1) });
  looks = 0;
  failure = undefined;
  waits = new BlockingWaits({
    clock,
    logger: createLogger({ level: 'silent' }),
    store: {
      get: (...args) => {
        looks++;
        return failure === undefined ? store.get(...args) : Promise.reject(failure);
      },
    },
  });
});

const record = (): Promise<unknown> =>
  clock.runUntil(store.createMany('activations', [activationDocument(activation, 3)]));

test('a result that comes is the answer, and no record is looked for', async () => {
  const waited = waits.wait('ns', 'id', 60_000);
  waits.ended('id');
  waits.settle(activation);
  expect(await waited).toEqual({ type: 'completed', activation });
  await clock.runFor(60_000);
  expect([looks, waits.size]).toEqual([0, 0]);
});

test('where no message tells the result its record does, while the caller waits', async () => {
  const waited = waits.wait('ns', 'id', 60_000);
  await record();
  expect(await clock.runUntil(waited)).toEqual(completed);
  expect(clock.monotonicMs()).toBeLessThan(60_000);
});

test('what has ended without telling its result is looked for soon', async () => {
  const waited = waits.wait('ns', 'id', 10_000);
  waits.ended('id');
  await record();
  expect(await clock.runUntil(waited)).toEqual(completed);
});

test('a store that fails is asked again', async () => {
  const waited = waits.wait('ns', 'id', 60_000);
  await record();
  failure = new Error('away');
  await clock.runFor(20_000);
  expect([looks, waits.size]).toEqual([1, 1]);
  failure = undefined;
  expect(await clock.runUntil(waited)).toEqual(completed);
});

test('without a record the caller has the id in the end, and nothing is looked for any more', async () => {
  const waited = waits.wait('ns', 'id', 40_000);
  expect(await clock.runUntil(waited)).toEqual(accepted);
  const before = looks;
  await clock.runFor(60_000);
  expect([looks, waits.size]).toEqual([before, 0]);
});
