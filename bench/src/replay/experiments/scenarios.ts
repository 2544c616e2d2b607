import { baselines } from '@gpuwhisk/gpu/policies/registry';
import { poisson, type Arrivals } from '../jobs.js';
import { saturationOf, stretchTable } from '../model/gpu-model.js';
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
import { sloFactor, invented } from '../workloads/catalogue.js';
import type { CatalogueEntry } from '../workloads/catalogue.js';

/** FaaShare's testbed and trace (section IX-A). */
export const paperGpus = 16;
export const paperJobs = 120;
const meanInterarrivalMs = 30_000;
/** Low, medium and high load as fractions of the saturation rate. */
export const loads = { low: 0.25, medium: 0.6, high: 0.9 } as const;

/** Time of an injection into a warm process (FaaShare, figure 8). */
const injectionMs = 12;
/** Time of loading PyTorch and cuDNN, which injection saves (FaaShare, figure 8). */
export const coldStartMs = 1800;

/** Enough jobs that the beginning and end of a batch do not matter. */
const saturatingJobs = 240;
const saturationSeeds = 2;

/** A scenario in which all jobs arrive at the start. */
export function closed(gpus: number, jobs: number, length: number, startMs = injectionMs): Scenario {
  return { gpus, jobs, length, startMs, sloFactor };
}

/** A scenario in which jobs arrive at `load` times `saturationPerMs`. */
export function open(
  gpus: number,
  length: number,
  load: number,
  saturationPerMs: number,
  arrivals: Arrivals = poisson,
  startMs = injectionMs,
): Scenario {
  return { ...closed(gpus, paperJobs, length, startMs), open: { arrivals, ratePerMs: load * saturationPerMs } };
}

/** Jobs a ms that `mps-equal` ends while its queue is never empty; the loads of all policies refer to this rate. */
export function saturationRate(setting: Setting, known: readonly Known[], gpus: number, length: number): number {
  const scenario = closed(gpus, saturatingJobs, length);
  const rates = Array.from({ length: saturationSeeds }, (_, i) => {
    const { makespanMs } = runSeed(setting, known, scenario, named('mps-equal'), i + 1).metrics;
    return saturatingJobs / makespanMs;
  });
  return rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
}

/**
 * The factor that stretches all jobs. With it, the paper's mean time between arrivals (30 s) is the medium load of its
 * 16 GPUs.
 */
export function lengthFactor(setting: Setting, known: readonly Known[]): number {
  const perMs = saturationRate(setting, known, paperGpus, 1);
  return Math.max(1, Math.round(perMs * loads.medium * meanInterarrivalMs));
}

/** The policy whose gains are reported. */
export const oursName = 'faashare';

/** FaaShare and every baseline. */
export function allPolicies(): Map<string, PolicyMaker> {
  return new Map([
    [oursName, ours],
    ...Object.keys(baselines).map((name): [string, PolicyMaker] => [name, named(name)]),
  ]);
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
