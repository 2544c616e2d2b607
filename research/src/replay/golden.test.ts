// Replays of every policy in a synthetic world, kept as digests with the figures that explain a difference.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import type { Random } from '@gpuwhisk/common/system/random';
import { makePolicy } from '@gpuwhisk/gpu/policies/make-policy';
import { policies } from '@gpuwhisk/gpu/policies/registry';
import { dividedSms, profiledTask } from '@gpuwhisk/gpu/testing/fixtures';
import type { WorkloadFeatures } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import { alike, type AlikeGpus } from '@gpuwhisk/bench/replay/alike';
import { replay } from '@gpuwhisk/gpu/simulate/replay';
import type { ReplayJob, GpuTruth } from '@gpuwhisk/gpu/simulate/replay';
import '../baselines/register.js';

/** Closed and open arrivals, each with kept instances and without. */
const seeds = Array.from({ length: 6 }, (_, at) => at + 1);
const jobs = 60;
const startMs = 20;
const functions: readonly { name: string; soloMs: number; smUtil: number; memoryMiB: number }[] = [
  { name: '/a/short', soloMs: 40, smUtil: 0.2, memoryMiB: 1500 },
  { name: '/a/middle', soloMs: 200, smUtil: 0.45, memoryMiB: 3000 },
  { name: '/b/wide', soloMs: 300, smUtil: 0.95, memoryMiB: 2000 },
  { name: '/b/long', soloMs: 2500, smUtil: 0.6, memoryMiB: 7000 },
];

/** The true world. Policies predict by `dividedSms`; here bandwidth adds up to a sixth to that. */
const truth: GpuTruth = {
  noise: 0.1,
  used: (clients) =>
    Math.min(
      1,
      clients.reduce((sum, { workload, share }) => sum + Math.min(share, smOf(workload)), 0),
    ),
  slowdowns(clients) {
    const located = clients.map(({ workload, share }) => ({ features: featuresOf(workload), share }));
    return Float64Array.from(located, (one, at) => {
      const others = located.filter((_, other) => other !== at);
      const bandwidth = others.reduce((sum, { features }) => sum + (features.dramUtil ?? 0), 0);
      return dividedSms.slowdown(one, others) * (1 + bandwidth / 6);
    });
  },
};

function smOf(workload: string): number {
  return functions.find(({ name }) => name === workload)?.smUtil ?? NaN;
}

function featuresOf(workload: string): WorkloadFeatures {
  const smUtil = smOf(workload);
  return { smUtil, dramUtil: smUtil / 2, l2Util: 0.1 };
}

function drawJobs(random: Random, isOpen: boolean): ReplayJob[] {
  let at = 0;
  return Array.from({ length: jobs }, (_, index) => {
    if (isOpen) at += -90 * Math.log(1 - randomFraction(random));
    const drawn = functions[random.uint32() % functions.length];
    if (drawn === undefined) throw new Error('there is no function');
    const { name, soloMs, smUtil, memoryMiB } = drawn;
    const [, namespace = ''] = name.split('/');
    const strict = randomFraction(random) < 0.5 ? { sloMs: soloMs * (2 + (random.uint32() % 6)) } : {};
    const task = profiledTask(`t${index}`, soloMs, smUtil, {
      function: name,
      namespace,
      memoryMiB,
      startMs,
      arrivedAt: at,
      ...strict,
    });
    return { task, workload: name, soloMs, startMs };
  });
}

function resultOf(name: string, seed: number): string {
  const policy = makePolicy(name, {
    predictorOf: () => dividedSms,
    random: seededRandom(seed),
    admission: 'best-effort',
  });
  const cluster: AlikeGpus = {
    gpus: 4,
    type: 't',
    mode: 'mps',
    memoryMiB: 10_000,
    perNode: 2,
    ...(seed % 3 === 0 && { kept: { warmMs: 2, initial: [] } }),
  };
  const given = drawJobs(seededRandom(seed), seed % 2 === 0);
  const { finished, totals } = replay(given, alike(cluster), truth, policy, seededRandom(seed + 2));
  const ends = finished.map(({ job, gpu, startedAt, finishedAt }) => [
    job.task.id,
    gpu,
    ...[startedAt, finishedAt].map((ms) => ms.toFixed(6)),
  ]);
  const digest = createHash('sha256').update(JSON.stringify(ends)).digest('hex').slice(0, 12);
  const meanMs = finished.reduce((sum, { job, finishedAt }) => sum + finishedAt - job.task.arrivedAt, 0) / jobs;
  return `${digest}, mean ${meanMs.toFixed(1)} ms, all ${totals.elapsedMs.toFixed(1)} ms`;
}

const found = Object.fromEntries(
  Object.keys(policies).map((name) => [name, Object.fromEntries(seeds.map((seed) => [seed, resultOf(name, seed)]))]),
);

const kept = new URL('../../src/replay/golden-replays.json', import.meta.url);

test('every policy gives the recorded results', () => {
  // For changes that are meant to change results; their commit message gives the reason.
  if (process.env['GOLDEN_UPDATE'] === '1') writeFileSync(kept, `${JSON.stringify(found, undefined, 2)}\n`);
  expect(found).toEqual(JSON.parse(readFileSync(kept, 'utf8')));
});
