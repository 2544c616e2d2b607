// Searches for shares on idle GPUs, on a simulated clock: arriving work, crashes, and functions that must not run.
import { beforeEach, describe, expect, test } from '@jest/globals';
import { PerformanceViews } from '@gpuwhisk/controller/api/gpu-performance-views';
import type { SetPerformance, TrialsView } from '@gpuwhisk/controller/api/gpu-performance-views';
import type { QuotaSearchesParts } from '@gpuwhisk/controller/gpu/search/quota-searches';
import { GpuCluster, actionNamed, identity } from './gpu-cluster.js';
import { SimulatedNode } from './simulated-node.js';

const maxSampleMs = 5000;
const search = { enabled: true, idleMs: 10_000, minAsked: 3, maxSampleMs, pairPart: 0.2, pairSecondsPerHour: 360 };
const gpus: Record<string, { memoryMiB: number; features?: { smUtil: number }; batch?: number; sloMs?: number }> = {
  // The profile of `wide` shows less activity than `wide` can use: runs with the whole GPU are faster than with its
  // fill.
  wide: { memoryMiB: 4000, features: { smUtil: 0.6 } },
  narrow: { memoryMiB: 4000, features: { smUtil: 0.2 } },
  /** A function whose fill is unknown. */
  unknown: { memoryMiB: 4000 },
  /** A function whose requests run in batches. */
  batched: { memoryMiB: 4000, batch: 5, sloMs: 500 },
};
const times: Record<string, (share: number, beside: number, batch: number) => number> = {
  wide: (share, beside) => (400 * 100) / share + 10 * beside,
  /** Functions whose request and limit are searched for. */
  third: (share) => 200 * Math.max(1, 30 / share),
  batched: (share, _, batch) => (80 + 10 * batch) * Math.max(1, (25 + 5 * batch) / share),
  endless: () => 60_000,
};
const tookMs = (name: string, share: number, beside: number, batch: number): number =>
  times[name]?.(share, beside, batch) ?? 300;

type KindView = TrialsView['kinds'][number];

let cluster: GpuCluster;
let node: SimulatedNode;
let problem: string | undefined;
const source: QuotaSearchesParts['source'] = {
  of: (job) => {
    const name = job.function.split('/').at(-1) ?? '';
    const action = actionNamed(name, gpus[name]);
    return Promise.resolve(problem ?? { job, identity, action, payload: {}, memoryMiB: gpus[name]?.memoryMiB ?? 4000 });
  },
};

async function start(policy = 'faashare'): Promise<void> {
  cluster = await GpuCluster.start({ policy, search }, 1000, source);
  node = new SimulatedNode(cluster, tookMs);
  await node.tell();
}
beforeEach(async () => {
  problem = undefined;
  await start();
});

/** Advances the clock by `ms`; the node's agent writes its row twice a second. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 500) {
    await cluster.clock.runFor(Math.min(500, left));
    await node.tell();
  }
}

/** Runs both functions beside each other, by default as often as a search requires. */
async function runTogether(times = search.minAsked): Promise<void> {
  for (let count = 0; count < times + 1; count += 1) {
    await Promise.all(['wide', 'narrow'].map((name) => cluster.accept(name, gpus[name])));
    await pass(2500);
  }
}

const views = (): PerformanceViews => new PerformanceViews(cluster.performanceData);
const quotas = (): SetPerformance[] => views().quotas();
const samples = (): typeof node.runs => node.runs.filter(({ isSample }) => isSample);

/** Advances the clock until a condition holds; throws after three minutes. */
async function passUntil(what: string, holds: () => boolean): Promise<void> {
  for (let count = 0; !holds(); count += 1) {
    if (count >= 360) throw new Error(`it did not come to ${what}: ${JSON.stringify(quotas())}`);
    await pass(500);
  }
}

const searchedUntil = (stage: string): Promise<void> =>
  passUntil(`stage ${stage}`, () => quotas()[0]?.search.stage === stage);
/** Advances the clock until `count` samples have run. */
const sampledUntil = (count: number): Promise<void> => passUntil(`${count} samples`, () => samples().length >= count);

