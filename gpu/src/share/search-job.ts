import type { DeviceMode } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { JobBody, JobRequest } from '@gpuwhisk/common/jobs/jobs';
import type { Random } from '@gpuwhisk/common/system/random';
import type { Allotment, ShareSpace } from './quota-search.js';
import type { Hyperparameters, Prior } from './gaussian-process.js';
import { ordered } from './quota-row.js';
import { classSpace, propose } from './quota-search.js';
import type { QuotaTable } from './quota-table.js';
import type { QuotaJob } from './quotas.js';

/** The kind of job that looks for the shares of a set (FaaShare's online phase, section VII-B). */
export const quotaSearchKind = 'quota-search';

/** A set whose shares are to be found. */
export interface QuotaSearchRequest {
  gpuType: string;
  mode: DeviceMode;
  set: readonly QuotaJob[];
  /** By job, what its budget allows; Infinity where it has none. */
  maxSlowdowns: readonly number[];
  /** Of the GPU or instance that it is to be measured on, while nothing else is there. */
  gpu: string;
}

/** What a search is made with. */
export interface QuotaSearchNeeds {
  table: QuotaTable;
  priorOf(job: QuotaJob, gpuType: string, mode: DeviceMode): Prior;
  hyperOf(gpuType: string, mode: DeviceMode): Hyperparameters;
  /** The driver of a GPU: its major version. */
  driverMajorOf(gpu: string): number;
  /** Runs the set's samples together on the GPU and gives each job's slowdown. Rejects when `signal` is aborted. */
  measure(set: readonly QuotaJob[], shares: Allotment, gpu: string, signal: AbortSignal): Promise<readonly number[]>;
  /** Resolves once what the table was given is stored, or that has failed: a measurement takes long. */
  saved(): Promise<void>;
  random: Random;
  /** Default: the share classes, 100 % in all. */
  space?: ShareSpace;
}

/** The job for a search; of one set on one kind of GPU there is one at a time. */
export function quotaSearchJob(request: QuotaSearchRequest): JobRequest {
  const { gpuType, mode, set, maxSlowdowns, gpu } = request;
  const bounds = maxSlowdowns.map((bound) => (bound === Infinity ? null : bound));
  const { key } = ordered(set, gpuType, mode, maxSlowdowns);
  const payload = { gpuType, mode, set, maxSlowdowns: bounds, gpu } as unknown as JsonValue;
  return { kind: quotaSearchKind, key, payload, resource: `gpu/${gpu}` };
}

/**
 * Measures what promises most, one allotment after the other, and keeps each in the table, so that a search that is cut
 * short goes on from there. A measurement that the table refuses fails the attempt.
 */
export function quotaSearchBody(needs: QuotaSearchNeeds): JobBody {
  return async (payload, { signal }) => {
    const { gpuType, mode, set, maxSlowdowns, gpu } = requestOf(payload);
    const problem = {
      jobs: set.map((job, at) => ({
        prior: needs.priorOf(job, gpuType, mode),
        weight: 1,
        maxSlowdown: maxSlowdowns[at]!,
        ...(job.features !== undefined && { features: job.features }),
      })),
      space: needs.space ?? classSpace,
      hyper: needs.hyperOf(gpuType, mode),
    };
    for (let evaluations = 0; ; evaluations += 1) {
      const points = needs.table.pointsOf(set, gpuType, mode);
      const proposal = propose(problem, points, evaluations, needs.random);
      if (proposal === undefined) break;
      const slowdowns = await needs.measure(set, proposal.shares, gpu, signal);
      const point = { shares: proposal.shares, slowdowns };
      const refused = needs.table.record(set, gpuType, mode, point, needs.driverMajorOf(gpu));
      if (refused !== undefined) throw new Error(`the measurement was refused: ${refused}`);
      await needs.saved();
    }
    needs.table.markSearched(set, gpuType, mode);
  };
}

function requestOf(payload: JsonValue): QuotaSearchRequest {
  const request = payload as unknown as QuotaSearchRequest & { maxSlowdowns: (number | null)[] };
  return { ...request, maxSlowdowns: request.maxSlowdowns.map((bound) => bound ?? Infinity) };
}
