import { seededRandom } from '@gpuwhisk/common/system/random';
import type { ReplayJob } from '@gpuwhisk/gpu/simulate/replay';
import { poisson, drawJobs } from '../replay/jobs.js';
import type { Profile } from '../replay/jobs.js';
import { sloFactor } from '../replay/workloads/catalogue.js';
import type { LiveEntry } from './catalogue.js';

/** Parameters of a trace. */
export interface TraceSettings {
  jobs: number;
  gpus: number;
  /** Offered work as a fraction of the GPUs' capacity at one job at a time. */
  load: number;
  /** From the first to the last arrival, on average, ms. */
  spanMs: number;
}

/** Batches or iterations of each job, so that the arrivals take `spanMs` on average at the load. */
export function lengthOf({ jobs, gpus, load, spanMs }: TraceSettings, catalogue: readonly LiveEntry[]): number {
  const meanMs = (entries: readonly LiveEntry[]): number =>
    entries.reduce((sum, { unitMs }) => sum + unitMs, 0) / entries.length;
  const meanUnitMs = (meanMs(strictOf(catalogue)) + meanMs(bestEffortOf(catalogue))) / 2;
  return Math.max(1, Math.round((load * gpus * spanMs) / jobs / meanUnitMs));
}

const strictOf = (catalogue: readonly LiveEntry[]): LiveEntry[] => catalogue.filter(({ isTraining }) => !isTraining);
const bestEffortOf = (catalogue: readonly LiveEntry[]): LiveEntry[] => catalogue.filter(({ isTraining }) => isTraining);

/**
 * Jobs of a Poisson process: half inference with an SLO of four times the solo time, half training. `startMs`: expected
 * time of a start.
 */
export function traceOf(
  settings: TraceSettings,
  catalogue: readonly LiveEntry[],
  startMs: number,
  seed: number,
): ReplayJob[] {
  const random = seededRandom(seed);
  const meanMs = settings.spanMs / settings.jobs;
  const times = poisson(settings.jobs, random).map((at) => at * meanMs);
  const mix = {
    strict: strictOf(catalogue),
    bestEffort: bestEffortOf(catalogue),
    sloFactor,
    length: lengthOf(settings, catalogue),
    startMs,
  };
  // The platform runs each request by itself, whatever batch its function computes.
  return drawJobs(mix, times, profilesOf(catalogue), random).map((job) => ({
    ...job,
    task: { ...job.task, batch: 1 },
  }));
}

/** The profile of each workload as the platform has it: its time and its fill. Use of DRAM and L2 is unknown. */
function profilesOf(catalogue: readonly LiveEntry[]): Map<string, Profile> {
  return new Map(catalogue.map(({ name, model }) => [name, { soloFactor: 1, features: { smUtil: model.saturation } }]));
}
