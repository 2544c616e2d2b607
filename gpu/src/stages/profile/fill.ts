// The fill of a function: the part of the SMs with which it is as fast as with all of them, by each kind of
// measurement.
import { shareClasses } from '@gpuwhisk/common/gpu';
import type { BatchProfile, FiguresAtShare, FunctionProfile } from './function-profiles.js';

/**
 * Sources of a fill, the most trusted first:
 * `sample`, times of the function's sample alone at each share class;
 * `runs`, times of requests that ran alone at several share classes;
 * `launches`, blocks that the function launches alone at a share class over those at 100 %, as kernel tokens count them;
 * `gpm`, the chip's own counter of SM activity.
 * NVML's utilisation is no source: it is the part of the time in which a kernel ran, on however few SMs.
 */
export const fillSources = ['sample', 'runs', 'launches', 'gpm'] as const;
export type FillSource = (typeof fillSources)[number];

/** The smallest part of a GPU's SMs, 0 < part ≤ 1, with which a function alone is as fast as with all of them. */
export interface Fill {
  part: number;
  source: FillSource;
}

/** A figure of a function that ran alone in a process that was held to a share of the SMs, percent. */
export interface AtShare {
  share: number;
  value: number;
}

/** Times that differ by no more are equal. */
const tolerance = 0.02;

/** Part of its share from which on a function may be held back by it. */
const heldBackFrom = 0.9;

/**
 * The fill by times alone: the smallest measured share from which on all times are within 2 % of the time at 100 %. A
 * smaller share within 2 % does not count if a greater one is not. Undefined without a time at 100 %. Undefined also if
 * only the whole GPU is fast enough and the next smaller class was not measured, since that class might be.
 */
export function fillOfTimes(times: readonly AtShare[], source: 'sample' | 'runs'): Fill | undefined {
  const [whole, ...smaller] = fallingFromWhole(times);
  if (whole === undefined) return undefined;
  const firstSlower = smaller.findIndex(({ value }) => value > whole.value * (1 + tolerance));
  const fast = firstSlower < 0 ? smaller : smaller.slice(0, firstSlower);
  const share = fast.at(-1)?.share ?? whole.share;
  const below = shareClasses.findLast((one) => one < share);
  const isKnown = share < 100 || smaller.some((one) => one.share === below);
  return isKnown ? { part: share / 100, source } : undefined;
}

/**
 * The fill by launch rates on a device that was busy all the time: share ÷ (rate ÷ rate at 100 %), of the greatest share
 * that holds the function back. The result is at most the next greater share. Undefined without a rate at 100 % and a
 * rate at a smaller share.
 */
export function fillOfLaunches(rates: readonly AtShare[]): Fill | undefined {
  const [whole, ...smaller] = fallingFromWhole(rates);
  const smallest = smaller.at(-1);
  if (whole === undefined || smallest === undefined || !(whole.value > 0)) return undefined;
  const partOf = ({ value }: AtShare): number => value / whole.value;
  const at = smaller.findIndex((one) => partOf(one) < 1 - tolerance);
  const held = smaller[at];
  if (held === undefined) return { part: smallest.share / 100, source: 'launches' };
  const bound = (smaller[at - 1] ?? whole).share / 100;
  return { part: Math.min(bound, held.share / 100 / partOf(held)), source: 'launches' };
}

/**
 * The fill by the SM activity of a device on which only this function computed, all the time. `limit` is the part of the
 * SMs that the function may use. Undefined if the function uses its limit up, since it may need more.
 */
export function fillOfActivity(smActivity: number | undefined, limit: number): Fill | undefined {
  if (smActivity === undefined || !(smActivity > 0)) return undefined;
  if (isHeldBack(smActivity, limit)) return undefined;
  return { part: Math.min(1, smActivity), source: 'gpm' };
}

/** Whether a function with this SM activity may be held back by its limit. */
export function isHeldBack(smActivity: number, limit: number): boolean {
  return limit < 1 && smActivity > heldBackFrom * limit;
}

/**
 * The fill of the more trusted source, or the later one of the same source. Of two fills by SM activity the greater counts:
 * pauses within a look make activity too small, and nothing makes it too great.
 */
