// Training jobs in replay: what slows them and functions down, what policies see, and the policies of SMORE's comparison.
import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { makePolicy, type PolicyChoice } from '@gpuwhisk/gpu/policies/make-policy';
import type { Policy } from '@gpuwhisk/gpu/policies/policy';
import type { DegradationModel } from '@gpuwhisk/gpu/predict/degradation';
import { alike } from '@gpuwhisk/bench/replay/alike';
import { replay, type GpuTruth, type ReplayJob, type ReplayRun } from '@gpuwhisk/gpu/simulate/replay';
import type { SimulatedWorkload } from '@gpuwhisk/gpu/simulate/simulated-workload';
import { dividedSms, profiledTask } from '@gpuwhisk/gpu/testing/fixtures';
import type { WorkloadState } from '@gpuwhisk/gpu/view/view';
import { smoreTable } from '../../documents/smore-tables.js';
import { stretchTable } from '@gpuwhisk/bench/replay/model/gpu-model';
import type { CatalogueEntry } from '@gpuwhisk/bench/replay/workloads/catalogue';
import { learn } from './learned.js';
import { runCoLocation, sharedGpus, type World } from './run.js';
import { sliceTruth } from './slices.js';
import { coLocationTruth, fitTraining, type CoLocationParameters } from './truth.js';
import '../../baselines/register.js';

/** All on a GPU take turns. */
const turns: GpuTruth = {
  noise: 0,
  slowdowns: (clients) => new Float64Array(clients.length).fill(clients.length),
  used: (clients) => Math.min(1, clients.length / 4),
};

const training = (gpu: string, changes: Partial<SimulatedWorkload> = {}): SimulatedWorkload => ({
  ...{ id: `w-${gpu}`, gpu, workload: 'training', memoryMiB: 4000, tolerated: 0.1, baseline: 1, noise: 0 },
  features: { smUtil: 0.5 },
  ...changes,
});

function job(id: string, soloMs: number, arrivedAt = 0, sloMs?: number): ReplayJob {
  const task = profiledTask(id, soloMs, 0.2, { arrivedAt, function: `/a/${id}`, ...(sloMs && { sloMs }) });
  return { task, workload: id, soloMs, startMs: 0 };
}

/** Degradations that are said to be of this size between any two. */
const says = (degradation: number): DegradationModel => ({ term: () => degradation });

function policyOf(choice: PolicyChoice, model: DegradationModel, seen: (readonly WorkloadState[])[] = []): Policy {
  const made = makePolicy(choice, {
    predictorOf: () => dividedSms,
    degradationsOf: () => model,
    random: seededRandom(1),
    admission: 'refuse',
  });
  return {
    ...made,
    decide(view, event) {
      if (view.workloads) seen.push(view.workloads);
      return made.decide(view, event);
    },
  };
}

function run(jobs: readonly ReplayJob[], policy: Policy, workloads: readonly SimulatedWorkload[], gpus = 1): ReplayRun {
  const cluster = alike({ gpus, type: 't', mode: 'mps', memoryMiB: 10_000, movesShares: true, perNode: 8 });
  return replay(jobs, { ...cluster, workloads }, turns, policy, seededRandom(1));
}

