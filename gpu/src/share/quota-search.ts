// The search for the shares of a set by Bayesian optimisation (FaaShare, section VII-B).
import { shareClasses } from '@gpuwhisk/common/gpu';
import type { Random } from '@gpuwhisk/common/system/random';
import { randomFraction } from '@gpuwhisk/common/system/random';
import type { GpuKind } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { JobBody, JobRequest } from '@gpuwhisk/common/jobs/jobs';
import { expectedImprovement, explorationAt, probabilityAtMost } from './gaussian-process.js';
import type { Exploration, Hyperparameters, Prior } from './gaussian-process.js';
import { surrogateOf } from './surrogate.js';
import type { MeasuredPoint, SearchJob, Surrogate } from './surrogate.js';
import { ordered } from './quota-row.js';
import type { QuotaTable } from './quota-table.js';
import type { QuotaJob } from './quotas.js';

/** The shares of a set are to be found that make the weighted sum of its slowdowns least, within all budgets. */
export interface SearchProblem {
  jobs: readonly SearchJob[];
  space: ShareSpace;
  hyper: Hyperparameters;
  /** Absent: the default one. */
  exploration?: Exploration;
}

/** The shares to measure next, and why these. */
interface Proposal {
  shares: Allotment;
  /** Of the objective, expected. */
  improvement: number;
  /** That all budgets are kept, probability. */
  feasible: number;
}

/** Measurements that a search makes at most. */
export const maxEvaluations = 7;

/** A search ends when less than this part of the best is to be gained. */
const worthwhile = 0.01;

/** Points that have to be known before it may: until then what is to be gained is a belief that nothing has tested. */
const leastPoints = 3;

/** Allotments that are looked at in one step, at most. */
const maxCandidates = 20_000;

/** Warm processes have one of the share classes; those of a set may sum to more than the GPU, which is shared then. */
export const classSpace: ShareSpace = { shares: shareClasses, maxTotal: Infinity };

/** A length at which a curve over ln share bends a few times between 5 and 100 %, and the noise of repeated runs. */
export const defaultHyper: Hyperparameters = { lengths: [1.5, 1, 1, 1], noise: 0.03 };

/**
 * What to measure next when `points` are known and this search has made `evaluations` of them; undefined when it has
 * made its most, or no allotment promises an improvement that is worth a run. Nothing is measured twice. The same
 * arguments give the same answer.
 */
export function propose(
  problem: SearchProblem,
  points: readonly MeasuredPoint[],
  evaluations: number,
  random: Random,
): Proposal | undefined {
  if (evaluations >= maxEvaluations) return undefined;
  const { jobs, space, hyper, exploration: xi } = problem;
  const filling = fillingShares(problem);
  if (points.length === 0 && filling !== undefined) return { shares: filling, improvement: Infinity, feasible: 1 };
  const surrogate = surrogateOf(jobs, hyper, points);
  const measured = new Set(points.map(({ shares }) => shares.join()));
  const candidates = allotments(space, jobs.length, maxCandidates, random)
    .filter((shares) => !measured.has(shares.join()))
    .map((shares) => ({
      shares,
      objective: surrogate.objective(shares),
      feasible: feasibility(jobs, surrogate, shares),
    }));
  if (candidates.length === 0) return undefined;
  const mayEnd = points.length >= leastPoints;
  const best = bestOf(problem, points, surrogate);
  let chosen: Proposal | undefined;
  if (points.length === 0 || best === undefined) {
    // Nothing to improve on: what is likely to keep all budgets, and of that what is expected to be least.
    let least = Infinity;
    for (const { shares, objective, feasible } of candidates) {
      const isBetter =
        feasible >= 0.5 ? objective.mean < least : least === Infinity && feasible > (chosen?.feasible ?? -1);
      if (!isBetter) continue;
      if (feasible >= 0.5) least = objective.mean;
      chosen = { shares, improvement: Infinity, feasible };
    }
    // That a budget cannot be kept is believed once it was looked for.
    return chosen !== undefined && (!mayEnd || chosen.feasible >= worthwhile) ? chosen : undefined;
  }
  const exploration = explorationAt(evaluations, xi) * rootMeanSquare(candidates.map((one) => one.objective.variance));
  for (const { shares, objective, feasible } of candidates) {
    const improvement = feasible * expectedImprovement(objective, best.objective, exploration);
    if (improvement > (chosen?.improvement ?? 0)) chosen = { shares, improvement, feasible };
  }
  return chosen !== undefined && (!mayEnd || chosen.improvement >= worthwhile * best.objective) ? chosen : undefined;
}

