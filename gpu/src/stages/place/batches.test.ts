// The instance that a request of a batch goes to.
import { expect, test } from '@jest/globals';
import type { ReportedPlace } from '../../simulate/node-rows.js';
import { gpuOf, runningTask, taskOf } from '../../testing/fixtures.js';
import { ledgerWith } from '../../testing/views.js';
import { requestOfTask } from '../../view/requests.js';
import { joinBatch, placeLeastLoaded } from './least-loaded.js';

const own = taskOf('r', { share: 0.2, batch: 2 });
const request = { ...requestOfTask(own), batch: 2 };

const runs = (gpu: string, requests: number): ReportedPlace =>
  gpuOf(gpu, {
    running: Array.from({ length: requests }, (_, i) => ({
      ...runningTask({ ...own, id: `${gpu}${i}`, request }, 0.2),
      instance: `on ${gpu}`,
    })),
  });
const idles = (gpu: string): ReportedPlace =>
  gpuOf(gpu, { idle: [{ id: `on ${gpu}`, function: '/a/f', namespace: 'a', share: 0.2, memoryMiB: 1000 }] });
const loads = (gpu: string): ReportedPlace =>
  gpuOf(gpu, { running: [{ ...runningTask({ ...own, request }, 0.2), id: `on ${gpu}` }] });

/** What a request is placed in, and what it joins before its turn. */
function instancesFor(gpus: readonly ReportedPlace[]): unknown {
  const { ledger } = ledgerWith(gpus);
  const [limits, stamp] = [
    { kept: new Set<string>(), isOpen: () => true },
    { epoch: 1, at: 0 },
  ];
  return [placeLeastLoaded, joinBatch].map((choose) => choose(ledger, request, limits, stamp).reuses);
}

test('one that idles, which it joins in its turn only', () => {
  expect(instancesFor([runs('g0', 3), runs('g1', 2), idles('g2')])).toEqual(['on g2', undefined]);
});

test('else the one with the fewest requests, and one that is yet to load last', () => {
  expect(instancesFor([runs('g0', 3), runs('g1', 2), loads('g2')])).toEqual(['on g1', 'on g1']);
  expect(instancesFor([runs('g0', 4), loads('g2')])).toEqual(['on g2', 'on g2']);
});

test('none where each has two batches', () => {
  expect(instancesFor([runs('g0', 4)])).toEqual([undefined, undefined]);
});
