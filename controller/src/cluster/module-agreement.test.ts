import { expect, test } from '@jest/globals';
import { createLogger } from '@gpuwhisk/common/logging';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { systemClock } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { LeaseKeeper } from './lease.js';
import { ModuleAgreement } from './module-agreement.js';

/** Time stands still, and attempts to get the lease are made by the test. */
const clock: Clock = { ...systemClock, monotonicMs: () => 0, setBackgroundTimer: () => ({ cancel: () => undefined }) };

test('a controller with other policy modules does not lead while another has those of the leader', async () => {
  const state = embeddedState(clock);
  const logged: string[] = [];
  const logger = createLogger({ level: 'error', destination: { write: (line: string) => void logged.push(line) } });
  const controller = async (
    name: string,
    modules: string,
  ): Promise<{ lease: LeaseKeeper; agreement: ModuleAgreement }> => {
    const agreement = new ModuleAgreement({ state, clock, logger, name, modules });
    await agreement.open();
    const times = { ttlMs: 2000, renewMs: 500 };
    const lease = new LeaseKeeper(state, clock, logger, 'gpu-scheduler', name, times, agreement);
    await lease.open();
    return { lease, agreement };
  };
  const stop = async ({ lease, agreement }: Awaited<ReturnType<typeof controller>>): Promise<void> => {
    await lease.close();
    await agreement.close();
  };
  const leaders = (...all: Awaited<ReturnType<typeof controller>>[]): boolean[] =>
    all.map(({ lease }) => lease.epoch !== undefined);
  const first = await controller('controller0', 'old');
  const second = await controller('controller1', 'new');
  const third = await controller('controller2', 'old');
  expect(leaders(first, second, third)).toEqual([true, false, false]);

  // The leader goes: the one with its modules follows, and the other says why it does not.
  await stop(first);
  await second.lease.open();
  expect([leaders(second, third), second.agreement.differs, third.agreement.differs]).toEqual([
    [false, false],
    true,
    false,
  ]);
  expect(logged).toHaveLength(1);
  expect(JSON.parse(logged[0] ?? '')).toMatchObject({ own: 'new', leader: 'old', controller: 'controller0' });
  await third.lease.open();
  expect(leaders(second, third)).toEqual([false, true]);

  // None is left with the old ones: the new ones lead, and are those of the leader from then on.
  const fourth = await controller('controller0', 'new');
  expect(leaders(second, fourth)).toEqual([false, false]);
  await stop(third);
  await second.lease.open();
  expect([leaders(second), second.agreement.differs]).toEqual([[true], false]);
  const fifth = await controller('controller2', 'old');
  await stop(second);
  await fifth.lease.open();
  expect([leaders(fifth), fifth.agreement.differs]).toEqual([[false], true]);
  await Promise.all([stop(fourth), stop(fifth)]);
  await state.close();
});
