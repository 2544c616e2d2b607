/* eslint-disable @typescript-eslint/no-non-null-assertion -- profiles have solo times and are not empty, drawn sets have two workloads or more, and starts name waiting tasks. */
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import type { Random } from '@gpuwhisk/common/system/random';
import { makePolicy } from '@gpuwhisk/gpu/policies/make-policy';
import type { Policy } from '@gpuwhisk/gpu/policies/policy';
import { dividedSms, gpuOf, profiledTask } from '@gpuwhisk/gpu/testing/fixtures';
import { viewOf } from '@gpuwhisk/gpu/testing/views';
import { predictForest, trainForest } from '@gpuwhisk/gpu/predict/forest';
import { faashareFeatures } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { CoLocated, SlowdownPredictor } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { ReportedPlace } from '@gpuwhisk/gpu/simulate/node-rows';
import type { RunningTask, View, Task } from '@gpuwhisk/gpu/view/view';
import { medianOf, type BenchContext, type Measurement } from '../bench.js';
import type { Bench } from '../bench.js';
import { measureFairness } from './order-fairness.js';

const parts = { time: measureTimes, fairness: measureFairness } as const;

/** FaaShare's spatio-temporal queue: time of its decisions, and effect of a flooding namespace on the others. */
export const order: Bench = {
  summary: "FaaShare's queue: time of decisions, fairness between namespaces",
  parts: Object.keys(parts),
  run(context) {
    const chosen = context.options.parts.length > 0 ? context.options.parts : Object.keys(parts);
    return Promise.resolve(
      Object.entries(parts).flatMap(([name, measure]) => (chosen.includes(name) ? measure(context) : [])),
    );
  },
};

const gpuCount = 16;
const gpuMemoryMiB = 24_000;
const profileCount = 48;
const jobs = 120;
/** Decisions before timing, as a platform makes in its first minute; until then the engine compiles. */
const warmUps = 300;
const rounds = 200;
const samples = 1000;

const between = (random: Random, low: number, high: number): number => low + randomFraction(random) * (high - low);

const profiles = drawProfiles(seededRandom(1));

/** Jobs as in FaaShare's table I: half with an SLO of four times their solo time, half best effort. */
function drawJobs(random: Random, count: number, at: number): Task[] {
  return Array.from({ length: count }, (_, index) => {
    const profile = profiles[random.uint32() % profiles.length]!;
    const isStrict = index % 2 === 0;
    return { ...profile, id: `job ${index}`, arrivedAt: at, ...(isStrict && { sloMs: 4 * profile.soloMs! }) };
  });
}

function drawProfiles(random: Random): Task[] {
  return Array.from({ length: profileCount }, (_, index) =>
    profiledTask('', between(random, 20, 4000), between(random, 0.05, 1), {
      function: `/bench/f${index}`,
      memoryMiB: Math.round(between(random, 500, 9000)),
    }),
  );
}

/** A forest of the paper's size, trained on a thousand sets of an invented world; only its cost matters here. */
function forestPredictor(): SlowdownPredictor {
  const random = seededRandom(2);
  const draw = (): CoLocated => {
    const features = {
      smUtil: between(random, 0.05, 1),
      dramUtil: between(random, 0, 1),
      l2Util: between(random, 0, 1),
    };
    return { features, share: (1 + (random.uint32() % 10)) / 10 };
  };
  const sets = Array.from({ length: samples }, () => Array.from({ length: 2 + (random.uint32() % 9) }, draw));
  const rows = sets.map(([one, ...others]) => faashareFeatures(one!, others));
  const targets = sets.map(([one, ...others]) => dividedSms.slowdown(one!, others) * between(random, 0.95, 1.05));
  const forest = trainForest(rows, targets, {
    ...{ trees: 100, maxDepth: 12, minLeaf: 1, featureFraction: 1, bootstrap: true, thresholds: 'best', seed: 3 },
  });
  return { slowdown: (one, others) => predictForest(forest, faashareFeatures(one, others)) };
}

const emptyGpus = (): ReportedPlace[] =>
  Array.from({ length: gpuCount }, (_, at) => gpuOf(`g${at}`, { node: `n${at >> 3}`, memoryMiB: gpuMemoryMiB }));

/** The state of a busy cluster: tasks of 120 jobs that run, and those that wait. */
function atWork(policy: Policy, random: Random): View {
  const waiting = drawJobs(random, jobs, 0);
  const { starts } = policy.decide(viewOf({ gpus: emptyGpus(), waiting }), { kind: 'timer' });
  const byId = new Map(waiting.map((task) => [task.id, task]));
  const gpus = emptyGpus().map((gpu): ReportedPlace => {
    const here = starts.filter((start) => start.gpu === gpu.id);
    const running = here.map(({ task, share }): RunningTask => ({ task: byId.get(task)!, share, startedAt: 0 }));
    // A third of the tasks has ended since.
    return { ...gpu, running: running.filter(() => random.uint32() % 3 > 0) };
  });
  const started = new Set(starts.map(({ task }) => task));
  return viewOf({ at: 10, gpus, waiting: waiting.filter(({ id }) => !started.has(id)) });
}

/**
 * `order120Ms`: one decision about 120 jobs on 16 empty GPUs. `arrivalUs`: one decision about one more job on a busy
 * cluster. Each round draws new jobs from 48 functions; the policy has made decisions before.
 */
function measureTimes({ say }: BenchContext): Measurement[] {
  const predictor = forestPredictor();
  const random = seededRandom(4);
  const policy = makePolicy('faashare', { predictorOf: () => predictor, admission: 'best-effort', random });
  const orderMs: number[] = [];
  const arrivalUs: number[] = [];
  let started = 0;
  for (let round = 0; round < warmUps + rounds; round += 1) {
    const snapshot = viewOf({ gpus: emptyGpus(), waiting: drawJobs(random, jobs, 0) });
    const start = performance.now();
    started += policy.decide(snapshot, { kind: 'timer' }).starts.length;
    const tookMs = performance.now() - start;
    const busy = atWork(policy, random);
    const newcomer = { ...drawJobs(random, 1, busy.at)[0]!, id: 'newcomer' };
    const arrival = { ...busy, waiting: [...busy.waiting, newcomer] };
    const from = performance.now();
    policy.decide(arrival, { kind: 'arrival', task: 'newcomer' });
    const tookUs = (performance.now() - from) * 1000;
    if (round < warmUps) continue;
    orderMs.push(tookMs);
    arrivalUs.push(tookUs);
  }
  say(`  ${Math.round(started / (warmUps + rounds))} of ${jobs} jobs start at once`);
  return [medianOf('order120Ms', orderMs), medianOf('arrivalUs', arrivalUs)];
}
