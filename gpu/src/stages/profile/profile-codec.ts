// Stored profiles: reading, and merging with measurements since.
import { z } from 'zod';
import { fillSources, betterFill, keptOfBoth, fillOf } from './fill.js';
import type { FeatureRecord } from '../../predict/slowdown-predictor.js';
import { isSameBucket } from '../../view/input-size.js';
import type { BatchProfile, FiguresAtShare, FunctionProfile } from './function-profiles.js';

/** Figures that are parts of a GPU. */
const parts: readonly string[] = ['smUtil', 'dramUtil', 'l2Util'];

const text = z.string();
const time = z.number().nonnegative();
const times = z.array(time);
const atShares = z.array(z.object({ share: time, values: times.min(1) })).nullish();
const sharesSchema = z
  .object({
    ...{ request: z.int().positive(), limit: z.int().max(1000), batch: z.int().positive() },
    ...{ ms: time, limitMs: time.nullish(), keepsGoal: z.boolean(), reason: text },
  })
  .refine(({ request, limit }) => request <= limit);
const profileSchema = z.object({
  ...{ function: text, gpuType: text, mode: text, version: text },
  batches: z.array(
    z.object({
      inputs: z.object({ unit: z.enum(['bytes', 'reported']), upTo: time }).optional(),
      ...{ batch: z.int(), soloMs: times, isAlone: z.boolean(), startMs: times },
      beside: z.array(z.object({ predicted: time, measured: time })).nullish(),
      ...{ timesAlone: atShares, launchRates: atShares },
    }),
  ),
  shares: sharesSchema.optional(),
  features: z
    .record(text, z.number())
    .refine((features) => parts.every((name) => time.max(1).optional().safeParse(features[name]).success))
    .optional(),
});

/** A stored profile: numbers that would spread are looked at. Throws RangeError. */
export function readProfile(value: unknown): FunctionProfile {
  if (!profileSchema.safeParse(value).success) throw new RangeError('this is no profile');
  return withToldFeatures(value as FunctionProfile);
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
  const only = earlier.batches.filter((before) => !since.batches.some((one) => isAlike(one, before)));
  const both = since.batches.map((one) => {
    const before = earlier.batches.find((other) => isAlike(one, other));
    return before === undefined ? one : mergedBatch(before, one);
  });
  return { ...since, ...use, batches: [...only, ...both] };
}

/** Whether both are of runs with equal batches and inputs of about one size. */
function isAlike(one: BatchProfile, other: BatchProfile): boolean {
  return one.batch === other.batch && isSameBucket(one.inputs, other.inputs);
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