describe('a training job in replay', () => {
  test('slows functions down, is slowed down by them, and holds its memory', () => {
    const jobs = [job('a', 500), job('b', 500, 500)];
    const found = run(jobs, policyOf('random', says(0)), [training('gpu0')]);
    // Both at half speed, then three in turns until a has ended, and the last one beside the training alone.
    expect(found.finished.map(({ finishedAt }) => Math.round(finishedAt))).toEqual([1250, 1750]);
    expect(found.workloads[0]?.progressMs).toBeCloseTo(750);
    expect(found.workloads[0]?.seconds[0]?.degradation).toBeCloseTo(1 / (0.25 + 0.5 / 3) - 1);
    const large = { ...job('c', 10), task: { ...job('c', 10).task, memoryMiB: 7000 } };
    expect(() => run([large], policyOf('random', says(0)), [training('gpu0')])).toThrow('waiting for ever');
  });

  test('reports each second, and policies see its degradation and state', () => {
    const seen: (readonly WorkloadState[])[] = [];
    run([job('a', 2000), job('b', 1, 1500), job('c', 1, 3900)], policyOf('random', says(0), seen), [training('gpu0')]);
    expect(seen[0]?.[0]).toMatchObject({ device: 'gpu0', baseline: 1, tolerated: 0.1 });
    expect(seen[0]?.[0]).not.toHaveProperty('rate');
    expect(seen[1]?.[0]).toMatchObject({ rate: 0.5, measured: 0.5, state: 'beyond-bound', reportedAt: 1000 });
  });

  test('has functions give way by the guard where the prediction was wrong', () => {
    const beyond = (choice: PolicyChoice): number[] => {
      const { workloads, stopped } = run([job('a', 5000)], policyOf(choice, says(0)), [training('gpu0')]);
      const seconds = workloads[0]?.seconds.filter(({ degradation }) => degradation > 0.1) ?? [];
      return [seconds.length, stopped.length];
    };
    // Turns are taken whatever the share is, so that holding back is not enough and the run is stopped.
    expect(beyond({ base: 'smore', preempt: 'none' })).toEqual([10, 0]);
    const [seconds, stopped] = beyond('smore');
    expect([seconds! <= 4, stopped]).toEqual([true, 1]);
  });
});

describe("policies of SMORE's comparison", () => {
  const gpuOf = (found: ReplayRun, id: string): string | undefined =>
    found.finished.find(({ job: { task } }) => task.id === id)?.gpu;

  test('edf-util goes by the use of the training job and the function together', () => {
    const workloads = [
      training('gpu0', { features: { smUtil: 0.7 } }),
      training('gpu1', { features: { smUtil: 0.6 } }),
    ];
    const found = run([job('a', 10), job('b', 10)], policyOf('edf-util', says(0)), workloads, 2);
    expect(['a', 'b'].map((id) => gpuOf(found, id))).toEqual(['gpu1', 'gpu1']);
    const none = run([job('a', 10, 0, 100)], policyOf('edf-util', says(0)), workloads.slice(0, 1));
    expect(none.refused).toEqual(['a']);
  });

  test('edf-degradation keeps bounds, and takes the earliest deadline first', () => {
    const refused = run([job('a', 10, 0, 100)], policyOf('edf-degradation', says(0.2)), [training('gpu0')]);
    expect(refused.refused).toEqual(['a']);
    // One at a time: two together would be beyond the bound.
    const jobs = [job('a', 10, 0, 1000), job('b', 10, 0, 500)];
    const found = run(jobs, policyOf('edf-degradation', says(0.08)), [training('gpu0')]);
    expect(found.finished.map(({ job: { task } }) => task.id)).toEqual(['b', 'a']);
  });

  test('random spreads over all GPUs, workloads or not', () => {
    const jobs = Array.from({ length: 40 }, (_, at) => job(`j${at}`, 10, 100 * at));
    const found = run(jobs, policyOf('random', says(9)), [training('gpu0')], 3);
    expect(new Set(found.finished.map(({ gpu }) => gpu)).size).toBe(3);
  });
});

function entry(name: string, kind: CatalogueEntry['class'], use: number, unitMs: number): CatalogueEntry {
  const stretch = stretchTable((share) => Math.max(1, use / share));
  return {
    ...{ name, class: kind, batch: 1, unitMs, memoryMiB: 500 },
    model: { name, stretch, saturation: use, l2Util: use / 4, dramUtil: use / 2, powerW: 100 * use },
    sources: { unitMs: '', memoryMiB: '', stretch: '', traffic: '' },
  };
}

