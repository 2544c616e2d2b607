// Functions of a run, and what a platform knows of them from earlier runs.
import { randomFraction, shuffled, type Random } from '@gpuwhisk/common/system/random';
import { diluProfiler } from '@gpuwhisk/gpu/algorithms/dilu/profile';
import { normal, type GpuTruth } from '@gpuwhisk/gpu/simulate/replay';
import type { Trial } from '@gpuwhisk/gpu/stages/profile/trials';
import type { ProfiledShares, Task } from '@gpuwhisk/gpu/view/view';
import type { FeatureRecord, WorkloadFeatures } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import { readTable } from '@gpuwhisk/bench/data/csv';
import { median } from '@gpuwhisk/bench/statistics';
import type { Mode } from '../world/sets.js';
import type { Scenario } from './scenario.js';
import type { Candidate, MeasuredWorld } from './worlds.js';
import { shareGrid } from './world-truth.js';

/** How long Azure's functions take, and how much the runs of one differ. */
export interface Durations {
  /** Mean durations, ms, rising. */
  meansMs: readonly number[];
  /** Standard deviations of the logarithm of a function's durations. */
  spreads: readonly number[];
}

/** Invocations of a function from which its spread is taken, at least. */
const leastInvocations = 3;

/** Reads the Azure traces of 2019 (means) and 2021 (spreads). Throws BenchDataError. */
export async function readDurations(folder: string): Promise<Durations> {
  const [means, invocations] = await Promise.all([
    readTable('traces/azure2019_functions_day7.csv', { avg_duration_ms: 'number' }, folder),
    readTable('traces/azure2021_invocations_sample.csv', { duration_s: 'number', function: 'text' }, folder),
  ]);
  const byFunction = new Map<string, number[]>();
  for (const { function: name, duration_s: seconds } of invocations)
    if (seconds > 0) byFunction.set(name, [...(byFunction.get(name) ?? []), Math.log(seconds)]);
  const spreads = [...byFunction.values()].flatMap((logs) => {
    if (logs.length < leastInvocations) return [];
    const mean = logs.reduce((sum, log) => sum + log, 0) / logs.length;
    return [Math.sqrt(logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / (logs.length - 1))];
  });
  const meansMs = means.map((row) => row.avg_duration_ms).filter((ms) => ms > 0);
  return { meansMs: meansMs.sort((a, b) => a - b), spreads };
}

/** A function of a run. */
export interface RunFunction {
  candidate: Candidate;
  /** Median time alone on the whole device, ms, and the standard deviation of its logarithm. */
  medianMs: number;
  spread: number;
  /** Its weight among requests. */
  weight: number;
  /** What all its tasks have in common. */
  task: Omit<Task, 'id' | 'arrivedAt'>;
}

/** What one look at a workload alone has shown. */
export interface Observed {
  features: WorkloadFeatures;
  record: FeatureRecord;
}

/** Runs of a function before a replay, whose median policies know. */
const pastRuns = 5;

/**
 * Features of a workload as a platform measures them alone: the least share at which it is about as fast as on the whole device (its
 * share curve, with the noise of each run; all of it where shares have no effect), and the bandwidth that its counters show.
 */
export function observed(
  { mode }: Pick<MeasuredWorld, 'mode'>,
  { workload, memoryUtil, memoryMiB, batch, stepMs }: Candidate,
  truth: GpuTruth,
  random: Random,
): Observed {
  const noisy = (value: number): number => value * Math.exp(truth.noise * normal(random));
  const wholeMs = noisy(1);
  const shares = hasShares(mode) ? shareGrid : [];
  const fill = shares.find((share) => noisy(slowdownAlone(truth, workload, share)) <= fills * wholeMs) ?? 1;
  const dramUtil = memoryUtil === undefined ? undefined : Math.min(1, noisy(memoryUtil));
  const features = { smUtil: fill, ...(dramUtil !== undefined && { dramUtil }) };
  return { features, record: { ...features, memoryMiB, batch, soloMs: noisy(stepMs) } };
}

/** Whether a share of the SMs has an effect in a mode. */
const hasShares = (mode: Mode): boolean => mode === 'mps' || mode === 'mig';

/** A time at a share up to this factor of the whole device's fills what the workload can use. */
const fills = 1.1;

function slowdownAlone(truth: GpuTruth, workload: string, share: number): number {
  return truth.slowdowns([{ workload, share }])[0] ?? 1;
}

