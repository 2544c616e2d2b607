// Stored profiles: reading, and merging with measurements since.
import { fillSources, betterFill, keptOfBoth, fillOf } from './fill.js';
import type { FeatureRecord } from '../../predict/slowdown-predictor.js';
import type { ShareProfile } from './trials.js';
import type { BatchProfile, ComparedRun, FiguresAtShare, FunctionProfile } from './function-profiles.js';

/** Thrown for what is no profile. */
export class ProfileFormatError extends Error {
  override name = 'ProfileFormatError';
}

const isTime = (value: unknown): boolean => typeof value === 'number' && value >= 0 && Number.isFinite(value);
const isPart = (value: unknown): boolean => isTime(value) && (value as number) <= 1;
const areTimes = (values: unknown): boolean => Array.isArray(values) && values.every(isTime);
const areCompared = (runs: unknown): boolean =>
  Array.isArray(runs) && runs.every((run: ComparedRun | null) => areTimes([run?.predicted, run?.measured]));
const areAtShares = (figures: unknown): boolean =>
  Array.isArray(figures) &&
  figures.every(
    (one: FiguresAtShare | null) =>
      isTime(one?.share) && Array.isArray(one?.values) && one.values.length > 0 && areTimes(one.values),
  );
const isBatch = ({ batch, soloMs, isAlone, startMs, ...figures }: BatchProfile): boolean =>
  Number.isInteger(batch) &&
  areTimes(soloMs) &&
  typeof isAlone === 'boolean' &&
  areTimes(startMs) &&
  areCompared(figures.beside ?? []) &&
  areAtShares(figures.timesAlone ?? []) &&
  areAtShares(figures.launchRates ?? []);

const isShares = (shares: ShareProfile | null): boolean =>
  shares !== null &&
  [shares.request, shares.limit, shares.batch].every((one) => Number.isSafeInteger(one) && one > 0) &&
  shares.request <= shares.limit &&
  shares.limit <= 1000 &&
  isTime(shares.ms) &&
  isTime(shares.limitMs ?? 0) &&
  typeof shares.keepsGoal === 'boolean' &&
  typeof shares.reason === 'string';

/** A stored profile: numbers that would spread are looked at. Throws ProfileFormatError. */
export function readProfile(value: unknown): FunctionProfile {
  const profile = value as FunctionProfile | null;
  const isSound =
    typeof profile === 'object' &&
    profile !== null &&
    [profile.function, profile.gpuType, profile.mode, profile.version].every((text) => typeof text === 'string') &&
    Array.isArray(profile.batches) &&
    profile.batches.every(isBatch) &&
    (profile.shares === undefined || isShares(profile.shares)) &&
    areFeatures(profile.features);
  if (!isSound) throw new ProfileFormatError('this is no profile');
  return withToldFeatures(profile);
}

/** Figures that are parts of a GPU. */
const parts: readonly string[] = ['smUtil', 'dramUtil', 'l2Util'];

function areFeatures(features: unknown): boolean {
  if (features === undefined) return true;
  if (typeof features !== 'object' || features === null) return false;
  return Object.entries(features).every(([name, figure]) =>
    parts.includes(name) ? isPart(figure) : Number.isFinite(figure),
  );
}

/**
 * The profile without figures that were never measured. Earlier versions stored a driver's utilisation as `smUtil`,
 * without a source, and 0 for figures that the driver lacks.
 */
function withToldFeatures({ features, fillSource, ...profile }: FunctionProfile): FunctionProfile {
  const source = fillSources.find((one) => one === fillSource);
  const told: FeatureRecord = Object.fromEntries(
    Object.entries(features ?? {}).filter(([name, figure]) =>
      name === 'smUtil' ? source !== undefined && figure > 0 : figure > 0 || !parts.includes(name),
    ),
  );
  return {
    ...profile,
    ...(Object.keys(told).length > 0 && { features: told }),
    ...(told.smUtil !== undefined && source !== undefined && { fillSource: source }),
  };
}

/** The profile that an earlier process stored, with measurements since; for another version only those count. */
export function mergedProfile(earlier: FunctionProfile, since: FunctionProfile): FunctionProfile {
  if (since.version !== '' && since.version !== earlier.version) return since;
  const shares = since.shares ?? earlier.shares;
  const use = { ...mergedFeatures(earlier, since), ...(shares !== undefined && { shares }) };
  // Only its processes were seen since.
  if (since.version === '') return { ...earlier, ...use };
  const only = earlier.batches.filter(({ batch }) => !since.batches.some((one) => one.batch === batch));
  const both = since.batches.map((one) => {
    const before = earlier.batches.find(({ batch }) => batch === one.batch);
    return before === undefined ? one : mergedBatch(before, one);
  });
  return { ...since, ...use, batches: [...only, ...both] };
}

function mergedBatch(earlier: BatchProfile, since: BatchProfile): BatchProfile {
  const beside = keptOfBoth(earlier.beside ?? [], since.beside ?? []);
  const timesAlone = mergedFigures(earlier.timesAlone, since.timesAlone);
  const launchRates = mergedFigures(earlier.launchRates, since.launchRates);
  const both = {
    startMs: keptOfBoth(earlier.startMs, since.startMs),
    ...(beside.length > 0 && { beside }),
    ...(timesAlone.length > 0 && { timesAlone }),
    ...(launchRates.length > 0 && { launchRates }),
  };
  // What was measured alone is better than what was worked out.
  if (earlier.isAlone !== since.isAlone) return { ...(earlier.isAlone ? earlier : since), ...both };
  return { ...since, soloMs: keptOfBoth(earlier.soloMs, since.soloMs), ...both };
}

function mergedFigures(earlier: FiguresAtShare[] = [], since: FiguresAtShare[] = []): FiguresAtShare[] {
  const shares = new Set([...earlier, ...since].map(({ share }) => share));
  const at = (figures: FiguresAtShare[], share: number): number[] =>
    figures.find((one) => one.share === share)?.values ?? [];
  return Array.from(shares, (share) => ({ share, values: keptOfBoth(at(earlier, share), at(since, share)) }));
}

/** The better fill of both profiles, and the greater one of each other figure. */
function mergedFeatures(
  earlier: FunctionProfile,
  since: FunctionProfile,
): Pick<FunctionProfile, 'features' | 'fillSource'> {
  const fill = betterFill(fillOf(earlier), fillOf(since));
  const figures = Object.entries({ ...earlier.features, ...since.features }).flatMap(([name, value]) =>
    name === 'smUtil' ? [] : [[name, Math.max(value, earlier.features?.[name] ?? value)] as const],
  );
  const features = { ...Object.fromEntries(figures), ...(fill !== undefined && { smUtil: fill.part }) };
  return {
    ...(Object.keys(features).length > 0 && { features }),
    ...(fill !== undefined && { fillSource: fill.source }),
  };
}
