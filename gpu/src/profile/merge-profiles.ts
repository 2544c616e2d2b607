import { betterFill, keptOfBoth, fillOf } from './fill.js';
import type { BatchProfile, FiguresAtShare, FunctionProfile } from './function-profiles.js';

/** What an earlier life knew of a function, with what has been learned since: of another version that alone counts. */
export function mergedProfile(earlier: FunctionProfile, since: FunctionProfile): FunctionProfile {
  if (since.version !== '' && since.version !== earlier.version) return since;
  const use = mergedFeatures(earlier, since);
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
