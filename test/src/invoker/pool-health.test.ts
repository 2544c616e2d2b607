// Health checks of containers that wait for an action.
import { expect, test } from '@jest/globals';
import { bareSpec } from '@gpuwhisk/invoker/containers/container-factory';
import type { GuestAnswer } from '@gpuwhisk/invoker/containers/simulated-factory';
import { kind, PoolHarness, startMs } from './pool-harness.js';

const stemCells = [{ spec: bareSpec(kind, 128), initialCount: 2 }];
const fine: GuestAnswer = { then: { do: 'result', value: {} } };

test.each<[string, GuestAnswer, number]>([
  ['says what is wrong', { then: { do: 'error', error: 'it is spoilt' } }, 0],
  ['does not answer within 2 s', { afterMs: 2100, then: { do: 'result', value: {} } }, 2000],
  ['ends', { then: { do: 'exit' } }, 0],
])('a stem cell that %s is replaced', async (_, answer, lateMs) => {
  const broken = new Set<string>();
  const check = (id: string): GuestAnswer => (broken.has(id) ? answer : fine);
  const harness = await PoolHarness.open({ stemCells }, { unloading: 'prewarmed' }, undefined, { check });
  await harness.clock.runUntil(harness.pool.prewarm());
  const [first, second] = harness.pool.prewarmed().map(({ id }) => id);
  await harness.clock.runFor(10_000 + lateMs);
  expect(harness.pool.prewarmed().map(({ id }) => id)).toEqual([first, second]);
  broken.add(String(first));
  await harness.clock.runFor(10_000 + lateMs + 100 + startMs);
  const after = harness.pool.prewarmed().map(({ id }) => id);
  expect(after).toHaveLength(2);
  expect(after).toContain(second);
  expect(after).not.toContain(first);
  expect(harness.pool.snapshot().claimedMiB).toBe(256);
});

test('so is a returned container, though nobody misses it', async () => {
  const check = (): GuestAnswer => ({ then: { do: 'error', error: 'it is spoilt' } });
  const harness = await PoolHarness.open({ idleContainerMs: 20_000 }, { unloading: 'all' }, undefined, { check });
  await harness.run('a');
  await harness.clock.runFor(21_500);
  expect(harness.pool.snapshot().prewarmed).toBe(1);
  await harness.clock.runFor(10_000);
  expect(harness.pool.snapshot()).toMatchObject({ prewarmed: 0, claimedMiB: 0 });
  expect(harness.factory.live).toHaveLength(0);
});

test('a container that is taken while it is checked serves the action', async () => {
  const check = (): GuestAnswer => ({ afterMs: 1000, then: { do: 'error', error: 'it is spoilt' } });
  const harness = await PoolHarness.open({ stemCells }, { unloading: 'prewarmed' }, undefined, { check });
  await harness.clock.runUntil(harness.pool.prewarm());
  await harness.clock.runFor(10_500 - startMs);
  const first = await harness.run('a');
  expect(first.start).toBe('injected');
  await harness.clock.runFor(2000);
  expect(await harness.run('a')).toMatchObject({ start: 'warm', container: first.container });
});

test('those that cannot unload, and those of actions, are left in peace', async () => {
  const checked: string[] = [];
  const check = (id: string): GuestAnswer => {
    checked.push(id);
    return fine;
  };
  const plain = await PoolHarness.open({ stemCells }, { unloading: 'none' }, undefined, { check });
  await plain.clock.runUntil(plain.pool.prewarm());
  await plain.clock.runFor(30_000);
  const warm = await PoolHarness.open({}, { unloading: 'all' }, undefined, { check });
  await warm.run('a');
  await warm.clock.runFor(30_000);
  expect(checked).toEqual([]);
});

test('a few are asked at once', async () => {
  let underWay = 0;
  let most = 0;
  let checked = 0;
  const harness: PoolHarness = await PoolHarness.open(
    { memoryMiB: 128 * 40, stemCells: [{ spec: bareSpec(kind, 128), initialCount: 30 }] },
    { unloading: 'prewarmed' },
    undefined,
    {
      check: () => {
        checked++;
        most = Math.max(most, ++underWay);
        harness.clock.setTimer(50, () => underWay--);
        return { afterMs: 50, then: { do: 'result', value: {} } };
      },
    },
  );
  await harness.clock.runUntil(harness.pool.prewarm());
  await harness.clock.runFor(10_900);
  expect(checked).toBe(30);
  expect(most).toBeGreaterThan(1);
  expect(most).toBeLessThanOrEqual(4);
});
