import type { WantedSet } from './set-demands.js';

/** Thrown for what is no wanted set. */
export class WantedSetError extends Error {
  override name = 'WantedSetError';
}

/** A wanted set as JSON: no budget is null. */
export function encodeWantedSet({ maxSlowdowns, ...wanted }: WantedSet): string {
  return JSON.stringify({ ...wanted, maxSlowdowns: maxSlowdowns.map((bound) => (bound === Infinity ? null : bound)) });
}

/** Reads what `encodeWantedSet` gave: numbers that would spread are looked at. Throws WantedSetError. */
export function decodeWantedSet(text: string): WantedSet {
  const wanted = JSON.parse(text) as (WantedSet & { maxSlowdowns: (number | null)[] }) | null;
  const isSound =
    typeof wanted === 'object' &&
    wanted !== null &&
    [wanted.key, wanted.gpuType, wanted.mode].every((one) => typeof one === 'string') &&
    Number.isSafeInteger(wanted.asked) &&
    wanted.asked >= 0 &&
    Array.isArray(wanted.set) &&
    wanted.set.every((job) => typeof job.function === 'string' && typeof job.version === 'string' && job.batch >= 1) &&
    Array.isArray(wanted.maxSlowdowns) &&
    wanted.maxSlowdowns.length === wanted.set.length &&
    wanted.maxSlowdowns.every((bound) => bound === null || bound >= 1);
  if (!isSound) throw new WantedSetError('this is no set that a search is wanted for');
  return { ...wanted, maxSlowdowns: wanted.maxSlowdowns.map((bound) => bound ?? Infinity) };
}
