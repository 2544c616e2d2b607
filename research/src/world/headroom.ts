/* eslint-disable @typescript-eslint/no-non-null-assertion -- indices are below the lengths of lists that were just counted */
// What sharing a GPU gains in measured sets. The work of a set is Σ alone/together over its processes; taking turns does 1.
import { randomFraction, seededRandom, shuffled } from '@gpuwhisk/common/system/random';
import type { Random } from '@gpuwhisk/common/system/random';
import { meanOf, median, percentile } from '@gpuwhisk/bench/statistics';
import { overlapOf, setKey } from './sets.js';
import type { MeasuredSet, Member } from './sets.js';

/** Distribution of a ratio over measured sets. */
export interface Distribution {
  count: number;
  p10: number;
  median: number;
  p90: number;
  /** Part of the sets below 1. */
  below: number;
}

/** The distribution of values; undefined for none. */
export function distribution(values: readonly number[]): Distribution | undefined {
  if (values.length === 0) return undefined;
  return {
    count: values.length,
    p10: percentile(values, 10),
    median: median(values),
    p90: percentile(values, 90),
    below: values.filter((value) => value < 1).length / values.length,
  };
}

/** Slowdowns of a set's members over their times alone on the whole device; undefined if one is unknown. */
function slowdownsOf({ members }: MeasuredSet): number[] | undefined {
  const found = members.map(({ contention, stretch }) =>
    contention === undefined || stretch === undefined ? undefined : contention * stretch,
  );
  return found.every((value) => value !== undefined) ? found : undefined;
}

/** Work of a set: Σ alone/together, or the summed times alone over the makespan; undefined if a part is unknown. */
export function workOf(set: MeasuredSet): number | undefined {
  if (set.makespan !== undefined) return 1 / set.makespan.overSum;
  return slowdownsOf(set)?.reduce((sum, slowdown) => sum + 1 / slowdown, 0);
}

const isWhole = ({ mode, members }: MeasuredSet): boolean =>
  members.length > 1 &&
  overlapOf(
    mode,
    members.map(({ share }) => share),
  ) === 1;

/** Work of sets of one size whose processes each have the whole device or slice. */
export function sharing(sets: readonly MeasuredSet[], size: number): Distribution | undefined {
  return distribution(
    knownWorks(sets.filter((set) => set.members.length === size && isWhole(set))).map(({ work }) => work),
  );
}

const knownWorks = (sets: readonly MeasuredSet[]): { set: MeasuredSet; work: number }[] =>
  sets.flatMap((set) => {
    const work = workOf(set);
    return work === undefined ? [] : [{ set, work }];
  });

const matchings = 40;
const [fewestWorkloads, mostWorkloads] = [4, 10];
const tries = 60;

/**
 * By how much the best division of ten workloads (all if there are fewer) into pairs does more than a random one, mean over draws, as a fraction. Only
 * pairs that were measured are made, and draws without such a division are left out; undefined if all are.
 */
export function partnerGain(sets: readonly MeasuredSet[], seed: number): number | undefined {
  const works = new Map<string, number>();
  for (const { set, work } of knownWorks(sets.filter((one) => one.members.length === 2 && isWhole(one))))
    works.set(setKey(set.members), work);
  const members = [
    ...new Map(
      sets
        .filter((set) => set.members.length === 2 && isWhole(set))
        .flatMap((set) => set.members.map((member) => [member.workload, member] as const)),
    ).values(),
  ];
  if (members.length < fewestWorkloads) return undefined;
  const count = Math.min(mostWorkloads, members.length - (members.length % 2));
  const random = seededRandom(seed);
  const gains: number[] = [];
  for (let draw = 0; draw < matchings; draw += 1) {
    const drawn = shuffled(members, random).slice(0, count);
    const work = drawn.map((one) => drawn.map((other) => works.get(setKey([one, other]))));
    const best = bestMatching(work);
    const randoms: number[] = [];
    for (let i = 0; i < tries; i += 1) {
      const sum = randomMatching(work, random);
      if (sum !== undefined) randoms.push(sum);
    }
    if (best !== undefined && randoms.length > 0) gains.push(best / meanOf(randoms) - 1);
  }
  return gains.length === 0 ? undefined : meanOf(gains);
}

type Works = readonly (readonly (number | undefined)[])[];

/** The greatest sum of a division into measured pairs, by dynamic programming over the sets of those left. */
function bestMatching(work: Works): number | undefined {
  const best = new Float64Array(1 << work.length).fill(-Infinity);
  best[0] = 0;
  for (let left = 1; left < best.length; left += 1) {
    const first = 31 - Math.clz32(left);
    for (let other = 0; other < first; other += 1) {
      const value = work[first]![other];
      if ((left & (1 << other)) === 0 || value === undefined) continue;
      best[left] = Math.max(best[left]!, value + best[left & ~(1 << first) & ~(1 << other)]!);
    }
  }
  const found = best.at(-1)!;
  return Number.isFinite(found) ? found : undefined;
}