describe('a set that runs together often', () => {
  test('is measured with other shares while its GPU idles, and has better ones in the table then', async () => {
    await runTogether();
    expect(samples()).toEqual([]);
    expect(quotas()[0]?.search).toMatchObject({ stage: 'asked' });
    await searchedUntil('done');
    const [{ jobs, points }] = quotas() as [SetPerformance];
    expect(jobs.map(({ function: name }) => name)).toEqual(['/alice/narrow', '/alice/wide']);
    // The fills are 20 % and 70 %.
    const filling = points.find(({ shares }) => shares[0] === 20 && shares[1] === 70);
    expect(filling?.slowdowns[1]).toBeCloseTo(400 / 0.7 / 400, 1);
    expect(points[0]?.shares[1]).toBe(100);
    expect(points[0]?.slowdowns[1]).toBeLessThan(1.1);
    const set = jobs.map((job) => ({ ...job, batch: 1 }));
    expect(
      cluster.performanceData.table.shareFor(set, { gpuType: 'a100-40', mode: 'mps' }, [Infinity, Infinity]),
    ).toMatchObject({
      ...{ source: 'hit', shares: [expect.any(Number), 1] },
    });
    const count = node.runs.length;
    await pass(60_000);
    expect(node.runs).toHaveLength(count);
  });

  test('is measured by samples that are nobody’s requests: no limit counts them, and they are explained', async () => {
    await runTogether();
    await searchedUntil('running');
    await sampledUntil(1);
    const reasons = cluster.scheduler.decisions().map(({ reason }) => reason);
    expect(reasons[0]).toBe('placed: a sample');
    // Samples do not change the times that were learned from requests.
    const [profile] = views().functions();
    const before = profile?.batches[0]?.runs;
    await searchedUntil('done');
    expect(views().functions()[0]?.batches[0]?.runs).toBe(before);
  });

  test('is not measured while anything runs, nor before the GPU has idled for long enough', async () => {
    await runTogether();
    const idleFrom = cluster.clock.monotonicMs();
    await sampledUntil(1);
    expect(samples()[0]!.startMs - idleFrom).toBeGreaterThan(search.idleMs - 2500);
  });

  test('is not run where its owner does not allow it, which is said', async () => {
    problem = 'the action has no sample';
    await runTogether();
    await pass(60_000);
    expect(samples()).toEqual([]);
    expect(quotas()).toMatchObject([{ jobs: [{ problem }, { problem }], search: { stage: 'impossible' } }]);
    problem = undefined;
    await pass(60_000);
    expect(quotas()).not.toMatchObject([{ search: { stage: 'impossible' } }]);
  });
});

describe('a function whose fill is unknown', () => {
  const runAlone = async (): Promise<void> => {
    for (let count = 0; count < search.minAsked; count += 1) {
      await cluster.accept('unknown', gpus.unknown);
      await pass(2500);
    }
  };
  const known = (): unknown =>
    views()
      .functions()
      .map(({ features, fillSource }) => [features, fillSource]);

  test('has its sample measured alone at each share class, and fills what that says from then on', async () => {
    await runAlone();
    expect(known()).toEqual([[undefined, undefined]]);
    await passUntil('a fill', () => views().functions()[0]?.fillSource !== undefined);
    expect(known()).toEqual([[{ smUtil: 0.1 }, 'sample']]);
    await passUntil('the end of the search', () => quotas().length === 0);
    const count = node.runs.length;
    await runAlone();
    await pass(60_000);
    expect(samples()).toHaveLength(count - search.minAsked);
  });

  test('is left alone where its owner does not allow samples, which is said', async () => {
    problem = 'the action has no sample';
    await runAlone();
    await pass(60_000);
    expect([samples(), known()]).toEqual([[], [[undefined, undefined]]]);
    expect(quotas()).toMatchObject([{ jobs: [{ problem }], points: [], search: { stage: 'impossible' } }]);
  });
});

