import type { Random } from '@gpuwhisk/common/system/random';
import { randomFraction } from '@gpuwhisk/common/system/random';

/** What a choice of shares is made from. Shares in percent. */
export interface ShareSpace {
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
    const share = possible.find((one) => (at -= ways(rest, left - one)) < 0) ?? possible.at(-1)!;
    drawn.push(share);
    left -= share;
  }
  return drawn;
}
