/* eslint-disable @typescript-eslint/no-non-null-assertion -- neighbours are matched by indices below their number */
// T2: contention of the nearest measured sets, scaled to the set that is asked for.
import type { Features } from './features.js';
import { overlapOf, setKey, workloadName } from './sets.js';
import type { Member, Mode, Side } from './sets.js';

/** Number of measured sets that an answer is the mean of. */
const nearest = 6;
/** Distance of two workloads of one source of which one has no features, and of workloads of two sources. */
const unknownDistance = 2;
const otherSource = 4;
/** Added to distances, so that a set at no distance has a finite weight. */
const least = 0.05;
/** Weights of shares and of overlap beside the distance of workloads. */
const [shareWeight, overlapWeight] = [0.5, 3];
/** Excess of a pair below which noise decides. */
const leastExcess = 0.02;

/** T2 of one GPU type in one mode. */
export interface NearestModel {
  /** Time of `own` beside `others` over its time alone at its share. `overlap`: of the quotas, 0 to 1. */
  contention(own: Member, others: readonly Member[], overlap: number): number;
}

/** A measured side with its overlap. */
interface Point {
  own: Member;
  others: readonly Member[];
  overlap: number;
  contention: number;
}

/**
 * T2 from the sides of one GPU type in one mode. The answer for two is the mean of the nearest measured pairs, in logarithms,
 * by their distance in features, shares and overlap. For more, the excess over 1 of the nearest measured sets of that size is
 * multiplied by the ratio of the summed excesses of the pairs in both sets. Where no set of that size is among the sides, the
 * summed excesses are multiplied by the ratio that holds for the largest size. Throws RangeError for no sides.
 */
export function nearestModel(sides: readonly Side[], mode: Mode, features: Features): NearestModel {
  if (sides.length === 0) throw new RangeError('nearest sets need measured sets of two or more');
  const points = sides.map(({ set, own, others }): Point => {
    const overlap = overlapOf(
      mode,
      set.members.map(({ share }) => share),
    );
    return { own, others, overlap, contention: own.contention };
  });
  const bySize = new Map<number, Point[]>();
  for (const point of points) bySize.set(point.others.length, [...(bySize.get(point.others.length) ?? []), point]);

  const numbers = new Map<string, number>();
  const numberOf = (workload: string): number => {
    const known = numbers.get(workload) ?? numbers.size;
    numbers.set(workload, known);
    return known;
  };
  const numbered = new Map(
    points.map((point): [Point, Numbered] => [
      point,
      { own: numberOf(point.own.workload), others: point.others.map(({ workload }) => numberOf(workload)) },
    ]),
  );
  const names = [...numbers.keys()];
  const squares = new Map<string, Float64Array>();
  /** Squared distances of a workload to those of the points, by their numbers. */
  const squaresOf = (workload: string): Float64Array => {
    const known =
      squares.get(workload) ??
      Float64Array.from(names, (name) => (name === workload ? 0 : distanceOf(workload, name, features) ** 2));
    squares.set(workload, known);
    return known;
  };
  const near = (own: Member, others: readonly Member[], overlap: number, among: readonly Point[]): Weighted[] => {
    const found = new Nearest();
    const whose = squaresOf(own.workload);
    const theirs = others.map(({ workload }) => squaresOf(workload));
    for (const point of among) {
      const shares =
        shareWeight * Math.abs(Math.log(own.share / point.own.share)) +
        overlapWeight * Math.abs(overlap - point.overlap);
      const at = numbered.get(point)!;
      const alone = whose[at.own]!;
      // The others only add to it.
      if (Math.sqrt(alone + shares ** 2) >= found.farthest) continue;
      found.add(point, Math.sqrt(alone + matched(theirs, at.others) + shares ** 2));
    }
    return found.weighted();
  };

  const pairs = bySize.get(1);
  const pairExcesses = new Map<string, number>();
  /** Excess of a pair over 1; every pair counts alike where no pair is among the sides. */
  const pairExcess = (own: Member, other: Member, overlap: number): number => {
    if (pairs === undefined) return 1;
    const key = `${own.workload}@${own.share}\n${setKey([other])}\n${overlap}`;
    let known = pairExcesses.get(key);
    if (known === undefined) {
      const found = near(own, [other], overlap, pairs);
      known = Math.max(leastExcess, Math.exp(mean(found, ({ contention }) => Math.log(contention))) - 1);
      pairExcesses.set(key, known);
    }
    return known;
  };
  const summed = (own: Member, others: readonly Member[], overlap: number): number =>
    others.reduce((sum, other) => sum + pairExcess(own, other, overlap), 0);
  const summedOf = new Map<Point, number>();
  const summedAt = (point: Point): number => {
    const known = summedOf.get(point) ?? summed(point.own, point.others, point.overlap);
    summedOf.set(point, known);
    return known;
  };
  /** Median of measured over summed excess at each size. */
  const growth = new Map(
    [...bySize].map(([size, among]) => {
      const ratios = among.map((point) => Math.max(0, point.contention - 1) / summedAt(point)).sort((a, b) => a - b);
      return [size, ratios[ratios.length >> 1]!];
    }),
  );

  const largest = Math.max(...growth.keys());
  /** Ratio of measured to summed excess at a size that is not among the sides. */
  const scaleTo = (size: number): number => {
    if (pairs === undefined) return growth.get(largest)!;
    return largest === 1 ? 1 : growth.get(largest)! ** ((size - 1) / (largest - 1));
  };

  return {
    contention(own, others, overlap) {
      const among = bySize.get(others.length);
      if (others.length === 1 && pairs !== undefined)
        return Math.exp(mean(near(own, others, overlap, pairs), ({ contention }) => Math.log(contention)));
      const here = summed(own, others, overlap);
      if (among === undefined) return 1 + here * scaleTo(others.length);
      return Math.exp(
        mean(near(own, others, overlap, among), (point) =>
          Math.log(1 + Math.max(0, point.contention - 1) * (here / summedAt(point))),
        ),
      );
    },
  };
}

