// Trials of functions for their request and limit, on idle GPUs (Dilu, section 3.2).
import { isApiError } from '@gpuwhisk/common/errors';
import { kindName, type GpuKind, type ShareClass } from '@gpuwhisk/common/gpu';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { executionMs } from '@gpuwhisk/gpu/stages/profile/trials';
import type { Trial, TrialPoint } from '@gpuwhisk/gpu/stages/profile/trials';
import type { SampledPlace } from '../scheduler/running-places.js';
import { BoundedCache } from '../../entities/bounded-cache.js';
import { nextStep } from '../learning/function-trials.js';
import type { ProfiledFunction, WantedFunction } from '../learning/function-trials.js';
import type { PerformanceData } from '../learning/performance-data.js';
import type { GpuTable } from '../state/gpu-table.js';
import type { MeasurementTarget, Sample, SampleMeasurements, SampleSource } from './sample-runner.js';

/** The kind of job that runs a function's trials. */
export const profilingKind = 'profiling';

/** A function to run trials of on a GPU. */
export interface ProfilingRequest extends GpuKind {
  key: string;
  gpu: string;
  function: string;
  version: string;
}

/** Whether a job's key is of a function, in any version and on any kind of GPU. */
export function isProfilingOf(key: string, name: string): boolean {
  return key.startsWith('profile ') && key.includes(` ${name}@`);
}

/** Dependencies of Profilings. */
interface ProfilingsParts {
  performanceData: Pick<PerformanceData, 'driverOf' | 'saved' | 'trials'>;
  source: Pick<SampleSource, 'of'>;
  measures: Pick<SampleMeasurements, 'aloneMs'>;
  gpuTable: Pick<GpuTable, 'nodes'>;
  clock: Clock;
  logger: Logger;
  /** Longest run of a sample, ms. */
  maxSampleMs: number;
}

/** How long the reason against running a function counts, ms, and for how many functions it is known. */
const problemBounds = { maxAgeMs: 60_000, maxEntries: 1000 };
/** Functions whose action is looked up at one look for a function to run. */
const mostLookups = 4;

/** The key of the job for a function on a kind of GPU. */
export function profilingKey(wanted: WantedFunction, gpu: GpuKind): string {
  return `profile ${kindName(gpu)} ${idOf(wanted)}`;
}

const idOf = ({ function: name, version }: WantedFunction): string => `${name}@${version}`;

/** Of each kind of GPU under MPS, which alone makes shares take effect, the place with the most memory. */
function kindsOf(places: readonly SampledPlace[]): SampledPlace[] {
  const kinds = new Map<string, SampledPlace>();
  for (const place of places) {
    if (place.mode !== 'mps') continue;
    const name = kindName(place);
    if (place.memoryMiB > (kinds.get(name)?.memoryMiB ?? -1)) kinds.set(name, place);
  }
  return [...kinds.values()];
}

/** Chooses functions whose trials have no result yet, and runs the trials. */
export class Profilings {
  private readonly problems: BoundedCache<string>;

  constructor(private readonly parts: ProfilingsParts) {
    this.problems = new BoundedCache(parts.clock, problemBounds);
  }

  /**
   * A function to run trials of on one of these idle GPUs; undefined if there is none. `isBusy`: whether the job of a key
   * waits, runs, or has failed lately. Rejects if the store fails.
   */
  async next(places: readonly SampledPlace[], isBusy: (key: string) => boolean): Promise<ProfilingRequest | undefined> {
    const { performanceData } = this.parts;
    const kinds = kindsOf(places);
    if (kinds.length === 0) return undefined;
    let lookups = 0;
    for (const one of [...performanceData.trials.list()]) {
      const { function: name, version } = one;
      if (one.isCancelled === true || this.problems.get(idOf(one)) !== undefined) continue;
      const open = kinds.filter((kind) => {
        const step = nextStep(one, kind, performanceData.driverOf(kind.id));
        return 'next' in step && !isBusy(profilingKey(one, kind));
      });
      if (open.length === 0) continue;
      if ((lookups += 1) > mostLookups) return undefined;
      const sample = await this.sampleOf(one);
      if (sample === undefined) continue;
      const place = open.find(({ memoryMiB }) => sample.memoryMiB <= memoryMiB);
      if (place !== undefined) {
        const { id: gpu, gpuType, mode } = place;
        return { key: profilingKey(one, place), gpu, gpuType, mode, function: name, version };
      }
      this.problems.set(idOf(one), 'no idle GPU has its memory');
    }
    return undefined;
  }

  /**
   * Runs trials until the search has a result. Returns whether it has one: a function that was changed, cancelled or deleted
   * meanwhile must not be run. Rejects as `SampleRunner.alone` does when aborted or when the GPU is not available; other
   * failures are failed trials.
   */
  async run({ function: name, version }: ProfilingRequest, on: MeasurementTarget): Promise<boolean> {
    const { performanceData, logger } = this.parts;
    const { trials } = performanceData;
    for (;;) {
      const one = trials.of(name);
      if (one?.version !== version || one.isCancelled === true) return false;
      const driverMajor = performanceData.driverOf(on.gpu);
      const step = nextStep(one, on, driverMajor);
      if (!('next' in step)) {
        logger.info({ function: name, version, gpuType: on.gpuType, ...step }, 'the profile of a function is finished');
        return true;
      }
      const sample = await this.sampleOf(one);
      if (sample === undefined) return false;
      const trial = await this.trial(sample, one, step.next, on);
      trials.add(one, on, driverMajor, trial);
      await performanceData.saved();
    }
  }

  /** The sample of a function; undefined if it must not be run, which is noted. */
  private async sampleOf(one: ProfiledFunction): Promise<Sample | undefined> {
    const { function: name, version } = one;
    const { source, performanceData } = this.parts;
    const found = await source.of({ function: name, version, batch: 1 }, true);
    const isAllowed = typeof found !== 'string';
    if (!isAllowed) this.problems.set(idOf(one), found);
    performanceData.trials.noteProblem(one, isAllowed ? undefined : found);
    return isAllowed ? found : undefined;
  }

  private async trial(
    sample: Sample,
    { goal }: WantedFunction,
    { batch, share }: TrialPoint,
    on: MeasurementTarget,
  ): Promise<Trial> {
    const { measures, maxSampleMs } = this.parts;
    try {
      const ms = await measures.aloneMs({ ...sample, job: { ...sample.job, batch } }, share as ShareClass, on);
      const isMiss = goal.sloMs === undefined || executionMs(goal.sloMs) <= maxSampleMs;
      const memoryMiB = this.heldMiB(sample, on.gpu);
      if (ms < Infinity || isMiss) return { batch, share, ms, ...(memoryMiB !== undefined && { memoryMiB }) };
      return { batch, share, failure: `it ran for more than ${maxSampleMs} ms, the bound of samples` };
    } catch (error) {
      if (on.signal.aborted || (isApiError(error) && error.status >= 500)) throw error;
      return { batch, share, failure: (error as Error).message };
    }
  }

  /** The most device memory that an instance of a sample holds on a GPU by its agent's last row, MiB. */
  private heldMiB({ action }: Sample, gpu: string): number | undefined {
    const name = `/${action.namespace}/${action.name}`;
    const residents = this.parts.gpuTable.nodes().flatMap((node) => node.residents);
    const held = residents
      .filter((one) => one.action === name && (one.slice ?? one.device) === gpu)
      .flatMap((one) => one.heldMiB ?? []);
    return held.length === 0 ? undefined : Math.max(...held);
  }
}
