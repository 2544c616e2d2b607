import type { ComparedRun, FunctionProfile } from './function-profiles.js';

/** Thrown for what is no profile. */
export class ProfileFormatError extends Error {
  override name = 'ProfileFormatError';
}

const isTime = (value: unknown): boolean => typeof value === 'number' && value >= 0 && Number.isFinite(value);
const isPart = (value: unknown): boolean => typeof value === 'number' && value >= 0 && value <= 1;
const areTimes = (values: unknown): boolean => Array.isArray(values) && values.every(isTime);
const areCompared = (runs: unknown): boolean =>
  Array.isArray(runs) && runs.every((run: ComparedRun | null) => areTimes([run?.predicted, run?.measured]));

/** A stored profile: numbers that would spread are looked at. Throws ProfileFormatError. */
export function readProfile(value: unknown): FunctionProfile {
  const profile = value as FunctionProfile | null;
  const isSound =
    typeof profile === 'object' &&
    profile !== null &&
    [profile.function, profile.gpuType, profile.mode, profile.version].every((text) => typeof text === 'string') &&
    Array.isArray(profile.batches) &&
    profile.batches.every(
      ({ batch, soloMs, isAlone, startMs, beside = [] }) =>
        Number.isInteger(batch) &&
        areTimes(soloMs) &&
        typeof isAlone === 'boolean' &&
        areTimes(startMs) &&
        areCompared(beside),
    ) &&
    (profile.features === undefined ||
      [profile.features.smUtil, profile.features.dramUtil, profile.features.l2Util].every(isPart));
  if (!isSound) throw new ProfileFormatError('this is no profile');
  return profile;
}
