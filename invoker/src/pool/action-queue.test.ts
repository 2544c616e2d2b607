import { describe, expect, test } from '@jest/globals';
import { BacklogProbe } from './action-queue.js';

/** The number of containers that the probe settles on, if `n` of them end `perMs(n)` runs of `runMs` per millisecond. */
function containersFound(perMs: (containers: number) => number, runMs: number): number {
  const probe = new BacklogProbe();
  let containers = 1;
  let ended = 0;
  for (let nowMs = 0; nowMs < 60_000; nowMs += 10) {
    ended += perMs(containers) * 10;
    const advice = probe.advise(nowMs, { ended, busyMs: ended * runMs, containers, slots: containers });
    if (advice === 'add') containers++;
    if (advice === 'drop') containers--;
  }
  return containers;
}

describe('BacklogProbe', () => {
  test('adds as long as it pays, and takes back what does not', () => {
    expect(containersFound((n) => Math.min(n, 5), 1)).toBeLessThanOrEqual(6);
    expect(containersFound((n) => Math.min(n, 5), 1)).toBeGreaterThanOrEqual(5);
    expect(containersFound(() => 1, 1)).toBeLessThanOrEqual(2);
  });

  test('where containers mostly wait for the platform, a batch of them is enough', () => {
    expect(containersFound((n) => n * n, 0.001)).toBe(16);
    expect(containersFound(() => 1, 0.001)).toBeGreaterThanOrEqual(8);
    expect(containersFound(() => 1, 0.001)).toBeLessThanOrEqual(9);
    expect(containersFound((n) => Math.min(n, 20), 1)).toBeGreaterThanOrEqual(20);
  });

  test('starts over when the queue was empty', () => {
    const probe = new BacklogProbe();
    const progress = { busyMs: 0, containers: 1, slots: 1 };
    probe.advise(0, { ...progress, ended: 0 });
    probe.reset();
    expect(probe.advise(1000, { ...progress, ended: 1000 })).toBe('keep');
    expect(probe.advise(1250, { ...progress, ended: 2000 })).toBe('add');
  });
});