/** The sum of one random division into measured pairs; undefined if it came to an end without a partner. */
function randomMatching(work: Works, random: Random): number | undefined {
  let left = shuffled(
    work.map((_, at) => at),
    random,
  );
  let sum = 0;
  while (left.length > 0) {
    const [first, ...rest] = left as [number, ...number[]];
    const partners = rest.filter((other) => work[first]![other] !== undefined);
    if (partners.length === 0) return undefined;
    const chosen = partners[Math.floor(randomFraction(random) * partners.length)]!;
    sum += work[first]![chosen]!;
    left = rest.filter((other) => other !== chosen);
  }
  return sum;
}

/** What quotas gain over the whole device for each. */
export interface QuotaGain {
  /** Work at the best measured quotas over that of the whole device for each. */
  work: Distribution;
  /** Greatest slowdown with the whole device for each over the least greatest slowdown at any measured quotas. */
  worseHit: Distribution;
  /** Work at half of the device for each over that of the whole device for each. */
  halves: Distribution | undefined;
}

/** The gain of quotas over pairs that were measured with the whole device for each and with at least three other quotas. */
export function quotaGain(sets: readonly MeasuredSet[]): QuotaGain | undefined {
  const byPair = new Map<string, { set: MeasuredSet; slowdowns: number[] }[]>();
  for (const set of sets) {
    const slowdowns = set.mode === 'mps' && set.members.length === 2 ? slowdownsOf(set) : undefined;
    if (slowdowns === undefined) continue;
    // Campaigns are not mixed: a pair is one run of rows with the same two workloads.
    const key = set.members.map(({ workload }) => workload).join(' + ');
    byPair.set(key, [...(byPair.get(key) ?? []), { set, slowdowns }]);
  }
  const [work, worseHit, halves]: [number[], number[], number[]] = [[], [], []];
  const sum = (slowdowns: readonly number[]): number => slowdowns.reduce((total, slowdown) => total + 1 / slowdown, 0);
  for (const found of byPair.values()) {
    const whole = found.filter(({ set }) => isWhole(set));
    const split = found.filter(({ set }) => !isWhole(set));
    if (whole.length === 0 || split.length < 3) continue;
    const wholeWork = median(whole.map(({ slowdowns }) => sum(slowdowns)));
    work.push(Math.max(...split.map(({ slowdowns }) => sum(slowdowns))) / wholeWork);
    worseHit.push(
      median(whole.map(({ slowdowns }) => Math.max(...slowdowns))) /
        Math.min(...split.map(({ slowdowns }) => Math.max(...slowdowns))),
    );
    const half = split.filter(({ set }) => set.members.every(({ share }) => share === 0.5));
    if (half.length > 0) halves.push(median(half.map(({ slowdowns }) => sum(slowdowns))) / wholeWork);
  }
  const [works, hits] = [distribution(work), distribution(worseHit)];
  return works && hits && { work: works, worseHit: hits, halves: distribution(halves) };
}

/** Work of sets of `size` over that of the best measured set of two among their members. */
export function overBestPair(sets: readonly MeasuredSet[], size: number): Distribution | undefined {
  const pairs = new Map<string, number[]>();
  for (const { set, work } of knownWorks(sets.filter((one) => one.members.length === 2 && isWhole(one)))) {
    const key = setKey(set.members);
    pairs.set(key, [...(pairs.get(key) ?? []), work]);
  }
  const ratios = knownWorks(sets.filter((set) => set.members.length === size && isWhole(set))).flatMap(
    ({ set, work }) => {
      const contained = pairsIn(set.members).flatMap((pair) => pairs.get(setKey(pair)) ?? []);
      return contained.length === 0 ? [] : [work / Math.max(...contained)];
    },
  );
  return distribution(ratios);
}

const pairsIn = (members: readonly Member[]): [Member, Member][] =>
  members.flatMap((one, i) => members.slice(i + 1).map((other): [Member, Member] => [one, other]));

/** Work of seven slices of one compute slice each over that of the whole device, by workload. */
export function sliceWork(sets: readonly MeasuredSet[], slices: number): Distribution | undefined {
  const smallest = 1 / slices;
  const values = sets.flatMap(({ mode, members }) => {
    const [only] = members;
    if (mode !== 'mig' || members.length > 1 || only?.stretch === undefined) return [];
    return Math.abs(only.share - smallest) < 1e-9 ? [slices / only.stretch] : [];
  });
  return distribution(values);
}
