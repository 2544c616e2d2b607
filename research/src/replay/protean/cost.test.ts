import { expect, test } from '@jest/globals';
import type { RentedMachine } from '@gpuwhisk/gpu/simulate/simulated-provider';
import { clairvoyantCost, costOf, missingPart, rent, type Cloud } from './cost.js';

const cloud: Cloud = {
  ...{ seed: 1, revocation: 0, everyS: 300, noticeS: 120, bootS: 120 },
  ...{ prices: { spot: 1, 'on-demand': 3 }, machines: 4, lengthS: 7200 },
};
/** Four machines for two hours and their boot. */
const hours = (4 * (7200 + 120)) / 3600;

test('machines are paid from the request on', () => {
  expect(costOf(rent({ useSpot: 0 }, cloud), cloud)).toBeCloseTo(3 * hours);
  expect(costOf(rent({}, cloud), cloud)).toBeCloseTo(hours);
});

test('the bound is the spot price where nothing is revoked, and no rule costs less', () => {
  expect(4 * clairvoyantCost(cloud, 0)).toBeCloseTo(hours);
  const rare = { ...cloud, revocation: 0.354, lengthS: 43_200 };
  const slots = [0, 1, 2, 3].reduce((sum, slot) => sum + clairvoyantCost(rare, slot), 0);
  const rented = rent({}, rare);
  expect(rented.some(({ noticedAt }) => noticedAt < Infinity)).toBe(true);
  expect(slots).toBeLessThan(costOf(rented, rare));
});

test('a machine is missing from the end of one to the start of the next', () => {
  const machine = (changes: Partial<RentedMachine>): RentedMachine => ({
    ...{ id: 'm', market: 'spot', askedAt: -120_000, upAt: 0, noticedAt: Infinity, goneAt: Infinity },
    ...changes,
  });
  const rented = [machine({}), machine({ goneAt: 3_600_000, noticedAt: 3_480_000 }), machine({ upAt: 5_400_000 })];
  expect(missingPart(rented, { ...cloud, machines: 2 })).toBeCloseTo(1800 / 14_400);
});
