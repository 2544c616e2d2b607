// Learned data of the controller, in a store, across restarts.
import { beforeEach, describe, expect, test } from '@jest/globals';
import { configSchema } from '@gpuwhisk/common/config-schema';
import type { DecisionRecord } from '@gpuwhisk/common/gpu-decisions';
import { createLogger } from '@gpuwhisk/common/logging';
import { createMetrics } from '@gpuwhisk/common/metrics';
import type { ArtifactStore, StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { PerformanceViews } from '@gpuwhisk/controller/api/gpu-performance-views';
import { nextStep } from '@gpuwhisk/controller/gpu/learning/function-trials';
import { PerformanceData } from '@gpuwhisk/controller/gpu/learning/performance-data';
import type { PerformanceDataParts } from '@gpuwhisk/controller/gpu/learning/performance-data';
import { trainModel } from '@gpuwhisk/gpu/predict/slowdown-model';
import type { SlowdownSample } from '@gpuwhisk/gpu/predict/samples';
import { SimulatedClock } from '../simulation/simulated-clock.js';

const kind = { gpuType: 'a100-40', mode: 'mps' } as const;
const features = { smUtil: 0.5, dramUtil: 0.2, l2Util: 0.1 };
const jobs = ['a', 'b'].map((name) => ({ function: `/guest/${name}`, version: '0.0.1', batch: 1, features }));
const task = { ...jobs[0]!, arrivedAt: 1 };
const decision = (activationId: string, at: number): DecisionRecord => ({
  ...{ at, activationId, action: '/guest/a', namespace: 'guest', policy: 'faashare', reason: 'placed', rejected: [] },
});
const sample = (share: number): SlowdownSample => ({ one: { features, share }, others: [], slowdown: 1 / share });
const model = trainModel(
  kind,
  Array.from({ length: 20 }, (_, at) => sample((at + 1) / 20)),
  { version: 3, seed: 1 },
);

let clock: SimulatedClock;
let store: ArtifactStore;
let warnings: string[];

beforeEach(() => {
  clock = new SimulatedClock();
  store = simulatedStore({ clock, random: seededRandom(1), latencyMs: 2 });
  warnings = [];
});

function open(
  over: ArtifactStore = store,
  instance = 0,
  cluster: Pick<PerformanceDataParts, 'lease' | 'state'> = {},
): Promise<PerformanceData> {
  const write = (line: string): void => void warnings.push(line);
  const logger = createLogger({ level: 'warn', destination: { write } });
  const options = configSchema.parse({}).gpu;
  const metrics = createMetrics();
  const parts = { store: over, clock, random: seededRandom(1), logger, metrics, instance, options, ...cluster };
  return clock.runUntil(PerformanceData.open(parts));
}

function learnAll(performanceData: PerformanceData): void {
  performanceData.profiles.ran({ task, gpu: kind, tookMs: 100, slowdown: 1, isWarm: true, isAlone: true });
  performanceData.table.record(
    jobs,
    { gpuType: 'a100-40', mode: 'mps' },
    { shares: [70, 30], slowdowns: [1.2, 1.5] },
    550,
  );
  performanceData.runs.add(kind, sample(0.5));
  performanceData.put(model);
  performanceData.decisions.add(decision('first', 1));
}

const viewsOf = (of: PerformanceData): PerformanceViews => new PerformanceViews(of);
const documents = (): Promise<StoredDocument[]> => clock.runUntil(store.list('gpu', { after: 'learned/', limit: 100 }));
const put = async (document: StoredDocument): Promise<void> => void (await clock.runUntil(store.put('gpu', document)));

describe('what was learned', () => {
  test('is there in the next life: profiles, samples, models, shares of sets, decisions', async () => {
    const first = await open();
    learnAll(first);
    await clock.runUntil(first.close());
    const next = await open();
    expect(viewsOf(next).functions()).toEqual([
      {
        ...kind,
        function: '/guest/a',
        version: '0.0.1',
        batches: [{ batch: 1, soloMs: 100, measured: true, runs: 1 }],
      },
    ]);
    expect(viewsOf(next).quotas()).toEqual([
      {
        ...{
          id: 'a100-40/mps /guest/a@0.0.1#1 /guest/b@0.0.1#1',
          ...kind,
          driverMajor: 550,
          search: { stage: 'none' },
        },
        jobs: jobs.map(({ function: name, version }) => ({ function: name, version })),
        points: [{ shares: [70, 30], slowdowns: [1.2, 1.5], measurements: 1 }],
      },
    ]);
    expect(next.runs.of(kind).state()).toMatchObject({ fresh: 1, training: { samples: [sample(0.5)] } });
    expect(viewsOf(next).models()).toEqual([{ ...kind, version: 3, sampleCount: 20, learnedAt: expect.any(Number) }]);
    expect(next.predictors.model(kind)).toMatchObject(model);
    expect(next.decisions.latest()).toEqual([decision('first', 1)]);
    expect(warnings).toEqual([]);
  });

  test('goes over from one controller to another: trials that have ended are not repeated, nor is a cancellation lost', async () => {
    const state = embeddedState(clock);
    const [first, second] = [await open(store, 0, { state }), await open(store, 1, { state })];
    const wanted = { function: '/guest/a', version: '0.0.1', goal: { sloMs: 100 } };
    first.trials.want(wanted, 1);
    first.trials.add(wanted, kind, 550, { batch: 1, share: 10, ms: 90 });
    await clock.runUntil(first.saved());
    // The first one is gone without a word; the second one becomes the leader.
    await clock.runUntil(second.takeOver());
    expect(nextStep(second.trials.of('/guest/a')!, kind, 550)).toEqual({ next: { batch: 1, share: 20 } });
    for (const [share, ms] of [
      [20, 45],
      [30, 31],
    ] as const)
      second.trials.add(wanted, kind, 550, { batch: 1, share, ms });
    const shares = { request: 200, limit: 400, batch: 1, ms: 45, limitMs: 31 };
    expect(second.profiles.of({ ...task, arrivedAt: 2 }).profiledShares).toMatchObject([shares]);
    second.trials.cancel('/guest/a');
    await clock.runUntil(second.saved());
    // A process that starts later reads all of it from the store.
    const third = await open(store, 2);
    expect(third.trials.of('/guest/a')).toMatchObject({ isCancelled: true, kinds: [{ trials: [{}, {}, {}] }] });
    expect(third.profiles.of({ ...task, arrivedAt: 2 }).profiledShares).toMatchObject([shares]);
  });

  test('is written in the background, what changes often as seldom as the settings say', async () => {
    let writes = 0;
    const performanceData = await open({
      ...bound(store),
      put: (...all) => {
        writes += 1;
        return store.put(...all);
      },
    });
    for (let count = 0; count < 50; count += 1) learnAll(performanceData);
    expect(writes).toBe(0);
    await clock.runFor(1999);
    expect(writes).toBe(0);
    await clock.runFor(20);
    expect([writes, (await documents()).length]).toEqual([5, 5]);
    for (const { kind: of, gpuType, mode } of await documents()) {
      if (of !== 'decisions') expect({ gpuType, mode }).toEqual(kind);
    }
    learnAll(performanceData);
    await clock.runFor(2100);
    expect(writes).toBe(10);
  });

  test('outlives a store that fails for a while', async () => {
    let fails = true;
    const performanceData = await open({
      ...bound(store),
      put: (...all) => (fails ? Promise.reject(new Error('the disk is full')) : store.put(...all)),
    });
    learnAll(performanceData);
    await clock.runFor(10_000);
    expect([(await documents()).length, warnings.length]).toEqual([0, 1]);
    expect(warnings[0]).toContain('the disk is full');
    fails = false;
    await clock.runFor(60_000);
    expect(await documents()).toHaveLength(5);
    expect(performanceData.writes.saved).toBe(5);
  });

  test('is read later where the store fails at the start, and not written over until then', async () => {
    const first = await open();
    learnAll(first);
    await clock.runUntil(first.close());
    let fails = true;
    const list: ArtifactStore['list'] = (...all) =>
      fails ? Promise.reject(new Error('the store fails')) : store.list(...all);
    const next = await open({ ...bound(store), list });
    expect([viewsOf(next).functions(), warnings.length]).toEqual([[], 1]);
    next.profiles.ran({ task, gpu: kind, tookMs: 300, slowdown: 1, isWarm: true, isAlone: true });
    next.runs.add(kind, sample(0.25));
    next.table.record(jobs, { gpuType: 'a100-40', mode: 'mps' }, { shares: [50, 50], slowdowns: [1.1, 1.1] }, 550);
    await clock.runFor(30_000);
    expect([viewsOf(next).quotas()[0]?.points.length, warnings.length]).toEqual([1, 1]);
    fails = false;
    await clock.runFor(60_000);
    // Neither the stored data nor the data learned since the start is lost.
    for (const known of [next, await open()]) {
      expect(viewsOf(known).functions()).toMatchObject([{ batches: [{ soloMs: 300, runs: 2 }] }]);
      expect(known.runs.of(kind).state().training.samples).toEqual([sample(0.5), sample(0.25)]);
      expect(
        viewsOf(known)
          .quotas()[0]
          ?.points.map(({ shares }) => shares),
      ).toEqual([
        [50, 50],
        [70, 30],
      ]);
    }
  });

  test('what was forgotten while the store failed does not come back', async () => {
    const first = await open();
    learnAll(first);
    await clock.runUntil(first.close());
    let fails = true;
    const list: ArtifactStore['list'] = (...all) =>
      fails ? Promise.reject(new Error('the store fails')) : store.list(...all);
    const next = await open({ ...bound(store), list });
    next.profiles.ran({ task, gpu: kind, tookMs: 300, slowdown: 1, isWarm: true, isAlone: true });
    next.forgetFunction('/guest/a');
    fails = false;
    await clock.runFor(60_000);
    expect([viewsOf(next).functions(), viewsOf(await open()).functions()]).toEqual([[], []]);
  });

  test('is written by the controller that decides, whatever others have in memory', async () => {
    const [lease, none] = [{ epoch: 1 as number | undefined }, { epoch: undefined as number | undefined }];
    const [one, other] = [await open(store, 0, { lease }), await open(store, 1, { lease: none })];
    learnAll(one);
    await clock.runFor(3000);
    other.profiles.ran({ task, gpu: kind, tookMs: 300, slowdown: 1, isWarm: true, isAlone: true });
    other.decisions.add(decision('its own', 2));
    await clock.runFor(3000);
    expect(viewsOf(await open()).functions()).toEqual(viewsOf(one).functions());
    expect((await documents()).filter(({ kind: of }) => of === 'decisions')).toHaveLength(2);
    // The lease goes to the other controller. Unwritten data of the first one must not overwrite the other's.
    one.runs.add(kind, sample(0.1));
    [lease.epoch, none.epoch] = [undefined, 2];
    await clock.runUntil(other.takeOver());
    other.runs.add(kind, sample(0.25));
    await clock.runFor(6000);
    expect((await open()).runs.of(kind).state().training.samples).toEqual([sample(0.5), sample(0.25)]);
    expect(warnings).toEqual([]);
  });

  test('is forgotten by all controllers, whichever was asked', async () => {
    const state = embeddedState(clock);
    const decides = await open(store, 0, { state, lease: { epoch: 1 } });
    learnAll(decides);
    await clock.runFor(3000);
    const other = await open(store, 1, { state, lease: { epoch: undefined } });
    expect([other.forgetFunction('/guest/a'), other.forgetModel(kind)]).toEqual([true, true]);
    await clock.runFor(3000);
    const views = viewsOf(decides);
    expect([views.functions(), views.models(), views.quotas()]).toEqual([[], [], []]);
    expect((await documents()).map((one) => one.kind)).toEqual(['decisions']);
  });
});

describe('what cannot be used', () => {
  async function damage(of: string, change: (document: StoredDocument) => StoredDocument): Promise<void> {
    const first = await open();
    learnAll(first);
    await clock.runUntil(first.close());
    const found = (await documents()).find((one) => one.kind === of);
    await put(change(found!));
  }

  test.each<[string, string, (document: StoredDocument) => StoredDocument]>([
    ['a changed text', 'it is damaged', (one) => ({ ...one, text: `${String(one.text)} ` })],
    ['an older format', 'its format is 0 instead of 1', (one) => ({ ...one, format: 0 })],
    ['an unknown kind', "its kind is 'dream'", (one) => ({ ...one, kind: 'dream' })],
    ['nothing', 'its format is undefined', ({ _id, _rev }) => ({ _id, _rev: _rev! })],
  ])('%s is said in a line and left aside; the rest is taken, and it is learned anew', async (_, reason, change) => {
    for (const of of ['profile', 'samples', 'model', 'quota', 'decisions']) {
      await damage(of, change);
      warnings = [];
      const next = await open();
      expect(warnings).toHaveLength(1);
      expect(warnings[0]).toContain(reason);
      const known = [
        viewsOf(next).functions(),
        viewsOf(next).quotas(),
        viewsOf(next).models(),
        next.decisions.latest(),
      ];
      expect(known.filter((list) => list.length === 0)).toHaveLength(of === 'samples' ? 0 : 1);
      learnAll(next);
      await clock.runUntil(next.close());
      warnings = [];
      await open();
      expect(warnings).toEqual([]);
    }
  });

  test('a model whose text is no model does not come into force', async () => {
    const first = await open();
    learnAll(first);
    await clock.runUntil(first.close());
    const { createHash } = await import('node:crypto');
    const [found] = (await documents()).filter((one) => one.kind === 'model');
    const text = String(found!.text).replace('"sampleCount":20', '"sampleCount":21');
    await put({ ...found!, text, sha256: createHash('sha256').update(text).digest('hex') });
    const next = await open();
    expect([viewsOf(next).models(), warnings.length]).toEqual([[], 1]);
    expect(warnings[0]).toContain('its SHA-256 is another');
  });
});

describe('an operator', () => {
  test('has it forgotten, for the next life too', async () => {
    const performanceData = await open();
    learnAll(performanceData);
    await clock.runFor(3000);
    const [quota] = viewsOf(performanceData).quotas();
    expect(performanceData.forgetQuota(quota!.id)).toBe(true);
    expect(performanceData.forgetModel(kind)).toBe(true);
    expect(performanceData.forgetFunction('/guest/a')).toBe(true);
    expect([
      performanceData.forgetQuota(quota!.id),
      performanceData.forgetModel(kind),
      performanceData.forgetFunction('/guest/a'),
    ]).toEqual([...[false, false, false]]);
    expect([
      viewsOf(performanceData).functions(),
      viewsOf(performanceData).quotas(),
      viewsOf(performanceData).models(),
    ]).toEqual([[], [], []]);
    await clock.runFor(3000);
    expect((await documents()).map((one) => one.kind)).toEqual(['decisions']);
  });

  test('who forgets a function has the sets forgotten that it is in', async () => {
    const performanceData = await open();
    learnAll(performanceData);
    performanceData.forgetFunction('/guest/b');
    expect([viewsOf(performanceData).quotas(), viewsOf(performanceData).functions()]).toMatchObject([
      [],
      [{ function: '/guest/a' }],
    ]);
  });
});

test('the last 1000 decisions are kept, in their order, over lives', async () => {
  let performanceData = await open();
  for (let at = 0; at < 1120; at += 1) performanceData.decisions.add(decision(`d${at}`, at));
  const last = performanceData.decisions.latest();
  expect([last.length, last[0]?.activationId, last.at(-1)?.activationId]).toEqual([1000, 'd1119', 'd120']);
  await clock.runUntil(performanceData.close());
  performanceData = await open();
  expect(performanceData.decisions.latest()).toEqual(last);
  performanceData.decisions.add(decision('next', 2000));
  expect(performanceData.decisions.latest().slice(0, 2)).toEqual([decision('next', 2000), last[0]]);
  expect(performanceData.decisions.latest().at(-1)?.activationId).toBe('d121');
});

/** A store as an object of bound functions, so that a test can replace some of them. */
function bound(of: ArtifactStore): ArtifactStore {
  return {
    get: of.get.bind(of),
    put: of.put.bind(of),
    createMany: of.createMany.bind(of),
    delete: of.delete.bind(of),
    list: of.list.bind(of),
    query: of.query.bind(of),
    texts: of.texts.bind(of),
    text: of.text.bind(of),
    count: of.count.bind(of),
    expire: of.expire.bind(of),
    getAttachment: of.getAttachment.bind(of),
    storedBytes: of.storedBytes.bind(of),
    storedNamespaces: of.storedNamespaces.bind(of),
    close: of.close.bind(of),
  };
}
