import { PerformanceViews } from '@gpuwhisk/controller/api/gpu-performance-views';
import { beforeEach, describe, expect, test } from '@jest/globals';
import type { ShareClass } from '@gpuwhisk/common/gpu';
import { GpuCluster } from './gpu-cluster.js';

/** The reasons of the latest decisions about an action, newest first. */
const reasons = (cluster: GpuCluster, name: string): string[] =>
  cluster.scheduler
    .decisions()
    .filter(({ action, policy }) => action.endsWith(`/${name}`) && policy === 'faashare')
    .map(({ reason }) => reason);

describe('the GPU scheduler under policy faashare', () => {
  let cluster: GpuCluster;
  beforeEach(async () => {
    cluster = await GpuCluster.start({ policy: 'faashare', admission: 'refuse' });
    await cluster.tell();
  });

  /** Writes the agent's row with an idle instance of an action on the device. */
  const idle = (name: string, shareClass: ShareClass = 50): Promise<void> =>
    cluster.tell({
      residents: [
        {
          ...{ container: `of ${name}`, action: `/alice/${name}`, device: 'GPU-0', memoryMiB: 1000 },
          share: { shareClass, smRequest: shareClass / 100, smLimit: shareClass / 100, memoryMiB: 1000 },
          ...{ namespace: 'alice', isolation: 'namespace', activations: [] },
        },
      ],
    });

  const half = { memoryMiB: 1000, mpsPercent: 50 };

  /** Runs an action with half of the SMs in a warm instance; the run takes `tookMs`. */
  async function run(name: string, tookMs: number, isFailed = false): Promise<void> {
    await idle(name);
    await cluster.accept(name, half);
    await cluster.clock.runFor(tookMs);
    await cluster.finish(name, isFailed);
    await idle(name);
  }

  /**
   * For each batch size in the profile of `a`, the number of runs and whether a run alone was measured; undefined
   * without a profile.
   */
  const knownOfA = (): unknown[] | undefined =>
    new PerformanceViews(cluster.performanceData)
      .functions()
      .find((one) => one.function === '/alice/a')
      ?.batches.map(({ runs, measured }) => [runs, measured]);

  test('starts strict ones first, within the memory, and says which policy has decided', async () => {
    await cluster.accept('first');
    await cluster.accept('best effort');
    await cluster.accept('strict', { sloMs: 10_000 });
    expect([cluster.running, cluster.scheduler.waiting]).toEqual([['first'], 2]);
    expect(cluster.scheduler.queued()).toMatchObject([
      {
        ...{ action: '/alice/strict', namespace: 'alice', position: 1, sloMs: 10_000 },
        rejected: [{ what: 'GPU-0', reason: 'too little free memory' }],
      },
      { action: '/alice/best effort', position: 2, memoryMiB: 38_000 },
    ]);
    for (const next of ['strict', 'best effort']) {
      await cluster.finish(cluster.running[0] ?? '');
      await cluster.tell();
      expect(cluster.running).toEqual([next]);
    }
    expect(reasons(cluster, 'strict')).toEqual(['placed: beside 0 others; share: filling', 'it waits behind others']);
  });

  test('an arrival leaves what was said of others, and a completion has all of them looked at', async () => {
    for (const name of ['first', 'second', 'third']) await cluster.accept(name);
    const reasonsNow = (): unknown[] => cluster.scheduler.queued().map(({ rejected }) => rejected[0]?.reason);
    expect(reasonsNow()).toEqual(['too little free memory', 'too little free memory']);
    await cluster.finish('first');
    await cluster.tell();
    expect([cluster.running, cluster.scheduler.waiting]).toEqual([['second'], 1]);
  });

  test('one that is not tried in a pass keeps the reasons of its last try', async () => {
    const backingOff = await GpuCluster.start({ policy: 'smore' });
    await backingOff.tell();
    for (const name of ['first', 'second']) await backingOff.accept(name);
    for (let look = 0; look < 20; look += 1) {
      expect(backingOff.scheduler.queued()).toMatchObject([{ rejected: [{ reason: 'too little free memory' }] }]);
      await backingOff.clock.runFor(90);
    }
  });

  test('takes an instance that idles with its share', async () => {
    await idle('a');
    await cluster.accept('a', { memoryMiB: 1000, mpsPercent: 50 });
    expect(cluster.arrivals[0]?.message.gpu?.share).toMatchObject({ shareClass: 50, smLimit: 0.5 });
    expect(cluster.arrivals[0]?.message.gpu?.reclaim).toBeUndefined();
  });

  test('learns what a function takes, and refuses an SLO that it cannot meet', async () => {
    await run('a', 200);
    const fits = await cluster.clock.runUntil(cluster.invoke('a', { memoryMiB: 1000, mpsPercent: 50, sloMs: 5000 }));
    expect(fits.type).toBe('accepted');
    await cluster.finish('a');
    await idle('a');
    const refused = cluster.invoke('a', { memoryMiB: 1000, mpsPercent: 50, sloMs: 50 }, true);
    await expect(cluster.clock.runUntil(refused)).rejects.toMatchObject({
      status: 429,
      message: expect.stringMatching(/^The action's SLO cannot be met: it needs \d+ ms, and its SLO leaves \d+\.$/),
    });
  });

  test('predicts of a warm run what it takes, whatever a cold start takes', async () => {
    await run('a', 200);
    await cluster.tell();
    await cluster.accept('a', half);
    await cluster.clock.runFor(900);
    await cluster.finish('a');
    expect(new PerformanceViews(cluster.performanceData).functions()[0]?.batches[0]?.startMs).toBeGreaterThan(500);
    await idle('a');
    await cluster.accept('a', half);
    expect(cluster.arrivals[0]?.message.gpu?.predicted?.runMs).toBeGreaterThanOrEqual(200);
  });

  test('learns of warm runs alone at several classes what a function fills', async () => {
    for (const [mpsPercent, tookMs] of [
      [100, 200],
      [50, 201],
      [30, 300],
    ] as const) {
      for (let one = 0; one < 3; one += 1) {
        await idle('a', mpsPercent);
        await cluster.accept('a', { memoryMiB: 1000, mpsPercent });
        await cluster.clock.runFor(tookMs);
        await cluster.finish('a');
      }
    }
    expect(new PerformanceViews(cluster.performanceData).functions()).toMatchObject([
      { features: { smUtil: 0.5 }, fillSource: 'runs' },
    ]);
  });

  test('is shown the whole record of a function: figures that were measured, and all others of its annotation', async () => {
    const features = { smUtil: 0.9, l2Util: 0.4, layers: 50, arithmeticIntensity: 12.5 };
    await cluster.accept('a', { ...half, features });
    cluster.performanceData.profiles.seen(
      '/alice/a',
      { gpuType: 'a100-40', mode: 'mps' },
      { fill: { part: 0.2, source: 'gpm' }, dramUtil: 0.3 },
    );
    const [task] = cluster.scheduler.trialSince(0).tasks;
    expect(task?.featureRecord).toEqual({ ...features, smUtil: 0.2, dramUtil: 0.3 });
    expect(task?.features).toEqual({ smUtil: 0.2, dramUtil: 0.3, l2Util: 0.4 });
  });

  test('learns nothing from a run that failed', async () => {
    await run('a', 5, true);
    expect(knownOfA()).toBeUndefined();
    await run('a', 200);
    expect(knownOfA()).toEqual([[1, true]]);
  });

  test('what could not be sent was beside nobody', async () => {
    cluster = await GpuCluster.start({ policy: 'faashare' }, 1);
    await idle('a');
    await cluster.accept('a', half);
    await cluster.accept('b', half);
    await cluster.clock.runFor(1000);
    expect([cluster.running, cluster.scheduler.waiting]).toEqual([['a'], 1]);
    await cluster.finish('a');
    expect(knownOfA()).toEqual([[1, true]]);
    await cluster.tell();
    expect(cluster.running).toEqual(['b']);
  });

  test('what never ended is beside nobody once it should have ended', async () => {
    await cluster.accept('b', half);
    await cluster.clock.runFor(181_000);
    expect(cluster.scheduler.reserved).toBe(1);
    await run('a', 200);
    expect([cluster.scheduler.reserved, knownOfA()]).toEqual([0, [[1, true]]]);
  });

  test('requests of a batch join an instance', async () => {
    for (let count = 0; count < 5; count++) await cluster.accept('batched', { batch: 2 });
    expect([cluster.running.length, cluster.scheduler.waiting]).toEqual([4, 1]);
    expect(cluster.arrivals.map(({ message }) => message.gpu?.joins ?? false)).toEqual([false, true, true, true]);
    expect(await cluster.faults()).toBe(0);
  });

  test('what waits survives the vanishing of the device and a crash', async () => {
    await cluster.accept('running');
    await cluster.accept('waiting', { sloMs: 60_000 });
    await cluster.tell({ devices: [], status: [] });
    expect(cluster.scheduler.waiting).toBe(1);
    await cluster.finish('running');
    await cluster.clock.runFor(1000);
    await cluster.crash();
    await cluster.tell();
    await cluster.clock.runFor(300);
    expect(cluster.running).toContain('waiting');
  });
});

test('under policy protean requests wait until their batch is full or has to start, and times are kept', async () => {
  const cluster = await GpuCluster.start({ policy: 'protean' });
  const gpu = { memoryMiB: 1000, batch: 3, sloMs: 2000 };
  const share = { shareClass: 100, smRequest: 1, smLimit: 1, memoryMiB: 1000 } as const;
  const known = { action: '/alice/a', namespace: 'alice', subject: 'alice', isolation: 'namespace' } as const;
  const idle = { container: 'warm', device: 'GPU-0', memoryMiB: 1000, share, ...known, activations: [] };
  const rest = (): Promise<void> => cluster.tell({ residents: [idle] });
  const accept = async (requests: number): Promise<number> => {
    for (let request = 0; request < requests; request += 1) await cluster.accept('a', gpu);
    return cluster.running.length;
  };
  const finish = async (): Promise<void> => {
    while (cluster.running.length > 0) await cluster.finish('a');
    await rest();
  };
  await rest();
  // Its time is not known.
  expect(await accept(1)).toBe(1);
  await cluster.clock.runFor(100);
  await finish();
  expect([await accept(2), cluster.scheduler.waiting]).toEqual([0, 2]);
  expect(cluster.scheduler.queued()[0]?.rejected[0]?.reason).toBe('its batch is being filled');
  await cluster.clock.runFor(1700);
  expect(cluster.running).toEqual([]);
  await cluster.clock.runFor(200);
  expect(cluster.arrivals.map(({ message }) => message.gpu?.together?.requests)).toEqual([2, 2]);
  await finish();
  expect(await accept(3)).toBe(3);
  await finish();
  const learned = (): number | undefined => cluster.performanceData.slices.expectedMs({ function: '/alice/a' });
  const before = learned();
  expect(before).toBeGreaterThan(50);
  await cluster.clock.runUntil(cluster.performanceData.saved());
  await cluster.crash();
  expect(learned()).toBe(before);
  expect(await cluster.faults()).toBe(0);
});
