// Draws of a truth: its unknown residuals and the spread of repeated measurements.
import { seededRandom } from '@gpuwhisk/common/system/random';
import { hashOf } from '@gpuwhisk/gpu/numeric/hash';
import { normal } from '@gpuwhisk/gpu/simulate/replay';
import type { Errors } from './left-out.js';
import { memberKey, setKey } from './sets.js';
import type { Answer, Asked, Bracket, Form, Truth } from './truth.js';

/** Standard deviations of the logarithm of a slowdown. */
export interface Spread {
  /** Of one measurement around the mean of its repetitions. */
  repeat: number;
  /** Of the truth around a model's answer, by the number of processes; the largest known one holds for more. */
  residual: ReadonlyMap<number, number>;
}

/** Half of the repeated measurements of one pair differ by less than this (3.8 %; p90 8.6 %). */
const repeatMedian = 0.038;
/** Median and mean of the absolute value of a standard normal variable. */
const [normalMedian, normalMean] = [0.6745, Math.sqrt(2 / Math.PI)];

/** The spread of a truth in one form by its errors on sets of known models that were left out. */
export function spreadOf(errors: readonly Errors[], form: Form): Spread {
  const sums = new Map<number, { error: number; sides: number }>();
  for (const { split, predictor, among, kind, sides, log } of errors) {
    if (split !== 'sets' || predictor !== form || among !== 'all') continue;
    const size = Number(kind.split(' ')[0]);
    const sum = sums.get(size) ?? { error: 0, sides: 0 };
    sums.set(size, { error: sum.error + log * sides, sides: sum.sides + sides });
  }
  return {
    repeat: repeatMedian / (normalMedian * Math.SQRT2),
    residual: new Map([...sums].map(([size, { error, sides }]) => [size, error / sides / normalMean])),
  };
}

/**
 * Answers of draw `draw` of a truth: a measured slowdown is off by its repeatability, an extrapolated one by the model's
 * residual as well. Both are drawn once for each draw and member of a set and stay: the same arguments give the same answer,
 * in any order of questions. Throws as `Truth.answer` does.
 */
export function drawnAnswers(
  truth: Pick<Truth, 'answer' | 'gpu' | 'mode'>,
  { repeat, residual }: Spread,
  { seed, draw }: { seed: number; draw: number },
): (members: readonly Asked[], bracket?: Bracket) => Answer[] {
  const largest = Math.max(0, ...residual.keys());
  return (members, bracket) => {
    const set = setKey(members);
    const seen = new Map<string, number>();
    return truth.answer(members, bracket).map((answer, i): Answer => {
      const member = memberKey(members[i] as Asked);
      // Equal members of a set differ by their number.
      const number = seen.get(member) ?? 0;
      seen.set(member, number + 1);
      const random = seededRandom(hashOf([seed, draw, truth.gpu, truth.mode, set, member, number].join('\n')));
      const spread = answer.extrapolated ? (residual.get(members.length) ?? residual.get(largest) ?? 0) : 0;
      const deviation = members.length === 1 ? repeat : Math.hypot(repeat, spread);
      return { ...answer, slowdown: answer.slowdown * Math.exp(deviation * normal(random)) };
    });
  };
}
