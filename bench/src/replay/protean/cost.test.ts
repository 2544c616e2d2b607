import { expect, test } from '@jest/globals';
import { proteanProcurement, proteanProcurementDefaults } from '@gpuwhisk/gpu/procure/protean';
import { clairvoyantCost, costOf, missingPart, rent, type Cloud, type Rented } from './cost.js';
import { comings, deviceSlots } from './rented-devices.js';

const cloud: Cloud = {
  ...{ seed: 1, revocation: 0, everyS: 300, noticeS: 120, bootS: 120 },
  ...{ prices: { spot: 1, 'on-demand': 3 }, machines: 4, lengthS: 7200 },
};
const spot = proteanProcurement(proteanProcurementDefaults);
const onDemandOnly = proteanProcurement({ ...proteanProcurementDefaults, useSpot: 0 });
/** Four machines for two hours and their boot. */
const hours = (4 * (7200 + 120)) / 3600;

test('machines are paid from the request on', () => {
  expect(costOf(rent(onDemandOnly, cloud), cloud)).toBeCloseTo(3 * hours);
  expect(costOf(rent(spot, cloud), cloud)).toBeCloseTo(hours);
});

test('the bound is the spot price where nothing is revoked, and no rule costs less', () => {
  expect(4 * clairvoyantCost(cloud, 0)).toBeCloseTo(hours);
  const rare = { ...cloud, revocation: 0.354, lengthS: 43_200 };
  const slots = [0, 1, 2, 3].reduce((sum, slot) => sum + clairvoyantCost(rare, slot), 0);
  const rented = rent(spot, rare);
  expect(rented.some(({ noticedS }) => noticedS < Infinity)).toBe(true);
  expect(slots).toBeLessThan(costOf(rented, rare));
});

const machine = (changes: Partial<Rented>): Rented => ({
  ...{ name: 'm', market: 'spot', fromS: -120, upS: 0, noticedS: Infinity, untilS: 7200 },
  ...changes,
});

test('a machine is missing from the end of one to the start of the next', () => {
  const rented = [machine({}), machine({ untilS: 3600, noticedS: 3480 }), machine({ upS: 5400 })];
  expect(missingPart(rented, { ...cloud, machines: 2 })).toBeCloseTo(1800 / 14_400);
});

test('a machine takes the device of one that has left', () => {
  const rented = [machine({}), machine({ untilS: 3600, noticedS: 3480 }), machine({ upS: 5400 })];
  expect(deviceSlots(rented, 2)).toBe(2);
  expect(comings(rented, 2, 0).map(({ atMs }) => atMs / 1000)).toEqual([0, 3585, 3600, 5400, 7200, 7200]);
});
