import { shareClasses } from '@gpuwhisk/common/gpu';
import { betterFill, fillOfLaunches, fillOfTimes } from './fill.js';
import type { AtShare, Fill } from './fill.js';
import type { BatchProfile, FiguresAtShare, FunctionProfile } from './function-profiles.js';
import { keep, median } from './kept-runs.js';

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
  figures.map(({ share, values }) => ({ share, value: median(values)! }));