describe('a function whose request and limit are wanted', () => {
  const wanted = { function: '/alice/third', version: '0.0.1', goal: { sloMs: 500 } };
  const kind = { gpuType: 'a100-40', mode: 'mps' } as const;
  const want = (one: Parameters<typeof cluster.performanceData.trials.want>[0] = wanted): void =>
    cluster.performanceData.trials.want(one, cluster.clock.now());
  const view = (name = wanted.function): TrialsView => views().trialsOf(name);
  const trialsUntil = (count: number): Promise<void> =>
    passUntil(`${count} trials`, () => (view().kinds[0]?.trials.length ?? 0) >= count);
  const profileUntil = (state: string, name?: string): Promise<void> =>
    passUntil(`state ${state}`, () => view(name).state === state);
  const told = (version = wanted.version): unknown =>
    cluster.performanceData.profiles.of({
      function: wanted.function,
      version,
      batch: 1,
      arrivedAt: cluster.clock.now(),
    }).profiledShares;

  test('has trials at share classes while a GPU idles, and policies are told of the result', async () => {
    want();
    await profileUntil('done');
    // The last one tells what the limit serves.
    expect([...new Set(samples().map(({ shareClass }) => shareClass))]).toEqual([10, 20, 30, 50]);
    expect(view()).toMatchObject({
      kinds: [{ gpuType: 'a100-40', mode: 'mps', profile: { request: 300, limit: 600, batch: 1, keepsGoal: true } }],
    });
    const shares = { request: 300, limit: 600, batch: 1, ms: 200, limitMs: 200 };
    expect(told()).toEqual([{ ...kind, ...shares }]);
    const count = samples().length;
    await pass(30_000);
    expect(samples()).toHaveLength(count);
  });

  test('goes on after a crash from the trials that have ended', async () => {
    want();
    await trialsUntil(1);
    const count = samples().length;
    await cluster.crash();
    node.reset();
    await node.tell();
    await profileUntil('done');
    expect(
      samples()
        .slice(count)
        .some(({ shareClass }) => shareClass === 10),
    ).toBe(false);
    expect(view().kinds[0]?.trials.map(({ share }) => share)).toEqual([10, 20, 30, 50]);
  });

  test('has trials of batches, and the scale stage is told what an instance serves with the profile', async () => {
    await start('dilu');
    want({ function: '/alice/batched', version: '0.0.1', goal: { sloMs: 500 }, batch: 5 });
    await profileUntil('done', '/alice/batched');
    const [{ trials, mostTrials, profile }] = view('/alice/batched').kinds as [KindView];
    expect(trials.map(({ batch, share, ms }) => [batch, share, ms])).toEqual([
      ...[
        [1, 10, 270],
        [1, 20, 135],
        [2, 20, 175],
        [4, 20, 270],
        [4, 30, 180],
      ],
      [4, 50, 120],
    ]);
    expect(mostTrials).toBe(9);
    expect(profile).toMatchObject({ request: 300, limit: 600, batch: 4, ms: 180, limitMs: 120 });
    // Each trial is a run of so many requests as one.
    expect([...new Set(samples().map(({ batch, shareClass }) => `${batch} ${shareClass}`))]).toHaveLength(6);
    await cluster.accept('batched', gpus.batched);
    await pass(1000);
    expect(node.runs.at(-1)).toMatchObject({ name: 'batched', isSample: false, shareClass: 70 });
    const [known] = cluster.scheduler.view().functions ?? [];
    expect(known?.served?.request).toBeCloseTo(4000 / 180, 6);
    expect(known?.served?.limit).toBeCloseTo(4000 / 120, 6);
  });

  test('ends when its controller loses the lease, and goes on under the next leader from the trials that have ended', async () => {
    want();
    await trialsUntil(1);
    await sampledUntil(samples().length + 1);
    cluster.lease.epoch = undefined;
    await pass(2000);
    const count = samples().length;
    await pass(30_000);
    expect([view().state, samples().length]).toEqual(['impossible', count]);
    cluster.lease.epoch = 6;
    await node.tell();
    await profileUntil('done');
    const later = samples().slice(count);
    expect(later.some(({ shareClass }) => shareClass === 10)).toBe(false);
    expect(view().kinds[0]?.trials.map(({ share }) => share)).toEqual([10, 20, 30, 50]);
  });

  test('gives way to requests, and its trials end when they are cancelled', async () => {
    want();
    await trialsUntil(1);
    cluster.performanceData.trials.cancel(wanted.function);
    const count = samples().length;
    await pass(30_000);
    expect(view().state).toBe('cancelled');
    expect(samples().length).toBe(count);
    want();
    await sampledUntil(count + 1);
    await cluster.accept('wide', gpus.wide);
    const cameMs = cluster.clock.monotonicMs();
    await pass(search.idleMs);
    expect(samples().filter(({ startMs }) => startMs > cameMs)).toEqual([]);
    await profileUntil('done');
  });

  test('starts again with the next version', async () => {
    want();
    await profileUntil('done');
    await cluster.clock.runFor(1);
    want({ ...wanted, version: '0.0.2' });
    expect([view().kinds, told('0.0.2')]).toEqual([[], undefined]);
    await profileUntil('done');
    expect(told('0.0.2')).toMatchObject([{ request: 300 }]);
    cluster.performanceData.trials.deleted(wanted.function);
    expect([view().state, told('0.0.2')]).toEqual(['none', undefined]);
  });

  test('is not run where its owner does not allow it, and trials that are all too long leave no profile', async () => {
    problem = 'the action has no sample';
    want();
    await passUntil('the problem', () => view().problem === problem);
    expect([samples(), view().state]).toEqual([[], 'impossible']);
    problem = undefined;
    want({ ...wanted, function: '/alice/endless' });
    await profileUntil('done', '/alice/endless');
    expect(view('/alice/endless')).toMatchObject({ kinds: [{ failed: expect.stringContaining('too long') }] });
    await profileUntil('done');
  });
});