/** The workloads of a point by number. */
interface Numbered {
  own: number;
  others: readonly number[];
}

interface Weighted {
  point: Point;
  weight: number;
}

/** The nearest points so far. */
class Nearest {
  private readonly best: { point: Point; distance: number }[] = [];

  /** Points at this distance or farther are not among them. */
  get farthest(): number {
    return this.best.length === nearest ? this.best[nearest - 1]!.distance : Infinity;
  }

  add(point: Point, distance: number): void {
    if (distance >= this.farthest) return;
    const { best } = this;
    let at = best.length;
    while (at > 0 && best[at - 1]!.distance > distance) at -= 1;
    best.splice(at, 0, { point, distance });
    if (best.length > nearest) best.pop();
  }

  /** By the inverse square of their distance. */
  weighted(): Weighted[] {
    return this.best.map(({ point, distance }) => ({ point, weight: 1 / (least + distance) ** 2 }));
  }
}

function mean(points: readonly Weighted[], value: (point: Point) => number): number {
  let [sum, total] = [0, 0];
  for (const { point, weight } of points) {
    sum += weight * value(point);
    total += weight;
  }
  return sum / total;
}

function distanceOf(one: string, other: string, { vectors }: Features): number {
  const [a, b] = [workloadName(one), workloadName(other)];
  if (a.source !== b.source) return otherSource;
  const [from, to] = [vectors.get(one), vectors.get(other)];
  if (from === undefined || to === undefined) return unknownDistance / (a.model === b.model ? 2 : 1);
  let sum = 0;
  for (let i = 0; i < from.length; i += 1) sum += (from[i]! - to[i]!) ** 2;
  return Math.sqrt(sum / from.length);
}

/** Least sum of squared distances over all ways to pair both lists, which are short and of equal length. */
function matched(squares: readonly Float64Array[], theirs: readonly number[]): number {
  const used = theirs.map(() => false);
  const from = (at: number): number => {
    if (at === squares.length) return 0;
    let best = Infinity;
    for (let i = 0; i < theirs.length; i += 1) {
      if (used[i]!) continue;
      used[i] = true;
      best = Math.min(best, squares[at]![theirs[i]!]! + from(at + 1));
      used[i] = false;
    }
    return best;
  };
  return from(0);
}
