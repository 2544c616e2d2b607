// A policy that an operator sets on a live scheduler: what goes on, what stays, and what is undone.
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createLogger } from '@gpuwhisk/common/logging';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { guardMs, mostFaults, PolicySetting } from '@gpuwhisk/controller/gpu/scheduler/policy-setting';
import { PerformanceViews } from '@gpuwhisk/controller/api/gpu-performance-views';
import { addStage } from '@gpuwhisk/gpu/policies/stages';
import { SimulatedClock } from '../simulation/simulated-clock.js';
import { GpuCluster } from './gpu-cluster.js';

const lastPolicy = (cluster: GpuCluster, name: string): string | undefined =>
  cluster.scheduler.decisions().find(({ action }) => action.endsWith(`/${name}`))?.policy;

describe('a live scheduler', () => {
  let cluster: GpuCluster;
  beforeEach(async () => {
    cluster = await GpuCluster.start({ policy: 'exclusive' });
    await cluster.tell();
  });
  const set = (policy?: Parameters<PolicySetting['change']>[0]) =>
    cluster.clock.runUntil(cluster.setting.change(policy, 'ada'));

  test('goes on with what runs and what waits, and keeps what was learned', async () => {
    await cluster.accept('learned');
    await cluster.clock.runFor(100);
    await cluster.finish('learned');
    await cluster.tell();
    const measured = (): number => new PerformanceViews(cluster.performanceData).functions().length;
    const before = measured();
    await cluster.accept('runs', { memoryMiB: 10_000 });
    await cluster.accept('waits', { memoryMiB: 10_000 });
    expect([cluster.running, cluster.scheduler.waiting]).toEqual([['runs'], 1]);
    expect(await set('least-loaded')).toMatchObject({ by: 'ada', from: 'exclusive', to: 'least-loaded' });
    await cluster.clock.runFor(1);
    // The GPU of exclusive was whole: least-loaded puts both there.
    expect([cluster.running, cluster.scheduler.waiting]).toEqual([['runs', 'waits'], 0]);
    expect([lastPolicy(cluster, 'runs'), lastPolicy(cluster, 'waits')]).toEqual(['exclusive', 'least-loaded']);
    await cluster.finish('runs');
    await cluster.finish('waits');
    expect(measured()).toBeGreaterThan(before);
    expect(await cluster.faults()).toBe(0);
  });

  test('keeps the policy over a restart, until it is reset', async () => {
    await set({ base: 'exclusive', share: 'unlimited', settings: { slots: 3 } });
    await cluster.crash();
    await cluster.tell();
    await cluster.accept('after');
    expect(lastPolicy(cluster, 'after')).toBe('exclusive share=unlimited slots=3');
    expect(cluster.setting.set).toMatchObject({ by: 'ada' });
    await set();
    await cluster.finish('after');
    await cluster.tell();
    await cluster.accept('reset');
    expect([lastPolicy(cluster, 'reset'), cluster.setting.set]).toEqual(['exclusive', undefined]);
    expect(cluster.setting.changes.map(({ from, to }) => [from, to])).toEqual([
      ['exclusive share=unlimited slots=3', 'exclusive'],
      ['exclusive', 'exclusive share=unlimited slots=3'],
    ]);
  });

  test('begins to scale with a policy that scales, and ends with one that does not', async () => {
    const asked: string[] = [];
    const undo = addStage('scale', 'asked', {
      settings: {},
      make: () => () => {
        asked.push('tick');
        return { launch: [], retire: [] };
      },
    });
    try {
      await set({ base: 'exclusive', scale: 'asked' });
      await cluster.clock.runFor(3000);
      expect(asked.length).toBeGreaterThanOrEqual(2);
      await set('exclusive');
      const before = asked.length;
      await cluster.clock.runFor(3000);
      expect(asked).toHaveLength(before);
    } finally {
      undo();
    }
  });

  describe('under a policy that fails', () => {
    let undo: () => void;
    beforeEach(() => {
      const fails = (): never => {
        throw new Error('out of ideas');
      };
      undo = addStage('order', 'broken', { settings: {}, make: () => fails });
    });
    afterEach(() => undo());
    const broken = { base: 'exclusive', order: 'broken' };
    const run = async (count: number): Promise<void> => {
      for (let at = 0; at < count; at += 1) {
        await cluster.accept(`f${at}`);
        await cluster.finish(`f${at}`);
        await cluster.tell();
      }
    };

    test('puts the former one back after a few faults, and says why; nothing is lost', async () => {
      await set('least-loaded');
      await set(broken);
      await run(mostFaults);
      expect(cluster.setting.choice).toEqual(broken);
      await run(2);
      expect(cluster.setting.choice).toBe('least-loaded');
      const faults = await cluster.faults();
      const [last] = cluster.setting.changes;
      expect(last).toMatchObject({ by: 'platform', from: 'exclusive order=broken', to: 'least-loaded' });
      expect(last?.why).toMatch(/^\d+ faults within 5 minutes, the last: /);
      await run(2);
      expect(await cluster.faults()).toBe(faults);
      await cluster.crash();
      expect(cluster.setting.choice).toBe('least-loaded');
    });

    test('leaves a policy that fails later to its operator', async () => {
      await set(broken);
      await cluster.clock.runFor(guardMs + 1);
      await cluster.tell();
      await run(mostFaults + 2);
      expect(cluster.setting.choice).toEqual(broken);
    });
  });
});

describe('two controllers', () => {
  const clock = new SimulatedClock();
  const logger = createLogger({ level: 'silent' });
  const options = { policy: 'auto', admission: 'best-effort' } as const;

  test('have the same policy, and of two operators at once one is refused', async () => {
    const store = simulatedStore({ clock, random: seededRandom(1), latencyMs: 1 });
    const state = embeddedState(clock);
    const lease = { epoch: undefined };
    const [one, other] = [0, 1].map(() => new PolicySetting({ store, state, clock, logger, lease, options })) as [
      PolicySetting,
      PolicySetting,
    ];
    await clock.runUntil(Promise.all([one.open(), other.open()]));
    let changes = 0;
    other.onChange(() => (changes += 1));
    await clock.runUntil(one.change('smore', 'ada'));
    await clock.runFor(10);
    expect([other.choice, other.set?.by, changes]).toEqual(['smore', 'ada', 1]);
    const both = Promise.allSettled([one.change('dilu', 'ada'), other.change('exclusive', 'bo')]);
    const outcomes = await clock.runUntil(both);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(outcomes.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { status: 409 } });
    await clock.runFor(10);
    expect(one.choice).toBe(other.choice);
    await clock.runUntil(other.change('protean', 'bo'));
    await clock.runFor(10);
    expect(one.choice).toBe('protean');
    await Promise.all([one.close(), other.close()]);
  });

  test('go on with the configured policy where the stored one is not there', async () => {
    const store = simulatedStore({ clock, random: seededRandom(1), latencyMs: 1 });
    const parts = { store, state: embeddedState(clock), clock, logger, lease: { epoch: 1 }, options };
    const undo = addStage('order', 'of a module', { settings: {}, make: () => () => [] });
    const before = new PolicySetting(parts);
    await clock.runUntil(before.open());
    await clock.runUntil(before.change({ base: 'exclusive', order: 'of a module' }, 'ada'));
    undo();
    const after = new PolicySetting(parts);
    await clock.runUntil(after.open());
    expect([after.choice, after.set]).toEqual(['auto', undefined]);
    expect(after.problem).toContain("there is no order stage 'of a module'");
  });
});
