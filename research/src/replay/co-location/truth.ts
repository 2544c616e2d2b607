// The truth of training beside inference. No public data has the two together: it is put together from what was measured apart.
import { seededRandom, randomFraction, type Random } from '@gpuwhisk/common/system/random';
import { hashOf } from '@gpuwhisk/gpu/numeric/hash';
import { normal, type GpuTruth } from '@gpuwhisk/gpu/simulate/replay';
import { nonNegativeLeastSquares, predictPair } from '../model/fit.js';
import { effectiveShares, stretchAt, type ModelParameters } from '@gpuwhisk/bench/replay/model/gpu-model';
import type { IgniterData } from '../model/igniter.js';
import type { MeasuredPair } from '../truth.js';
import type { CatalogueEntry } from '@gpuwhisk/bench/replay/workloads/catalogue';

/** What neighbours cost a training job beside the SMs that they take: by their presence, per SM in use, per DRAM traffic. */
export interface TrainingContention {
  base: number;
  perUse: number;
  perDram: number;
  /** Standard deviation of the logarithm of a pair's slowdown around the fit. */
  deviation: number;
}

/** Parameters of the truth. */
export interface CoLocationParameters {
  /** Contention of functions, the clock, and the noise of a run: fitted to iGniter's pairs. */
  functions: ModelParameters;
  /** Standard deviation of the logarithm of a pair's slowdown around that fit. */
  functionDeviation: number;
  training: TrainingContention;
}

/** Fits the contention of training jobs to Lucid's pairs of them (RTX 3090), after the division of the SMs is removed. */
export function fitTraining(
  pairs: readonly MeasuredPair[],
  entries: ReadonlyMap<string, CatalogueEntry>,
): TrainingContention {
  const sides = pairs.flatMap(({ a, b, slowdownA, slowdownB }) => {
    const [one, other] = [entries.get(a)?.model, entries.get(b)?.model];
    if (!one || !other) return [];
    const [shareA = 1, shareB = 1] = effectiveShares([one, other].map(({ saturation }) => ({ share: 1, saturation })));
    return [
      { row: [1, shareB, other.dramUtil], rest: slowdownA / stretchAt(one, shareA) },
      { row: [1, shareA, one.dramUtil], rest: slowdownB / stretchAt(other, shareB) },
    ];
  });
  const [base = 0, perUse = 0, perDram = 0] = nonNegativeLeastSquares(
    sides.map(({ row }) => row),
    sides.map(({ rest }) => rest - 1),
  );
  const fitted = ({ row: [, use = 0, dram = 0] }: (typeof sides)[number]): number =>
    1 + base + perUse * use + perDram * dram;
  return { base, perUse, perDram, deviation: deviationOf(sides.map((side) => side.rest / fitted(side))) };
}

/** The deviation of iGniter's pairs around the model. */
export function functionDeviation({ pairs, power }: IgniterData, parameters: ModelParameters): number {
  return deviationOf(pairs.map((side) => side.slowdown / predictPair(parameters, side, power)));
}

function deviationOf(ratios: readonly number[]): number {
  return Math.sqrt(ratios.reduce((sum, ratio) => sum + Math.log(ratio) ** 2, 0) / ratios.length);
}

/** A bootstrap sample of pairs. */
export function resampled<One>(items: readonly One[], random: Random): One[] {
  return items.map(() => items[Math.floor(randomFraction(random) * items.length)] as One);
}

/** Effective share of a neighbour at which the hidden part of a pair counts in full: as in the measured pairs. */
const wholeHidden = 0.5;

/**
 * Slowdowns of functions and training jobs on one GPU under MPS. The SMs are divided max-min fairly; the rest of each side
 * is linear in its neighbours' use and traffic, with the coefficients of its kind; the clock falls with the power; and each
 * pair has a hidden part of its own, drawn once from `seed`, as large as the deviation of the measured pairs from the fits.
 * Predictors have neither the clock nor the hidden parts.
 */
export function coLocationTruth(
  { functions, functionDeviation: own, training }: CoLocationParameters,
  entries: ReadonlyMap<string, CatalogueEntry>,
  seed: number,
): GpuTruth {
  const { contention, power } = functions;
  const hidden = new Map<CatalogueEntry, Map<CatalogueEntry, number>>();
  const entryOf = (name: string): CatalogueEntry => {
    const entry = entries.get(name);
    if (entry === undefined) throw new RangeError(`the model has no workload '${name}'`);
    return entry;
  };
  const hiddenOf = (victim: CatalogueEntry, neighbour: CatalogueEntry): number => {
    let parts = hidden.get(victim);
    if (parts === undefined) hidden.set(victim, (parts = new Map()));
    let part = parts.get(neighbour);
    if (part === undefined) {
      const deviation = victim.class === 'training' ? training.deviation : own;
      const random = seededRandom(hashOf(`${seed} ${victim.name} ${neighbour.name}`));
      parts.set(neighbour, (part = deviation * normal(random)));
    }
    return part;
  };
  const sharesOf = (clients: readonly { entry: CatalogueEntry; share: number }[]): number[] =>
    effectiveShares(clients.map(({ entry, share }) => ({ share, saturation: entry.model.saturation })));
  return {
    noise: functions.noise,
    used: (clients) =>
      sharesOf(clients.map(({ workload, share }) => ({ entry: entryOf(workload), share }))).reduce(
        (sum, x) => sum + x,
        0,
      ),
    slowdowns(clients) {
      const located = clients.map(({ workload, share }) => ({ entry: entryOf(workload), share }));
      const shares = sharesOf(located);
      const stretches = located.map(({ entry }, at) => stretchAt(entry.model, shares[at] as number));
      const slowdowns = Float64Array.from(stretches);
      if (clients.length < 2) return slowdowns;
      let [l2, dram, watts, use] = [0, 0, power.idleW, 0];
      for (const [at, { entry }] of located.entries()) {
        const stretch = stretches[at] as number;
        l2 += entry.model.l2Util / stretch;
        dram += entry.model.dramUtil / stretch;
        watts += entry.model.powerW / stretch;
        use += shares[at] as number;
      }
      const clock = Math.max(0.5, 1 - (power.mhzPerW * Math.max(0, watts - power.capW)) / power.baseMhz);
      for (const [at, { entry }] of located.entries()) {
        const stretch = stretches[at] as number;
        const otherDram = dram - entry.model.dramUtil / stretch;
        const rest =
          entry.class === 'training'
            ? training.base + training.perUse * (use - (shares[at] as number)) + training.perDram * otherDram
            : contention.base + contention.perL2 * (l2 - entry.model.l2Util / stretch) + contention.perDram * otherDram;
        let part = 0;
        for (const [other, { entry: neighbour }] of located.entries()) {
          if (other === at) continue;
          part += hiddenOf(entry, neighbour) * Math.min(1, (shares[other] as number) / wholeHidden);
        }
        slowdowns[at] = (stretch * Math.max(1, (1 + rest) * Math.exp(part))) / clock;
      }
      return slowdowns;
    },
  };
}
