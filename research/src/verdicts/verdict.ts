// Whether ours is better than the best rival of a scenario, and how sure that is.
import { seededRandom } from '@gpuwhisk/common/system/random';
import { hashOf } from '@gpuwhisk/gpu/numeric/hash';
import { meanOf, pairedInterval, type Interval } from '@gpuwhisk/bench/statistics';

/** Values of a metric by contender, one for each seed in the same order, in one variant of the truth. */
export type Values = ReadonlyMap<string, readonly number[]>;

/** `better` and `worse`: the sign of the difference holds in 95 % of the resamples in every variant of the truth. */
export type Outcome = 'worse' | 'undecided' | 'better';

/** Ours beside the best rival. */
export interface Verdict {
  outcome: Outcome;
  rival: string;
  /** By variant of the truth: means of both, and ours less the rival's with its interval. */
  variants: ReadonlyMap<string, { ours: number; theirs: number; difference: Interval }>;
}

/**
 * The verdict of a metric of which less is better. The best rival is that with the least mean over the variants, each relative to ours, by the
 * very seeds of the verdict, which favours it. Each seed has its own draw of the truth and is one cluster of the interval. Throws RangeError
 * without rivals or seeds.
 */
export function verdictOf(ours: string, rivals: readonly string[], variants: ReadonlyMap<string, Values>): Verdict {
  const valuesOf = (values: Values, name: string): readonly number[] => {
    const found = values.get(name);
    if (found === undefined || found.length === 0) throw new RangeError(`a truth lacks the values of '${name}'`);
    return found;
  };
  const scoreOf = (name: string): number =>
    meanOf(
      [...variants.values()].map((values) => {
        const own = meanOf(valuesOf(values, ours));
        const theirs = meanOf(valuesOf(values, name));
        // Fractions may be 0.
        return (theirs - own) / Math.max(Math.abs(own), Math.abs(theirs), Number.MIN_VALUE);
      }),
    );
  const [first, ...rest] = rivals;
  if (first === undefined) throw new RangeError('a verdict needs a rival');
  const rival = rest.reduce((best, name) => (scoreOf(name) < scoreOf(best) ? name : best), first);
  const compared = new Map(
    [...variants].map(([variant, values]) => {
      const [own, theirs] = [valuesOf(values, ours), valuesOf(values, rival)];
      const random = seededRandom(hashOf(`${variant} ${ours} ${rival}`));
      const difference = pairedInterval(own, theirs, (a, b) => a - b, random);
      return [variant, { ours: meanOf(own), theirs: meanOf(theirs), difference }];
    }),
  );
  return { outcome: outcomeOf([...compared.values()].map(({ difference }) => difference)), rival, variants: compared };
}

/** The outcome of differences of which less is better. */
export function outcomeOf(differences: readonly Pick<Interval, 'low' | 'high'>[]): Outcome {
  if (differences.every(({ high }) => high < 0)) return 'better';
  if (differences.every(({ low }) => low > 0)) return 'worse';
  return 'undecided';
}