export function betterFill(known: Fill | undefined, found: Fill | undefined): Fill | undefined {
  if (known === undefined || found === undefined) return known ?? found;
  const [before, now] = [known, found].map(({ source }) => fillSources.indexOf(source)) as [number, number];
  if (before !== now) return now < before ? found : known;
  return found.source === 'gpm' && found.part < known.part ? known : found;
}

/** Sorted by falling share; empty if there is no figure at 100 %. */
function fallingFromWhole(points: readonly AtShare[]): AtShare[] {
  const falling = points.toSorted((one, other) => other.share - one.share);
  return falling[0]?.share === 100 ? falling : [];
}

/** Least runs and total run time, ms, and least looks at launches before a share has a median. Record clocks tick in ms. */
const [leastRuns, leastTotalMs, leastLooks] = [3, 150, 3];

/** The fill by times of runs alone at several shares, or undefined if these do not determine it. */
export function fillByRuns(profile: FunctionProfile): Fill | undefined {
  return greatest(profile, timesOf, (times) => fillOfTimes(times, 'runs'));
}

/** The fill by launch rates alone at several shares, or undefined if these do not determine it. */
export function fillByLaunches(profile: FunctionProfile): Fill | undefined {
  return greatest(profile, ratesOf, fillOfLaunches);
}

/** Keeps a figure among the last ones of its share. */
export function keepAt(figures: FiguresAtShare[], share: number, value: number): void {
  const known = figures.find((one) => one.share === share);
  if (known !== undefined) keep(known.values, value);
  else if (figures.length < shareClasses.length) figures.push({ share, values: [value] });
}

/** The fill that a profile has, or undefined. */
export function fillOf({
  features,
  fillSource: source,
}: Pick<FunctionProfile, 'features' | 'fillSource'>): Fill | undefined {
  const part = features?.smUtil;
  return part === undefined || source === undefined ? undefined : { part, source };
}

/** Replaces a profile's fill by a better one; returns whether the profile changed. */
export function takeFill(profile: FunctionProfile, found: Fill | undefined): boolean {
  const before = fillOf(profile);
  const better = betterFill(before, found);
  if (better === undefined || (better.part === before?.part && better.source === before.source)) return false;
  profile.fillSource = better.source;
  takeFigure(profile, 'smUtil', better.part);
  return true;
}

/** Sets a figure; returns whether it changed. Replaces the features object, since predictions are cached by it. */
export function takeFigure(profile: FunctionProfile, name: string, value: number | undefined): boolean {
  if (value === undefined || profile.features?.[name] === value) return false;
  profile.features = { ...profile.features, [name]: value };
  return true;
}

/** The greatest fill of any size of batch. */
function greatest(
  { batches }: FunctionProfile,
  figuresOf: (batch: BatchProfile) => AtShare[],
  of: (figures: AtShare[]) => Fill | undefined,
): Fill | undefined {
  const fills = batches.flatMap((one) => of(figuresOf(one)) ?? []);
  return fills.toSorted((one, other) => other.part - one.part)[0];
}

const timesOf = ({ timesAlone = [] }: BatchProfile): AtShare[] =>
  mediansOf(timesAlone.filter(({ values }) => values.length >= leastRuns && totalOf(values) >= leastTotalMs));

const ratesOf = ({ launchRates = [] }: BatchProfile): AtShare[] =>
  mediansOf(launchRates.filter(({ values }) => values.length >= leastLooks));

const totalOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

const mediansOf = (figures: readonly FiguresAtShare[]): AtShare[] =>
  figures.flatMap(({ share, values }) => {
    const value = median(values);
    return value === undefined ? [] : [{ share, value }];
  });

/** Runs of each size of batch that count. */
const keptRuns = 16;

/** Adds what was seen last; what was seen before the last 16 goes. */
export function keep<Value>(values: Value[], value: Value): void {
  values.push(value);
  if (values.length > keptRuns) values.shift();
}

/** The last 16 values of those that an earlier process kept, followed by those of this one. */
export function keptOfBoth<Value>(earlier: readonly Value[], since: readonly Value[]): Value[] {
  return [...earlier, ...since].slice(-keptRuns);
}

/** The greater one of two in the middle; undefined of nothing. */
export function median(values: readonly number[]): number | undefined {
  return values.toSorted((one, other) => one - other)[values.length >> 1];
}
