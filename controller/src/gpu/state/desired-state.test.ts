import { expect, test } from '@jest/globals';
import { gpuDesiredTable } from '@gpuwhisk/common/gpu';
import type { Resident } from '@gpuwhisk/common/gpu';
import { createLogger } from '@gpuwhisk/common/logging';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { DesiredState } from './desired-state.js';

const logger = createLogger({ level: 'silent' });
const on = (...containers: string[]): { invoker: string; residents: Resident[] } => ({
  invoker: 'invoker0',
  residents: containers.map((container) => ({ container, activations: [] as string[] }) as unknown as Resident),
});
const deciderOf = (state: ClusterState, lease: { epoch: number | undefined }): DesiredState =>
  new DesiredState({ state, lease, logger });
const rowIn = async (state: ClusterState): Promise<unknown> => (await state.rows(gpuDesiredTable)).get('invoker0');
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('commands at the same time are all kept, until their containers are gone; a geometry stays', async () => {
  const state = embeddedState(systemClock);
  const desired = deciderOf(state, { epoch: 1 });
  const share = { smRequest: 0.1, smLimit: 0.2 };
  await Promise.all([
    desired.retire('invoker0', 'a'),
    desired.retire('invoker0', 'b', 500),
    desired.reshare('invoker0', 'c', share),
    desired.cut('invoker0', 'GPU-0', ['3g.20gb']),
  ]);
  const geometry = { 'GPU-0': ['3g.20gb'] };
  const all = { epoch: 1, retire: { a: null, b: 500 }, shares: { c: share }, geometry };
  expect(await rowIn(state)).toEqual(all);
  desired.observe(on('a', 'b', 'c'));
  await settled();
  expect(await rowIn(state)).toEqual(all);
  desired.observe(on('b'));
  await settled();
  expect(await rowIn(state)).toEqual({ epoch: 1, retire: { b: 500 }, shares: {}, geometry });
});

test('a share that holds while an instance is busy goes once it is not', async () => {
  const state = embeddedState(systemClock);
  const desired = deciderOf(state, { epoch: 1 });
  const lasting = { smRequest: 0.1, smLimit: 0.2 };
  await desired.reshare('invoker0', 'a', { ...lasting, whileBusy: true });
  await desired.reshare('invoker0', 'b', lasting);
  const [one, other] = on('a', 'b').residents as [Resident, Resident];
  desired.observe({ invoker: 'invoker0', residents: [{ ...one, activations: ['run'] }, other] });
  await settled();
  expect(await rowIn(state)).toMatchObject({ shares: { a: lasting, b: lasting } });
  desired.observe({ invoker: 'invoker0', residents: [one, other] });
  await settled();
  expect(await rowIn(state)).toMatchObject({ shares: { b: lasting } });
  expect(await rowIn(state)).not.toHaveProperty('shares.a');
});

test('the next controller that decides writes the rows again with its epoch, the one before writes none', async () => {
  const state = embeddedState(systemClock);
  const before = { epoch: 1 as number | undefined };
  const first = deciderOf(state, before);
  await first.cut('invoker0', 'GPU-0', ['3g.20gb']);
  before.epoch = undefined;
  const second = deciderOf(state, { epoch: 2 });
  second.observe(on());
  await settled();
  const row = { epoch: 2, retire: {}, shares: {}, geometry: { 'GPU-0': ['3g.20gb'] } };
  expect(await rowIn(state)).toEqual(row);
  await expect(first.retire('invoker0', 'a')).rejects.toThrow('another controller decides');
  first.observe(on());
  await settled();
  expect(await rowIn(state)).toEqual(row);
});