describe('work that comes while a search runs', () => {
  test('interrupts it: no sample begins any more, and the last one ends soon', async () => {
    await runTogether();
    await sampledUntil(12);
    const measured = quotas()[0]?.points.length ?? 0;
    await cluster.accept('wide', gpus.wide);
    const cameMs = cluster.clock.monotonicMs();
    await pass(search.idleMs);
    expect(samples().filter(({ startMs }) => startMs > cameMs)).toEqual([]);
    for (const { endMs } of samples()) expect(endMs).toBeLessThanOrEqual(cameMs + maxSampleMs);
    expect(quotas()[0]?.points.length).toBeGreaterThanOrEqual(measured);
    const count = samples().length;
    await searchedUntil('done');
    expect(samples().length).toBeGreaterThan(count);
  });

  test('ends the attempt at once, not with its sample', async () => {
    await runTogether();
    await searchedUntil('running');
    await sampledUntil(1);
    const isUnderWay = (): boolean => samples().at(-1)?.endMs === Infinity;
    await passUntil('a sample that goes on', isUnderWay);
    await cluster.accept('wide', gpus.wide);
    await cluster.clock.runFor(1);
    expect(isUnderWay()).toBe(true);
    expect(quotas()[0]?.search.stage).not.toBe('running');
  });

  test('goes before it even if the GPU has room for both', async () => {
    await runTogether();
    await sampledUntil(3);
    const id = await cluster.accept('narrow', gpus.narrow);
    expect(cluster.scheduler.waiting).toBe(0);
    expect(cluster.scheduler.decisions()[0]).toMatchObject({
      activationId: id,
      reason: 'placed: beside a function of another namespace: nothing measured yet; share: filling',
    });
  });
});

describe('a crash of the controller that decides', () => {
  test('in the middle of a search leaves nothing stuck: it goes on from what was measured', async () => {
    await runTogether();
    await passUntil('two points', () => (quotas()[0]?.points.length ?? 0) >= 2);
    // The crash comes right after the second point.
    const measured = quotas()[0]!.points.length;
    await cluster.crash();
    node.reset();
    await node.tell();
    expect(cluster.scheduler.reserved).toBe(0);
    expect(quotas()[0]?.points).toHaveLength(measured);
    await searchedUntil('done');
    await cluster.accept('wide', gpus.wide);
    await pass(2000);
    expect([cluster.scheduler.waiting, cluster.scheduler.reserved]).toEqual([0, 0]);
  });

  test('before its search leaves a set wanted that was formed often enough', async () => {
    await runTogether();
    const asked = quotas()[0]?.search.asked;
    expect(asked).toBeGreaterThanOrEqual(search.minAsked);
    expect(samples()).toEqual([]);
    await cluster.crash();
    node.reset();
    await node.tell();
    expect(quotas()[0]?.search).toMatchObject({ stage: 'asked', asked });
    await searchedUntil('done');
  });

  test('has no sample run that an invoker gives back', async () => {
    await runTogether();
    await sampledUntil(1);
    let left: Parameters<GpuCluster['leave']>[0] | undefined;
    const take = cluster.onArrival!;
    cluster.onArrival = (message, delivery) => {
      left ??= message;
      take(message, delivery);
    };
    await passUntil('another sample', () => left !== undefined);
    expect(left?.sample).toEqual({ maxMs: maxSampleMs });
    await cluster.crash();
    node.reset();
    await node.tell();
    await cluster.leave(left!, true);
    expect([cluster.scheduler.waiting, cluster.scheduler.reserved]).toEqual([0, 0]);
  });
});
