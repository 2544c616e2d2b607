/** Java's hash of a string: OpenWhisk's choice of a home invoker goes by it. */
export function javaHash(text: string): number {
  let hash = 0;
  for (let at = 0; at < text.length; at++) hash = (Math.imul(hash, 31) + text.charCodeAt(at)) | 0;
  return hash;
}

/** The hash of an action as a namespace calls it; `action` is `ns/pkg/name` without a leading slash. */
export function shardHash(namespace: string, action: string): number {
  return Math.abs(javaHash(namespace) ^ javaHash(action));
}

/** Of the counts that were asked for last: they change when invokers come. */
const knownSizes = new Map<number, readonly number[]>();
const maxKnownSizes = 16;

/** Numbers from 1 to `count` that have no divisor in common, neither with `count` nor with each other. */
export function stepSizes(count: number): readonly number[] {
  const known = knownSizes.get(count);
  if (known !== undefined) return known;
  if (knownSizes.size === maxKnownSizes) knownSizes.clear();
  const sizes = findStepSizes(count);
  knownSizes.set(count, sizes);
  return sizes;
}

function findStepSizes(count: number): number[] {
  const sizes: number[] = [];
  for (let size = 1; size <= count; size++) {
    if (divisor(size, count) === 1 && sizes.every((other) => divisor(size, other) === 1)) sizes.push(size);
  }
  return sizes;
}

function divisor(a: number, b: number): number {
  return b === 0 ? a : divisor(b, a % b);
}

/**
 * The order in which `count` invokers are asked for an action (OpenWhisk's ShardingContainerPoolBalancer): from its home
 * on, in steps that lead past all of them.
 */
export function* probes(hash: number, count: number): Generator<number> {
  const sizes = stepSizes(count);
  const step = sizes[hash % sizes.length] ?? 1;
  for (let probe = 0, at = hash % count; probe <= count + 1; probe++, at = (at + step) % count) yield at;
}

/** The shares of invokers: of managed runtimes those in front, of images of users' own those behind. */
export function shareOf<Invoker>(invokers: readonly Invoker[], isBlackbox: boolean): readonly Invoker[] {
  const count = invokers.length;
  return isBlackbox
    ? invokers.slice(count - Math.max(1, Math.floor(count * 0.1)))
    : invokers.slice(0, Math.max(1, Math.ceil(count * 0.9)));
}
