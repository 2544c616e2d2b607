import type { WorkloadFeatures } from '../predict/slowdown-predictor.js';
import type { BatchProfile, FunctionProfile } from './function-profiles.js';
import { keptOfBoth } from './kept-runs.js';

/** What an earlier life knew of a function, with what has been learned since: of another version that alone counts. */
export function mergedProfile(earlier: FunctionProfile, since: FunctionProfile): FunctionProfile {
  if (since.version !== '' && since.version !== earlier.version) return since;
  const features = mostOf(earlier.features, since.features);
  const use = features && { features };
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
  const both = { startMs: keptOfBoth(earlier.startMs, since.startMs), ...(beside.length > 0 && { beside }) };
  // What was measured alone is better than what was worked out.
  if (earlier.isAlone !== since.isAlone) return { ...(earlier.isAlone ? earlier : since), ...both };
  return { ...since, soloMs: keptOfBoth(earlier.soloMs, since.soloMs), ...both };
}

function mostOf(one: WorkloadFeatures | undefined, other: WorkloadFeatures | undefined): WorkloadFeatures | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return {
    smUtil: Math.max(one.smUtil, other.smUtil),
    dramUtil: Math.max(one.dramUtil, other.dramUtil),
    l2Util: Math.max(one.l2Util, other.l2Util),
  };
}