/** Dilu's profile: trials alone at shares, each with the noise of a run. None where shares have no effect or a trial fails. */
function profiledShares(
  world: MeasuredWorld,
  { workload }: Candidate,
  medianMs: number,
  sloMs: number | undefined,
  truth: GpuTruth,
  random: Random,
): ProfiledShares | undefined {
  if (!hasShares(world.mode)) return undefined;
  const trials: Trial[] = [];
  const space = { batches: [1], shares: shareGrid.map((share) => Math.round(100 * share)) };
  for (;;) {
    const step = diluProfiler(sloMs === undefined ? {} : { sloMs }, space, trials);
    if ('failed' in step) return undefined;
    if ('profile' in step) {
      const { request, limit, batch, ms, limitMs } = step.profile;
      const kind = { gpuType: world.gpuType, mode: world.seenAs };
      return { ...kind, request, limit, batch, ms, ...(limitMs !== undefined && { limitMs }) };
    }
    const { batch, share } = step.next;
    const ms = medianMs * slowdownAlone(truth, workload, share / 100) * Math.exp(truth.noise * normal(random));
    trials.push({ batch, share, ms });
  }
}

/** The quantile `at` (0 to 1) of rising values. */
const quantile = (values: readonly number[], at: number): number =>
  values[Math.min(values.length - 1, Math.floor(at * values.length))] as number;

/**
 * Draws the functions of a run, and the candidates that are left, from which platforms may have learned. Popularity falls as 1 / rank.
 * Throws RangeError where the world has too few workloads.
 */
export function drawFunctions(
  scenario: Scenario,
  world: MeasuredWorld,
  durations: Durations,
  truth: GpuTruth,
  random: Random,
): { functions: RunFunction[]; trainings: Candidate[]; others: Candidate[] } {
  const order = shuffled(world.candidates, random);
  const trainings = scenario.trainings === 0 ? [] : order.filter(({ task }) => task === 'training');
  const residents = trainings.slice(0, Math.min(scenario.trainings, trainings.length - 1));
  if (scenario.trainings > 0 && residents.length === 0)
    throw new RangeError(`world ${world.name} has too few training jobs for scenario ${scenario.name}`);
  const free = order.filter((one) => !residents.includes(one));
  const count = Math.min(scenario.functions, free.length - leastOthers);
  if (count < 1) throw new RangeError(`world ${world.name} has too few workloads for scenario ${scenario.name}`);
  const [least, greatest] = scenario.lengthMs;
  const within = durations.meansMs.filter((ms) => ms >= least && ms <= greatest);
  if (within.length === 0) throw new RangeError(`no function of Azure takes ${least} to ${greatest} ms`);
  const functions = free.slice(0, count).map((candidate, at): RunFunction => {
    const steps = Math.max(1, Math.round(quantile(within, randomFraction(random)) / candidate.stepMs));
    const medianMs = steps * candidate.stepMs;
    const spread = quantile(durations.spreads, randomFraction(random));
    const past = Array.from(
      { length: pastRuns },
      () => medianMs * Math.exp(Math.hypot(spread, truth.noise) * normal(random)),
    );
    const { features, record } = observed(world, candidate, truth, random);
    const [low, high] = scenario.sloFactor;
    const sloMs = medianMs * (low + (high - low) * randomFraction(random));
    // Every k-th one, so that popular and rare functions are strict alike.
    const isStrict = Math.floor((at + 1) * scenario.strictPart) > Math.floor(at * scenario.strictPart);
    const shares = profiledShares(world, candidate, medianMs, isStrict ? sloMs : undefined, truth, random);
    return {
      ...{ candidate, medianMs, spread, weight: 1 / (at + 1) },
      task: {
        ...{
          function: `/n${at % scenario.namespaces}/f${at}`,
          version: '0.0.1',
          namespace: `n${at % scenario.namespaces}`,
        },
        ...{ batch: 1, gpus: 1, memoryMiB: candidate.memoryMiB, soloMs: median(past), features, featureRecord: record },
        ...(shares && { profiledShares: [shares] }),
        ...(isStrict && { sloMs }),
        class: 'inference',
      },
    };
  });
  return { functions, trainings: residents, others: free.slice(count) };
}

/** Workloads that no function of a run has, to learn from. */
const leastOthers = 6;