/**
 * What each job can use, and no more: what it has without a search, and so the first to be measured. Undefined where jobs
 * were not profiled, or the space does not hold it.
 */
function fillingShares({ jobs, space: { shares, maxTotal } }: SearchProblem): Allotment | undefined {
  const filling: number[] = [];
  for (const { features } of jobs) {
    const share = features && shares.find((one) => one >= features.smUtil * 100);
    if (share === undefined) return undefined;
    filling.push(share);
  }
  return filling.reduce((sum, share) => sum + share, 0) <= maxTotal ? filling : undefined;
}

/**
 * Of what was measured within all budgets and is believed, what the measurements taken together call best; undefined if
 * nothing was.
 */
export function bestOf(
  { jobs, hyper }: SearchProblem,
  points: readonly MeasuredPoint[],
  surrogate: Surrogate = surrogateOf(jobs, hyper, points),
): { shares: Allotment; objective: number } | undefined {
  let best: { shares: Allotment; objective: number } | undefined;
  for (const point of points) {
    const { shares, slowdowns } = point;
    if (surrogate.doubted.has(point)) continue;
    if (slowdowns.some((slowdown, at) => slowdown > (jobs[at]?.maxSlowdown ?? Infinity))) continue;
    const objective = surrogate.objective(shares).mean;
    if (best === undefined || objective < best.objective) best = { shares, objective };
  }
  return best;
}

/** The probability that all jobs keep their budgets. */
function feasibility(jobs: readonly SearchJob[], surrogate: Surrogate, shares: Allotment): number {
  let probability = 1;
  for (const [at, { maxSlowdown }] of jobs.entries()) {
    if (maxSlowdown === Infinity) continue;
    probability *= probabilityAtMost(surrogate.logSlowdown(shares, at), Math.log(maxSlowdown));
  }
  return probability;
}

function rootMeanSquare(variances: readonly number[]): number {
  return Math.sqrt(variances.reduce((sum, variance) => sum + variance, 0) / variances.length);
}

/** What a choice of shares is made from. Shares in percent. */
interface ShareSpace {
  /** That a job may have, rising. */
  shares: readonly number[];
  /**
   * That all jobs may have together, Infinity: as much as they like, since MPS shares are bounds and no parts; where the
   * smallest share of each is more than that, that much.
   */
  maxTotal: number;
}

/** The shares of `jobs` jobs, one after the other. */
export type Allotment = readonly number[];

/**
 * All ways to give `jobs` jobs a share each, in a fixed order; of more than `limit`, so many drawn evenly, some of them
 * perhaps twice. Throws RangeError for no job or no share.
 */
export function allotments(space: ShareSpace, jobs: number, limit: number, random: Random): Allotment[] {
  const smallest = space.shares[0];
  if (smallest === undefined || jobs < 1) throw new RangeError('there is nothing to share');
  const total = Math.min(Math.max(space.maxTotal, jobs * smallest), jobs * Math.max(...space.shares));
  const counts = new Map<number, number>();
  /** In how many ways so many jobs can share `left`. */
  const ways = (count: number, left: number): number => {
    if (count === 0) return 1;
    const key = count * 1e6 + left;
    const known = counts.get(key);
    if (known !== undefined) return known;
    let sum = 0;
    for (const share of space.shares) if (share <= left) sum += ways(count - 1, left - share);
    counts.set(key, sum);
    return sum;
  };
  if (ways(jobs, total) > limit) {
    return Array.from({ length: limit }, () => draw(space.shares, jobs, total, ways, random));
  }
  let partial: { shares: number[]; left: number }[] = [{ shares: [], left: total }];
  for (let job = 1; job <= jobs; job += 1) {
    partial = partial.flatMap(({ shares, left }) =>
      space.shares
        .filter((share) => ways(jobs - job, left - share) > 0 && share <= left)
        .map((share) => ({ shares: [...shares, share], left: left - share })),
    );
  }
  return partial.map(({ shares }) => shares);
}