describe('the truth of training beside inference', () => {
  const functions = Array.from({ length: 12 }, (_, at) => entry(`f-${at}`, 'inference', 0.1 + at / 20, 20 + at));
  const trainings = Array.from({ length: 12 }, (_, at) => entry(`t-${at}`, 'training', 0.1 + at / 20, 100));
  const entries = new Map([...functions, ...trainings].map((one) => [one.name, one]));
  const parameters: CoLocationParameters = {
    functions: {
      contention: { base: 0.01, perL2: 0.1, perDram: 0.1 },
      power: { idleW: 50, capW: 300, baseMhz: 1500, mhzPerW: 1 },
      noise: 0.02,
    },
    functionDeviation: 0.02,
    training: { base: 0.01, perUse: 0.05, perDram: 0.1, deviation: 0.05 },
  };
  const truth = coLocationTruth(parameters, entries, 1);

  test('nothing is slowed down alone, and more by more', () => {
    const slowdown = (...names: string[]): number =>
      truth.slowdowns(['t-2', ...names].map((workload) => ({ workload, share: 1 })))[0] ?? NaN;
    expect(slowdown()).toBe(1);
    expect(slowdown('f-0')).toBeGreaterThanOrEqual(1);
    expect(slowdown('f-11', 'f-10', 'f-9')).toBeGreaterThan(slowdown('f-0'));
  });

  test('a function on a slice alone takes as long as at its part of the SMs, and no slice is another GPU', () => {
    const ofSlices = sliceTruth(parameters, entries, 1);
    const alone = (workload: string): number | undefined =>
      ofSlices.slowdowns([{ workload, share: 0.1 }], { gpuType: 'a100-40:2g.10gb', mode: 'mig' })[0];
    // f-8 uses half of the GPU's SMs, and the slice has two sevenths of them.
    expect(alone('f-8')).toBeCloseTo(0.5 / (2 / 7), 1);
    expect([alone('f-0'), alone('t-8')]).toEqual([1, 1]);
    expect(() => ofSlices.used([], { gpuType: 'a100-40', mode: 'mig' })).toThrow('no slice');
  });

  test('the fit of training finds the coefficients of pairs that follow the model', () => {
    const pairs = trainings.flatMap((a) =>
      trainings.map((b) => {
        const beside = (victim: CatalogueEntry, other: CatalogueEntry): number =>
          Math.max(1, 1 + 0.02 + 0.1 * other.model.saturation + 0.2 * other.model.dramUtil) * (victim.unitMs / 100);
        return { a: a.name, b: b.name, slowdownA: beside(a, b), slowdownB: beside(b, a) };
      }),
    );
    // Together they use less than the GPU.
    const fitted = fitTraining(
      pairs.filter(({ a, b }) => [a, b].every((name) => (entries.get(name)?.model.saturation ?? 1) < 0.5)),
      entries,
    );
    // Traffic is half of the use here, so that only their sum is determined.
    expect([fitted.base, fitted.perUse + fitted.perDram / 2, fitted.deviation].map((one) => one.toFixed(4))).toEqual([
      ...['0.0200', '0.2000', '0.0000'],
    ]);
  });

  test('a replay is the same for the same seed, and smore keeps training better than random', () => {
    const world: World = {
      functions,
      trainings,
      draws: [{ truth, learned: learn(functions, trainings, truth, seededRandom(1)) }],
      minutes: [1, 3, 0, 2, 5, 1, 1, 4],
    };
    const experiment = { places: sharedGpus(2, ['t-2', 't-4']), requests: { perMinute: 2400, seconds: 4 } };
    const metrics = (policy: string): ReturnType<typeof runCoLocation>['metrics'] =>
      runCoLocation(world, experiment, { policy }, 1).metrics;
    const smore = metrics('smore');
    expect(metrics('smore')).toEqual(smore);
    const random = metrics('random');
    expect(smore.sfd).toBeLessThan(random.sfd);
    expect(random.admitted).toBe(1);
    expect(smore.gui).toBeGreaterThan(0);
  });
});

test('tables hold what was measured, and say what was not', () => {
  expect(smoreTable(undefined, 'comparison')).toContain('not measured');
  const metrics = { 'compare.smore.dsr': 0.7, 'compare.smore.dsrLow': 0.65, 'compare.smore.dsrHigh': 0.75 };
  expect(smoreTable(metrics, 'comparison')).toContain(
    '| `smore` | SMORE | 70.0 % (65.0 to 75.0) | 65.0 % | not measured',
  );
  expect(() => smoreTable(undefined, 'none')).toThrow("no table 'none'");
});
