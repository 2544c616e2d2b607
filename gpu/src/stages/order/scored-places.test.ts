import { expect, test } from '@jest/globals';
import type { DeviceHealth } from '@gpuwhisk/common/gpu';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { makePolicy } from '../../policies/make-policy.js';
import type { ReportedPlace } from '../../simulate/node-rows.js';
import { dividedSms, fillingInTurn, gpuOf, taskOf } from '../../testing/fixtures.js';
import { ledgerWith, viewOf } from '../../testing/views.js';
import { requestOfTask } from '../../view/requests.js';

const leaving: DeviceHealth = { state: 'leaving', reasons: [], longestRunMs: 60_000 };

/** A GPU of a node of its own, with an idle instance of `/a/f` that holds `memoryMiB`; none for 0. */
function place(id: string, memoryMiB = 0): ReportedPlace {
  const idle = [{ function: '/a/f', namespace: 'a', share: 1, memoryMiB }];
  return { ...gpuOf(id), node: `node-${id}`, ...(memoryMiB > 0 && { idle }) };
}

/** Where a task of `/a/f` with 1000 MiB starts, and in which instance, where the places named `leaves...` leave. */
function startOf(places: readonly ReportedPlace[]): unknown {
  const open = ledgerWith(places);
  for (const row of open.ledger.rows()) {
    if (!row.invoker.startsWith('node-leaves')) continue;
    open.ledger.heard({ ...row, status: row.status.map((one) => ({ ...one, health: leaving })) }, 0);
  }
  const task = taskOf('t', { function: '/a/f', namespace: 'a', memoryMiB: 1000 });
  const waiting = [{ ...task, request: { ...requestOfTask(task), timeLimitMs: 1000 } }];
  const needs = { predictorOf: () => dividedSms, random: seededRandom(1), admission: 'best-effort' } as const;
  const { starts } = makePolicy(fillingInTurn, needs).decide(viewOf({ ledger: open, waiting }), { kind: 'timer' });
  return starts.map(({ gpu, choice }) => [gpu, choice?.reuses]);
}

test('a task whose instance on a leaving place is not for it starts on another place', () => {
  expect(startOf([place('leaves', 1000), place('stays')])).toEqual([['leaves', 'leaves 0']]);
  expect(startOf([place('leaves', 500), place('stays')])).toEqual([['stays', undefined]]);
});

test('a leaving place takes work into its idle instance, however many others refuse', () => {
  const others = Array.from({ length: 20 }, (_, at) => place(`leaves${String(at).padStart(2, '0')}`));
  expect(startOf([...others, place('leaves99', 1000)])).toEqual([['leaves99', 'leaves99 0']]);
});