function draw(
  shares: readonly number[],
  jobs: number,
  total: number,
  ways: (count: number, left: number) => number,
  random: Random,
): Allotment {
  const drawn: number[] = [];
  let left = total;
  for (let rest = jobs - 1; rest >= 0; rest -= 1) {
    let at = randomFraction(random) * ways(rest + 1, left);
    const possible = shares.filter((share) => share <= left && ways(rest, left - share) > 0);
    // eslint-disable-next-line @typescript-eslint/no-non-null-assertion -- one share at least can be drawn as long as there are ways
    const share = possible.find((one) => (at -= ways(rest, left - one)) < 0) ?? possible.at(-1)!;
    drawn.push(share);
    left -= share;
  }
  return drawn;
}

/** The kind of job that looks for the shares of a set (FaaShare's online phase, section VII-B). */
export const quotaSearchKind = 'quota-search';

/** A set whose shares are to be found. */
export interface QuotaSearchRequest extends GpuKind {
  set: readonly QuotaJob[];
  /** By job, what its budget allows; Infinity where it has none. */
  maxSlowdowns: readonly number[];
  /** Of the GPU or instance that it is to be measured on, while nothing else is there. */
  gpu: string;
}

/** What a search is made with. */
export interface QuotaSearchNeeds {
  table: QuotaTable;
  priorOf(job: QuotaJob, kind: GpuKind): Prior;
  hyperOf(kind: GpuKind): Hyperparameters;
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
  const { key } = ordered(set, request, maxSlowdowns);
  const payload = { gpuType, mode, set, maxSlowdowns: bounds, gpu } as unknown as JsonValue;
  return { kind: quotaSearchKind, key, payload, resource: `gpu/${gpu}` };
}

/**
 * Measures what promises most, one allotment after the other, and keeps each in the table, so that a search that is cut
 * short goes on from there. A measurement that the table refuses fails the attempt.
 */
export function quotaSearchBody(needs: QuotaSearchNeeds): JobBody {
  return async (payload, { signal }) => {
    const request = requestOf(payload);
    const { set, maxSlowdowns, gpu } = request;
    const problem = {
      jobs: set.map((job, at) => ({
        prior: needs.priorOf(job, request),
        weight: 1,
        maxSlowdown: maxSlowdowns[at] ?? Infinity,
        ...(job.features !== undefined && { features: job.features }),
      })),
      space: needs.space ?? classSpace,
      hyper: needs.hyperOf(request),
    };
    for (let evaluations = 0; ; evaluations += 1) {
      const points = needs.table.pointsOf(set, request);
      const proposal = propose(problem, points, evaluations, needs.random);
      if (proposal === undefined) break;
      const slowdowns = await needs.measure(set, proposal.shares, gpu, signal);
      const point = { shares: proposal.shares, slowdowns };
      const refused = needs.table.record(set, request, point, needs.driverMajorOf(gpu));
      if (refused !== undefined) throw new Error(`the measurement was refused: ${refused}`);
      await needs.saved();
    }
    needs.table.markSearched(set, request);
  };
}

function requestOf(payload: JsonValue): QuotaSearchRequest {
  const request = payload as unknown as QuotaSearchRequest & { maxSlowdowns: (number | null)[] };
  return { ...request, maxSlowdowns: request.maxSlowdowns.map((bound) => bound ?? Infinity) };
}
