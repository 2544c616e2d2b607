import type { DeviceMode } from '@gpuwhisk/common/gpu';
import type { QuotaJob } from './quotas.js';

/** Batches up to a power of two are one: 1, 2, 3–4, 5–8 and so on. */
function batchBucket(batch: number): number {
  return batch <= 1 ? 1 : 2 ** (32 - Math.clz32(Math.ceil(batch) - 1));
}

/** What a table calls a job. */
export function jobId({ function: name, version, batch }: QuotaJob): string {
  return `${name}@${version}#${batchBucket(batch)}`;
}

/** The GPUs that a row may be used on. */
export function placeKey(gpuType: string, mode: DeviceMode): string {
  return `${gpuType}/${mode}`;
}

/** What a table calls a row. */
export function rowKey({
  gpuType,
  mode,
  jobs,
}: {
  gpuType: string;
  mode: DeviceMode;
  jobs: readonly { id: string }[];
}): string {
  return [placeKey(gpuType, mode), ...jobs.map(({ id }) => id)].join(' ');
}

/** A set in a table's order. */
export interface OrderedSet {
  key: string;
  ids: readonly string[];
  /** By place in that order, the place in the set as it was given. */
  places: readonly number[];
}

/** Brings a set into a table's order: by id, and jobs of one id by `rank`, the least first. */
export function ordered(
  set: readonly QuotaJob[],
  gpuType: string,
  mode: DeviceMode,
  rank: readonly number[],
): OrderedSet {
  const unsorted = set.map(jobId);
  const places: number[] = [];
  // Insertion: sets are small, and this is on the way of every decision.
  for (let place = 0; place < set.length; place += 1) {
    let at = place;
    while (at > 0 && isBefore(unsorted, rank, place, places[at - 1]!)) {
      places[at] = places[at - 1]!;
      at -= 1;
    }
    places[at] = place;
  }
  const ids = places.map((place) => unsorted[place]!);
  let key = placeKey(gpuType, mode);
  for (const id of ids) key += ` ${id}`;
  return { key, ids, places };
}

function isBefore(ids: readonly string[], rank: readonly number[], one: number, other: number): boolean {
  const [id, otherId] = [ids[one]!, ids[other]!];
  return id < otherId || (id === otherId && rank[one]! < rank[other]!);
}
