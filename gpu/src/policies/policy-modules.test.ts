import { expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { dividedSms, fillingInTurn, gpuOf, taskOf } from '../testing/fixtures.js';
import { viewOf } from '../testing/views.js';
import { makePolicy } from './make-policy.js';
import type { PolicyChoice } from './make-policy.js';
import { registerModules } from './policy-modules.js';

const text = `
const record = { summary: 's', admit: 'always', order: 'fifo', share: 'whole' };
const last = (ids) => (_, { account: { id } }) => -ids.indexOf(id);
export default {
  version: 1,
  stages: {
    place: {
      last: { make: () => ({ ledger }) => last(ledger.ledger.accounts().map(({ id }) => id)) },
      nowhere: { make: () => ({ begin: () => () => ({ rejected: [] }) }) },
    },
  },
  policies: { 'to-last': { ...record, place: 'last' }, 'to-none': { ...record, place: 'nowhere' } },
};`;

test('a place stage of a module scores places, or searches the ledger by itself', async () => {
  await registerModules([{ path: '/opt/last.mjs', sha256: 'last', text }], (address) => import(address));
  const startsOf = (policy: PolicyChoice): string[] => {
    const needs = { predictorOf: () => dividedSms, random: seededRandom(1), admission: 'best-effort' } as const;
    const view = viewOf({ gpus: [gpuOf('g0'), gpuOf('g1'), gpuOf('g2')], waiting: [taskOf('t')] });
    return makePolicy(policy, needs)
      .decide(view, { kind: 'timer' })
      .starts.map(({ gpu }) => gpu);
  };
  expect([startsOf(fillingInTurn), startsOf('to-last'), startsOf('to-none')]).toEqual([['g0'], ['g2'], []]);
});
