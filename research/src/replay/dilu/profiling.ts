// Searches for request and batch on measured surfaces: a trial reads the surface, and the optimum is known.
import { diluProfiler } from '@gpuwhisk/gpu/algorithms/dilu/profile';
import { gpuletProfiler } from '../../baselines/gpulet.js';
import { traversalProfiler } from '../../baselines/traversal.js';
import { mostEfficientOf, ratedTrials } from '@gpuwhisk/gpu/stages/profile/trials';
import type { Profiler, Trial, TrialPoint, TrialSpace } from '@gpuwhisk/gpu/stages/profile/trials';
import { BenchDataError, readTable } from '@gpuwhisk/bench/data/csv';

/** The searches by their names in figures. */
export const profilers = { dilu: diluProfiler, gpulet: gpuletProfiler, traversal: traversalProfiler };

/** Times of a model alone at every batch and share of a grid. */
export interface ProfiledModel {
  model: string;
  space: TrialSpace;
  trials: readonly Trial[];
  /** Time of one request with the whole GPU, ms. */
  soloMs: number;
}

/** Models of a kind of GPU. */
export interface ProfiledSet {
  /** In figures: `a100`. */
  name: string;
  models: readonly ProfiledModel[];
}

/** Steps of the shares, percent (Dilu, section 3.2). */
const step = 10;

/** The models of Dilu's profiling on an A100, and those of RaPP on a V100 with the whole time slice. */
export async function profiledSets(): Promise<ProfiledSet[]> {
  const a100 = await readTable('surfaces/dilu_a100_inference.csv', {
    model: 'text',
    batch: 'number',
    sm_pct: 'number',
    latency_s: 'number',
  });
  const v100 = await readTable('surfaces/rapp_v100_batch_sm_quota.csv', {
    model: 'text',
    batch: 'number',
    sm_pct: 'number',
    quota_pct: 'number',
    latency_ms: 'number',
  });
  const trialsA100 = a100.map(({ model, batch, sm_pct: share, latency_s: s }) => ({
    model,
    batch,
    share,
    ms: s * 1000,
  }));
  const trialsV100 = v100
    .filter((row) => row.quota_pct === 100)
    .map(({ model, batch, sm_pct: share, latency_ms: ms }) => ({ model, batch, share, ms }));
  return [
    { name: 'a100', models: modelsOf(trialsA100) },
    { name: 'v100', models: modelsOf(trialsV100) },
  ];
}

/** Models with their grids. Throws BenchDataError for a model that was not measured at every point of its grid. */
export function modelsOf(rows: readonly (Trial & { model: string; ms: number })[]): ProfiledModel[] {
  return [...new Set(rows.map(({ model }) => model))].map((model) => {
    const trials = rows.filter((row) => row.model === model && row.share % step === 0);
    const distinct = (of: (trial: Trial) => number): number[] =>
      [...new Set(trials.map(of))].sort((one, other) => one - other);
    const space = { batches: distinct(({ batch }) => batch), shares: distinct(({ share }) => share) };
    const soloMs = trials.find(({ batch, share }) => batch === 1 && share === 100)?.ms;
    if (soloMs === undefined || trials.length !== space.batches.length * space.shares.length) {
      throw new BenchDataError(`The surface of ${model} has gaps: ${trials.length} points.`);
    }
    return { model, space, trials, soloMs };
  });
}

/** What a search took and lost on one model with one SLO. */
export interface SearchResult {
  trials: number;
  /** 1 − efficacy of the found request over that of the best point within half of the SLO; 1 if none was found. */
  gap: number;
}

/** The best point within half of an SLO. Throws RangeError if there is none. */
export function optimumOf({ model, trials }: ProfiledModel, sloMs: number): TrialPoint & { efficacy: number } {
  const best = mostEfficientOf(ratedTrials(sloMs, trials));
  if (best === undefined) throw new RangeError(`no point of ${model} keeps ${sloMs} ms`);
  return best;
}

/** Runs a search on a surface. Throws Error if it asks for a point that was not measured. */
export function searchOn(surface: ProfiledModel, sloMs: number, profiler: Profiler): SearchResult {
  const seen: Trial[] = [];
  for (;;) {
    const next = profiler({ sloMs }, surface.space, seen);
    if ('failed' in next) return { trials: seen.length, gap: 1 };
    if ('profile' in next) {
      const { keepsGoal, request, batch } = next.profile;
      const [found] = ratedTrials(
        sloMs,
        seen.filter((one) => one.batch === batch && one.share * 10 === request),
      );
      const gap = keepsGoal && found !== undefined ? 1 - found.efficacy / optimumOf(surface, sloMs).efficacy : 1;
      return { trials: seen.length, gap };
    }
    const { batch, share } = next.next;
    const trial = surface.trials.find((one) => one.batch === batch && one.share === share);
    if (trial === undefined) throw new Error(`${surface.model} was not measured with batch ${batch} at ${share} %`);
    seen.push(trial);
  }
}
