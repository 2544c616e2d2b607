// Forests as plain JSON: typed arrays in base64, since JSON has no infinity, and checks of what is read back.
import { childBits, type Forest } from './forest.js';

/** A forest as plain JSON; the number of features stands in the document around it. */
export interface ForestDocument {
  depth: number;
  roots: string;
  nodes: string;
  value: string;
  importances: string;
}

/** The forest as plain JSON. */
export function encodeForest(forest: Forest): ForestDocument {
  return {
    depth: forest.depth,
    roots: base64(forest.roots),
    nodes: base64(forest.asks),
    value: base64(forest.value),
    importances: base64(forest.importances),
  };
}

/** Reads what `encodeForest` wrote; undefined if a walk through the forest could leave it. */
export function decodeForest(document: ForestDocument, featureCount: number): Forest | undefined {
  const { depth } = document;
  const nodes = bytesOf(document.nodes);
  const forest = {
    featureCount,
    depth,
    roots: new Int32Array(bytesOf(document.roots)),
    asks: new Int32Array(nodes),
    thresholds: new Float32Array(nodes),
    value: new Float64Array(bytesOf(document.value)),
    importances: new Float64Array(bytesOf(document.importances)),
  };
  const { roots, asks, thresholds, value } = forest;
  const sound = value.every((_, node) => {
    const ask = asks[2 * node] ?? 0;
    // The node behind the child is reached only where there is something to ask.
    const last = (ask & (2 ** childBits - 1)) + (thresholds[2 * node + 1] === Infinity ? 0 : 1);
    return last < value.length && ask >>> childBits < featureCount;
  });
  const rooted = roots.length > 0 && roots.every((root) => root >= 0 && root < value.length);
  return asks.length === 2 * value.length && sound && rooted && depth >= 0 && depth <= 64 ? forest : undefined;
}

/** The bytes of a typed array in base64. */
export const base64 = (array: Int16Array | Int32Array | Float64Array): string =>
  Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString('base64');

/** A buffer of its own, so that typed arrays over it are aligned. */
export function bytesOf(text: string): ArrayBuffer {
  return Uint8Array.from(Buffer.from(text, 'base64')).buffer;
}

type Numbers = Int32Array | Float64Array;

/** Arrays by their names, each in base64. */
export function encodeArrays<Name extends string>(arrays: Readonly<Record<Name, Numbers>>): Record<Name, string> {
  const texts = Object.entries<Numbers>(arrays).map(([name, array]) => [name, base64(array)]);
  return Object.fromEntries(texts) as Record<Name, string>;
}

/** Arrays of numbers that `encodeArrays` wrote. */
export function decodeNumbers<Name extends string>(texts: Readonly<Record<Name, string>>): Record<Name, Float64Array> {
  const arrays = Object.entries<string>(texts).map(([name, text]) => [name, new Float64Array(bytesOf(text))]);
  return Object.fromEntries(arrays) as Record<Name, Float64Array>;
}
