// Every baseline runs in the simulator, on whole GPUs under MPS and on slices, with training jobs and without.
import { describe, expect, test } from '@jest/globals';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import { makePolicy } from '@gpuwhisk/gpu/policies/make-policy';
import { replay } from '@gpuwhisk/gpu/simulate/replay';
import type { GpuTruth, ReplayJob, SimulatedCluster } from '@gpuwhisk/gpu/simulate/replay';
import { dividedSms, profiledTask } from '@gpuwhisk/gpu/testing/fixtures';
import { baselines } from './register.js';

/** Tasks on a GPU take turns beyond the first two. */
const truth: GpuTruth = {
  noise: 0.05,
  slowdowns: (clients) => new Float64Array(clients.length).fill(Math.max(1, clients.length / 2)),
  used: (clients) => Math.min(1, clients.length / 2),
};

/** More work than the GPUs can do at once: functions with an SLO and without, short and long ones, some that no profile is known of. */
function drawnJobs(count: number): ReplayJob[] {
  const random = seededRandom(11);
  return Array.from({ length: count }, (_, at): ReplayJob => {
    const kind = at % 6;
    const soloMs = 50 * (1 + kind) ** 2;
    const task = profiledTask(`t${at}`, soloMs, 0.2 * (1 + (kind % 5)), {
      function: `/a/f${kind}`,
      memoryMiB: 1500 * (1 + (kind % 3)),
      arrivedAt: Math.round(randomFraction(random) * 12_000),
      ...(kind % 2 === 0 && { sloMs: 5 * soloMs }),
    });
    if (kind === 5) for (const known of ['soloMs', 'features'] as const) delete task[known];
    return { task, workload: task.function, soloMs, startMs: 20 };
  });
}

const whole = ['g0', 'g1'].map((id) => ({ id, node: 'n', type: 't', mode: 'mps' as const, memoryMiB: 16_000 }));
const sliced = ['d0', 'd1'].map((id) => {
  return { id, node: 'n', type: 'a100-40', mode: 'mig' as const, memoryMiB: 38_000, profiles: ['4g.20gb', '3g.20gb'] };
});
const training = {
  ...{ id: 'training', gpu: 'g0', workload: 'training', memoryMiB: 4000, tolerated: 0.5, baseline: 1, noise: 0.01 },
  features: { smUtil: 0.3, dramUtil: 0.1, l2Util: 0.1 },
};

describe.each(baselines)('%s', (name) => {
  test.each<[string, SimulatedCluster]>([
    ['under MPS', { places: whole }],
    ['with processes that stay', { places: whole, warmMs: 1 }],
    ['beside a training job', { places: whole, workloads: [training] }],
    ['on slices', { places: sliced, warmMs: 1 }],
  ])('ends all that comes %s', (_, cluster) => {
    const jobs = drawnJobs(120);
    const policy = makePolicy(name, {
      predictorOf: () => dividedSms,
      random: seededRandom(1),
      admission: 'best-effort',
    });
    const run = replay(jobs, cluster, truth, policy, seededRandom(2));
    expect([run.finished.length, run.refused, run.stopped]).toEqual([jobs.length, [], []]);
  });
});
