// Sizes of inputs, in buckets: times alone are compared between runs with inputs of about one size only.

/** The size of a run's input. */
export interface InputSize {
  /** Bytes of the parameters as JSON, or the number that the function reports by `gpuwhisk.size(n)`. */
  value: number;
  /** The function has reported it. */
  isReported?: true;
}

/** Sizes up to a power of two and above the one before it. */
export interface InputBucket {
  unit: 'bytes' | 'reported';
  /** The largest size in it; 0: only inputs of size 0. */
  upTo: number;
}

/** Parameters of fewer bytes are one bucket: their length says little about the work. */
const leastBytes = 256;
/** Reported sizes below and above count as these. */
const [leastReported, mostReported] = [2 ** -64, 2 ** 64];

/** The bucket of a size. A reported size that is no finite number of at least 0 counts as 0. */
export function bucketOf({ value, isReported }: InputSize): InputBucket {
  if (isReported !== true) return { unit: 'bytes', upTo: powerOfTwo(Math.max(leastBytes, value)) };
  if (!(value > 0 && Number.isFinite(value))) return { unit: 'reported', upTo: 0 };
  return { unit: 'reported', upTo: powerOfTwo(Math.min(mostReported, Math.max(leastReported, value))) };
}

/** Whether both are one bucket; undefined is the bucket of runs whose size is not known. */
export function isSameBucket(one: InputBucket | undefined, other: InputBucket | undefined): boolean {
  return one?.unit === other?.unit && one?.upTo === other?.upTo;
}

/** The least power of two that is not below a number. */
const powerOfTwo = (value: number): number => 2 ** Math.ceil(Math.log2(value));

/** A bucket with the time that runs in it took, ms. */
export interface TimeOfBucket {
  bucket: InputBucket;
  ms: number;
}

/**
 * The time that a bucket is predicted to take by other buckets of its unit, ms: between two of them a straight line in
 * logarithms, else the time of the nearest one. Undefined if no other bucket is of its unit.
 */
export function timeByNeighbours(wanted: InputBucket, known: readonly TimeOfBucket[]): number | undefined {
  const alike = known
    .filter(({ bucket }) => bucket.unit === wanted.unit)
    .toSorted((one, other) => one.bucket.upTo - other.bucket.upTo);
  const above = alike.find(({ bucket }) => bucket.upTo >= wanted.upTo);
  const below = alike.findLast(({ bucket }) => bucket.upTo <= wanted.upTo);
  if (above === undefined || below === undefined) return (above ?? below)?.ms;
  // A bucket of size 0 has no logarithm.
  if (above === below || below.bucket.upTo === 0) return wanted.upTo === below.bucket.upTo ? below.ms : above.ms;
  const part = Math.log2(wanted.upTo / below.bucket.upTo) / Math.log2(above.bucket.upTo / below.bucket.upTo);
  return below.ms * (above.ms / below.ms) ** part;
}
