import type { BenchContext, Measurement } from '@gpuwhisk/bench/bench';
import { paperTrials } from '../documents/dilu-papers.js';
import { optimumOf, profiledSets, profilers, searchOn } from '../replay/dilu/profiling.js';
import type { ProfiledModel, ProfiledSet, SearchResult } from '../replay/dilu/profiling.js';
import { meanOf } from '@gpuwhisk/bench/statistics';

/** SLOs as multiples of the time alone with batch 1 and the whole GPU. */
export const sloFactors = [2, 3, 4, 6] as const;

type Search = keyof typeof profilers;
const searches = Object.keys(profilers) as Search[];

/** A model with an SLO, and what each search took and lost on it. */
interface Case {
  /** Whether the optimum is the smallest share, from which Dilu's search starts. */
  isApart: boolean;
  results: Record<Search, SearchResult>;
}

function caseOf(model: ProfiledModel, factor: number): Case {
  const sloMs = factor * model.soloMs;
  const isApart = optimumOf(model, sloMs).share === model.space.shares[0];
  const { dilu, gpulet, traversal } = profilers;
  return {
    isApart,
    results: {
      dilu: searchOn(model, sloMs, dilu),
      gpulet: searchOn(model, sloMs, gpulet),
      traversal: searchOn(model, sloMs, traversal),
    },
  };
}

/**
 * Trials and loss of efficacy of Dilu's search, GPUlet's and all trials, by SLO, on measured surfaces. Reads BENCH_DATA.
 */
export async function diluProfiling({ say }: Pick<BenchContext, 'say'>): Promise<Measurement[]> {
  const paper = Object.entries(paperTrials).map(([search, counts]) => `${search} ${counts.join('/')}`);
  say(`profiling: trials in the paper's table 2, four models: ${paper.join(', ')}`);
  const measurements: Measurement[] = [];
  const all: Case[] = [];
  for (const set of await profiledSets()) {
    for (const factor of sloFactors) {
      const cases = set.models.map((model) => caseOf(model, factor));
      all.push(...cases);
      measurements.push(...figuresOf(set, factor, cases, say));
    }
  }
  const compared = all.filter(({ isApart }) => !isApart);
  for (const search of searches) {
    const name = search === 'dilu' ? 'efficacyGap' : `efficacyGap.${search}`;
    measurements.push(
      meanFigure(
        name,
        compared.map(({ results }) => results[search].gap),
      ),
    );
  }
  measurements.push({ name: 'trials.most', value: Math.max(...all.map(({ results }) => results.dilu.trials)) });
  return measurements;
}

function figuresOf(
  { name, models }: ProfiledSet,
  factor: number,
  cases: readonly Case[],
  say: BenchContext['say'],
): Measurement[] {
  const compared = cases.filter(({ isApart }) => !isApart);
  const apart = cases.filter(({ isApart }) => isApart);
  const key = `${name}.slo${factor}`;
  say(
    `  ${name}, SLO ${factor} times alone: ${models.length} models, ${apart.length} with the smallest share as optimum`,
  );
  const figures: Measurement[] = [
    { name: `cases.${key}`, value: compared.length },
    { name: `casesApart.${key}`, value: apart.length },
  ];
  for (const search of searches) {
    const { trials, gaps } = columnsOf(compared, search);
    if (trials.length > 0) {
      figures.push(meanFigure(`trials.${key}.${search}`, trials), meanFigure(`efficacyGap.${key}.${search}`, gaps));
      const most = `at most ${Math.max(...trials)} trials and ${percent(Math.max(...gaps))}`;
      say(`    ${search}: ${meanOf(trials).toFixed(1)} trials, gap ${percent(meanOf(gaps))} (${most})`);
    }
    const ofApart = columnsOf(apart, search);
    if (ofApart.trials.length > 0) {
      figures.push(meanFigure(`trialsApart.${key}.${search}`, ofApart.trials));
      figures.push(meanFigure(`efficacyGapApart.${key}.${search}`, ofApart.gaps));
    }
  }
  return figures;
}

function columnsOf(cases: readonly Case[], search: Search): { trials: number[]; gaps: number[] } {
  const results = cases.map((one) => one.results[search]);
  return { trials: results.map(({ trials }) => trials), gaps: results.map(({ gap }) => gap) };
}

const percent = (value: number): string => `${(100 * value).toFixed(1)} %`;

/** A mean with the smallest and the largest value. */
function meanFigure(name: string, values: readonly number[]): Measurement {
  return { name, value: meanOf(values), spread: [Math.min(...values), Math.max(...values)] };
}
