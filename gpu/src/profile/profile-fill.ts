import { shareClasses } from '@gpuwhisk/common/gpu';
import { betterFill, fillOfLaunches, fillOfTimes } from './fill.js';
import type { AtShare, Fill } from './fill.js';
import type { BatchProfile, FiguresAtShare, FunctionProfile } from './function-profiles.js';
import { keep, median } from './kept-runs.js';

/** Runs at a share, and time of them, and looks at launches, before they tell what is typical there: clocks tick in ms. */
const [leastRuns, leastTotalMs, leastLooks] = [3, 150, 3];

/** The fill by the times that a function's runs took alone at several shares; undefined: they do not tell. */
export function fillByRuns(profile: FunctionProfile): Fill | undefined {
  return greatest(profile, timesOf, (times) => fillOfTimes(times, 'runs'));
}

/** The fill by what it launched alone at several shares; undefined: that does not tell. */
export function fillByLaunches(profile: FunctionProfile): Fill | undefined {
  return greatest(profile, ratesOf, fillOfLaunches);
}

/** Keeps a figure among the last ones of its share. */
export function keepAt(figures: FiguresAtShare[], share: number, value: number): void {
  const known = figures.find((one) => one.share === share);
  if (known !== undefined) keep(known.values, value);
  else if (figures.length < shareClasses.length) figures.push({ share, values: [value] });
}

/** The fill of a profile as it is known; undefined where it is not. */
export function fillOf({
  features,
  fillSource: source,
}: Pick<FunctionProfile, 'features' | 'fillSource'>): Fill | undefined {
  const part = features?.smUtil;
  return part === undefined || source === undefined ? undefined : { part, source };
}

/** Takes a fill over if it is better than the one there is; returns whether that changes anything. */
export function takeFill(profile: FunctionProfile, found: Fill | undefined): boolean {
  const before = fillOf(profile);
  const better = betterFill(before, found);
  if (better === undefined || (better.part === before?.part && better.source === before.source)) return false;
  profile.fillSource = better.source;
  takeFigure(profile, 'smUtil', better.part);
  return true;
}

/** Notes a figure; returns whether it is another. Features are made anew, since predictions are remembered by them. */
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
