import { poisson, type Arrivals } from '@gpuwhisk/bench/replay/jobs';
import { saturationOf, stretchTable } from '@gpuwhisk/bench/replay/model/gpu-model';
import {
  named,
  runSeed,
  type Known,
  type Scenario,
  type Setting,
  ours,
  oursWithoutQuotas,
  type PolicyMaker,
} from '../setting.js';
import { faashareBaselines } from '../../baselines/register.js';
import { injectionMs } from '../starts.js';
import { invented } from '@gpuwhisk/bench/replay/workloads/catalogue';
import type { CatalogueEntry } from '@gpuwhisk/bench/replay/workloads/catalogue';

/** FaaShare's testbed and trace (section IX-A). */
export const paperGpus = 16;
export const paperJobs = 120;
const meanInterarrivalMs = 30_000;
/** Loads as fractions of the steady rate of `mps-equal`. */
export const loads = { low: 0.25, medium: 0.6, high: 0.9, full: 1, over: 1.25 } as const;
/** SLO over solo time: drawn for each job between these, independently of its length. */
export const sloFactors = [2, 8] as const;

/**
 * Jobs of the run that gives the steady rate, for each job of a scenario of at most the paper's number, and the part of their
 * ends that it is taken from.
 */
const steadyJobsEach = 5;
const steadyPart = { from: 0.1, to: 0.6 } as const;
const steadySeeds = 2;

/** A scenario in which all jobs arrive at the start. */
export function closed(gpus: number, jobs: number, length: number, startMs = injectionMs): Scenario {
  return { gpus, jobs, length, startMs, sloFactor: sloFactors };
}

/** `scenario` with arrivals at `load` times `steadyPerMs`. */
export function arriving(
  scenario: Scenario,
  load: number,
  steadyPerMs: number,
  arrivals: Arrivals = poisson,
): Scenario {
  return { ...scenario, open: { arrivals, ratePerMs: load * steadyPerMs } };
}

/** The paper's number of jobs, which arrive at `load` times `steadyPerMs`. */
export function open(
  gpus: number,
  length: number,
  load: number,
  steadyPerMs: number,
  arrivals: Arrivals = poisson,
): Scenario {
  return arriving(closed(gpus, paperJobs, length), load, steadyPerMs, arrivals);
}

/**
 * Jobs a ms that `mps-equal` ends between a tenth and six tenths of the ends of a long closed run: neither start nor drain
 * of the run counts. The loads of all policies refer to this rate.
 */
export function steadyRate(setting: Setting, known: readonly Known[], scenario: Scenario): number {
  const base = { ...scenario, jobs: steadyJobsEach * Math.min(scenario.jobs, paperJobs) };
  delete base.open;
  const rates = Array.from({ length: steadySeeds }, (_, i) => {
    const { run } = runSeed(setting, known, base, named('mps-equal'), i + 1);
    return rateBetween(
      run.finished.map(({ finishedAt }) => finishedAt),
      steadyPart.from,
      steadyPart.to,
    );
  });
  return rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
}

/** Events a unit of time between two fractions of their number. Throws RangeError where no time passes between them. */
export function rateBetween(times: readonly number[], from: number, to: number): number {
  const rising = [...times].sort((a, b) => a - b);
  const [first, last] = [from, to].map((part) => Math.floor((rising.length - 1) * part)) as [number, number];
  const elapsed = (rising[last] ?? NaN) - (rising[first] ?? NaN);
  if (!(elapsed > 0)) throw new RangeError('no time passes between the events');
  return (last - first) / elapsed;
}

/**
 * The factor that stretches all jobs. With it, the paper's mean time between arrivals (30 s) is the medium load of its
 * 16 GPUs. Starts do not count, as they are not stretched. `jobs`: of the scenarios.
 */
export function lengthFactor(setting: Setting, known: readonly Known[], jobs: number): number {
  const perMs = steadyRate(setting, known, closed(paperGpus, jobs, 1, 0));
  return Math.max(1, Math.round(perMs * loads.medium * meanInterarrivalMs));
}

/** The policy whose gains are reported. */
export const oursName = 'faashare';

/** FaaShare and every baseline. */
export function allPolicies(): Map<string, PolicyMaker> {
  return new Map([[oursName, ours], ...faashareBaselines.map((name): [string, PolicyMaker] => [name, named(name)])]);
}

/** FaaShare with parts left out, and its algorithm exactly as published. */
export function ablatedPolicies(): Map<string, PolicyMaker> {
  return new Map([
    [oursName, ours],
    ['without the optimiser', oursWithoutQuotas],
    ['without the queue: fcfs', named('fcfs')],
    ['to the letter', named('faashare-literal')],
  ]);
}

/** FaaShare and the orders of a queue that it is compared with (FaaShare, figures 2 and 18). */
export function queueOrders(): Map<string, PolicyMaker> {
  return new Map([
    [oursName, ours],
    ...['fcfs', 'time-priority', 'memory-priority'].map((name): [string, PolicyMaker] => [name, named(name)]),
  ]);
}

/**
 * An entry with every invented figure multiplied by `factor`: its memory (at most `mostMiB`), its saturation share and
 * its traffic.
 */
export function perturbed(entry: CatalogueEntry, factor: number, mostMiB: number): CatalogueEntry {
  const { sources, model } = entry;
  const isOurs = (source: string): boolean => source === invented;
  const saturation = Math.min(1, model.saturation * factor);
  const stretch = isOurs(sources.stretch) ? stretchTable((share) => Math.max(1, saturation / share)) : model.stretch;
  const traffic = isOurs(sources.traffic) ? factor : 1;
  return {
    ...entry,
    memoryMiB: isOurs(sources.memoryMiB) ? Math.min(mostMiB, Math.round(entry.memoryMiB * factor)) : entry.memoryMiB,
    model: {
      ...model,
      stretch,
      saturation: saturationOf(stretch),
      l2Util: Math.min(1, model.l2Util * traffic),
      dramUtil: Math.min(1, model.dramUtil * traffic),
    },
  };
}
