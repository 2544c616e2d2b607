/* eslint-disable @typescript-eslint/no-non-null-assertion -- each run has a result of each policy */
import { medianOf } from '../bench.js';
import type { Bench, BenchContext, Measurement } from '../bench.js';
import { liveCatalogue } from '../live/catalogue.js';
import { startLivePlatform } from '../live/platform.js';
import { bestSetsWork, drawFunctions, gainsOf, leastGain, losingPart } from '../share/draw.js';
import type { DrawnFunction } from '../share/draw.js';
import { runLoad } from '../share/closed-loop.js';
import type { Load, LoadResult } from '../share/closed-loop.js';
import { readStandInModel } from '../stand-in-model.js';

const [type, gpus] = ['a100-40', 2] as const;
type PolicyName = 'auto' | 'exclusive' | 'least-loaded';
const [functions, callers, strictOnes, sloFactor, gapMs] = [10, 4, 2, 6, 500] as const;
/** Part of the pairs that lose in the second draw. */
const losing = 1 / 3;
/** Lengths of warm-up and measured time in rounds (`--seconds`): 120 s and 60 s by default. */
const [warmUpRounds, measuredRounds, mostRuns] = [24, 12, 3];

interface Part {
  /** The default, turns, and the simplest that shares. */
  policies: readonly PolicyName[];
  losing?: number;
  isStrict?: boolean;
}

const two = ['auto', 'exclusive'] as const;
const parts: Readonly<Record<string, Part>> = {
  plain: { policies: [...two, 'least-loaded'] },
  losing: { policies: two, losing },
  strict: { policies: two, isStrict: true },
};

/** Work by policy, in the order of the runs. */
async function runPart(context: BenchContext, name: string, part: Part): Promise<Measurement[]> {
  const { options, say } = context;
  const model = readStandInModel();
  const catalogue = liveCatalogue(model, type);
  const results: Record<PolicyName, LoadResult[]> = { auto: [], exclusive: [], 'least-loaded': [] };
  const bounds: number[] = [];
  for (let run = 0; run < Math.min(mostRuns, options.samples); run += 1) {
    const drawn = drawFunctions(model, type, catalogue, {
      ...{ seed: options.seed + run, count: functions },
      ...(part.losing !== undefined && { losing: part.losing }),
    });
    const gains = gainsOf(model, type, drawn);
    bounds.push(bestSetsWork(gains));
    say(
      `${name}, run ${run + 1}: ${drawn.map(({ entry, units }) => `${entry.name} x ${units}`).join(', ')}; ` +
        `${(100 * losingPart(gains)).toFixed(0)} % of the pairs gain less than ${leastGain}; best sets ${bounds.at(-1)?.toFixed(2)}`,
    );
    const load = loadOf(drawn, part.isStrict === true, options.seconds * 1000);
    for (const policy of part.policies) {
      const platform = await startLivePlatform(context, `${name}-${run}-${policy}`, `sim:${type}x${gpus}`, {
        GPUWHISK_GPU__POLICY: policy,
      });
      const result = await runLoad(platform, load);
      await platform.stop();
      results[policy].push(result);
      say(`  ${policy}: ${JSON.stringify(result)}`);
    }
  }
  return measurementsOf(name, results, bounds);
}

function loadOf(drawn: readonly DrawnFunction[], isStrict: boolean, roundMs: number): Load {
  const plain = isStrict ? drawn.slice(strictOnes) : drawn;
  return {
    ...{ functions: plain, callers, warmUpMs: warmUpRounds * roundMs, measuredMs: measuredRounds * roundMs },
    ...(isStrict && { strict: { functions: drawn.slice(0, strictOnes), sloFactor, gapMs } }),
  };
}

function measurementsOf(
  name: string,
  { auto, exclusive, 'least-loaded': rival }: Record<PolicyName, LoadResult[]>,
  bounds: readonly number[],
): Measurement[] {
  const ratios = (others: readonly LoadResult[], factor: (run: number) => number = () => 1): number[] =>
    auto.map(({ work }, run) => work / (others[run]!.work * factor(run)));
  const of = (figure: string, values: readonly number[]): Measurement => medianOf(`${figure}.${name}`, values);
  const figures = [
    of('sharedThroughput', ratios(exclusive)),
    of(
      'ofBestSets',
      ratios(exclusive, (run) => bounds[run] ?? NaN),
    ),
    ...(rival.length > 0 ? [of('overLeastLoaded', ratios(rival))] : []),
    of(
      'minutesToShare',
      auto.map((one) => one.minutesToShare),
    ),
    of(
      'lostToTrials',
      auto.map((one) => one.lostToTrials),
    ),
    of(
      'splitRuns',
      auto.map((one) => one.splitRuns),
    ),
    of(
      'worstP99',
      auto.map((one) => one.worstP99),
    ),
    of(
      'worstP99Exclusive',
      exclusive.map((one) => one.worstP99),
    ),
  ];
  if (auto.some(({ late }) => Number.isNaN(late))) return figures;
  return [
    ...figures,
    of(
      'latePointsOver',
      auto.map(({ late }, run) => 100 * (late - exclusive[run]!.late)),
    ),
  ];
}

/**
 * Functions that declare no more than their memory, called in a closed loop on two simulated GPUs: the work that the default does in
 * comparison with turns, with a simple rival, and with the best pairs by the stand-in's truth.
 */
export const share: Bench = {
  summary: 'plain functions on simulated GPUs: work done side by side against turns and against the best pairs',
  parts: Object.keys(parts),
  simulated: true,
  async run(context) {
    const { parts: chosen } = context.options;
    const measurements: Measurement[] = [];
    for (const [name, part] of Object.entries(parts)) {
      if (chosen.length === 0 || chosen.includes(name)) measurements.push(...(await runPart(context, name, part)));
    }
    return measurements;
  },
};
