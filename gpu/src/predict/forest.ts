/* eslint-disable @typescript-eslint/no-non-null-assertion -- nodes are indices of the arrays of a forest, members of the rows and columns of a table */
import { randomFraction, seededRandom, type Random } from '@gpuwhisk/common/system/random';
import {
  bestSplits,
  randomSplits,
  squared,
  type Impurity,
  type NewImpurity,
  type SampleTable,
  type Split,
  type SplitSearch,
} from './split-search.js';

/** How a forest is grown. */
export interface ForestOptions {
  trees: number;
  /** Questions between a root and a leaf, at most. */
  maxDepth: number;
  /** Samples in a leaf, at least. */
  minLeaf: number;
  /** What a tree minimises; absent: squared distances to the mean. */
  impurity?: NewImpurity;
  /** Features that a node tries, fraction of those that vary in it (at least one). */
  featureFraction: number;
  /** Whether each tree draws as many samples as there are, with repetition; otherwise it sees each once. */
  bootstrap: boolean;
  /** `best`: every threshold is tried; `random`: one a feature, drawn. */
  thresholds: 'best' | 'random';
  seed: number;
}

/**
 * Trees in flat arrays. Node n asks whether `x[feature] > threshold`; no leads to its child, yes to the node after that:
 *
 *     asks[2n]            feature (8 bits) and child (24 bits)
 *     thresholds[2n + 1]  the threshold, in the same 8 bytes of memory, so that a step waits for memory once
 *
 * A leaf asks nothing that could be answered yes (its threshold is infinite) and leads to itself, so that every walk may
 * take `depth` steps without looking where it is.
 */
export interface Forest {
  featureCount: number;
  /** Steps from a root after which every walk has reached its leaf. */
  depth: number;
  roots: Int32Array;
  asks: Int32Array;
  /** Over the same buffer as `asks`. */
  thresholds: Float32Array;
  /** Of a leaf: what it predicts. Of other nodes: what it would, were it a leaf. */
  value: Float64Array;
  /** Part of all loss removed by each feature's questions; sums to 1, or is 0 where no tree asks anything. */
  importances: Float64Array;
}

/** The child of a node is in the low bits of what it asks, the feature in the high ones. */
export const childBits = 24;
const childMask = 2 ** childBits - 1;
/** Features and nodes that fit in there. */
const mostFeatures = 255;

/**
 * A random forest regressor (Breiman 2001), or extremely randomized trees by the options. The same input and seed give
 * the same forest. Features are told apart in single precision. Throws RangeError for no rows, rows of unequal length, or a value that is not finite.
 */
export function trainForest(
  rows: readonly ArrayLike<number>[],
  targets: ArrayLike<number>,
  options: ForestOptions,
): Forest {
  const table = tableOf(rows, targets);
  const grower = newGrower(table, options);
  const seeds = seededRandom(options.seed);
  const roots = Int32Array.from({ length: options.trees }, () => grower.grow(seededRandom(seeds.uint32())));
  return grower.finish(roots);
}

/**
 * Mean of what the trees say. An input that is not a number counts as below every threshold. Five trees are walked at
 * a time, as each step waits for memory, and the answer is added as a number, as a jump would be guessed wrong half the
 * time: together three times as fast as a loop that stops at leaves.
 */
export function predictForest(forest: Forest, x: ArrayLike<number>): number {
  const { roots, asks, thresholds, value, depth } = forest;
  const step = (node: number): number => {
    const ask = asks[2 * node]!;
    return (ask & childMask) + Number(x[ask >>> childBits]! > thresholds[2 * node + 1]!);
  };
  let sum = 0;
  let tree = 0;
  for (; tree + 4 < roots.length; tree += 5) {
    let a = roots[tree]!;
    let b = roots[tree + 1]!;
    let c = roots[tree + 2]!;
    let d = roots[tree + 3]!;
    let e = roots[tree + 4]!;
    for (let level = 0; level < depth; level += 1) {
      a = step(a);
      b = step(b);
      c = step(c);
      d = step(d);
      e = step(e);
    }
    sum += value[a]! + value[b]! + value[c]! + value[d]! + value[e]!;
  }
  for (; tree < roots.length; tree += 1) {
    let node = roots[tree]!;
    for (let level = 0; level < depth; level += 1) node = step(node);
    sum += value[node]!;
  }
  return sum / roots.length;
}

function tableOf(rows: readonly ArrayLike<number>[], targets: ArrayLike<number>): SampleTable {
  const width = rows[0]?.length ?? 0;
  if (rows.length === 0 || rows.length !== targets.length || width === 0) {
    throw new RangeError(
      `A forest needs rows and a target each, not ${rows.length} rows and ${targets.length} targets.`,
    );
  }
  if (width > mostFeatures) throw new RangeError(`A forest takes ${mostFeatures} features, not ${width}.`);
  const columns = Array.from({ length: width }, () => new Float32Array(rows.length));
  rows.forEach((row, i) => {
    if (row.length !== width) throw new RangeError(`Row ${i} has ${row.length} features instead of ${width}.`);
    for (let feature = 0; feature < width; feature += 1) columns[feature]![i] = row[feature]!;
  });
  const table = { count: rows.length, columns, targets: Float64Array.from(targets) };
  for (const column of [...columns, table.targets]) {
    const bad = column.findIndex((value: number) => !Number.isFinite(value));
    if (bad >= 0) throw new RangeError(`Row ${bad} holds ${column[bad]}: a forest learns from finite values only.`);
  }
  return table;
}

interface Grower {
  /** Adds a tree; returns its root. */
  grow(random: Random): number;
  finish(roots: Int32Array): Forest;
}

function newGrower(table: SampleTable, options: ForestOptions): Grower {
  const feature: number[] = [];
  const child: number[] = [];
  const threshold: number[] = [];
  const value: number[] = [];
  const gains = new Float64Array(table.columns.length);
  const { impurity = squared, minLeaf } = options;
  const here = impurity(table.count);
  let deepest = 0;

  const addLeaf = (): number => {
    const node = feature.push(0) - 1;
    child.push(node);
    threshold.push(Infinity);
    value.push(0);
    return node;
  };
  const divide = (node: number, members: Int32Array, depth: number, search: SplitSearch, random: Random): void => {
    const loss = summarise(here, members, table.targets);
    value[node] = here.centre();
    deepest = Math.max(deepest, depth);
    if (depth >= options.maxDepth || members.length < 2 * minLeaf || loss <= 1e-12) return;
    const split = chooseSplit(members, table.columns.length, options.featureFraction, search, random);
    if (!split || split.loss >= loss) return;
    gains[split.feature]! += loss - split.loss;
    const [low, high] = [addLeaf(), addLeaf()];
    feature[node] = split.feature;
    child[node] = low;
    threshold[node] = split.threshold;
    const column = table.columns[split.feature]!;
    divide(
      low,
      members.filter((member) => column[member]! <= split.threshold),
      depth + 1,
      search,
      random,
    );
    divide(
      high,
      members.filter((member) => column[member]! > split.threshold),
      depth + 1,
      search,
      random,
    );
  };

  const exact = options.thresholds === 'best' ? bestSplits(table, impurity, minLeaf) : undefined;
  return {
    grow(random) {
      const members = Int32Array.from({ length: table.count }, (_, i) =>
        options.bootstrap ? Math.floor(randomFraction(random) * table.count) : i,
      );
      const root = addLeaf();
      divide(root, members, 0, exact ?? randomSplits(table, impurity, minLeaf, random), random);
      return root;
    },
    finish(roots) {
      if (feature.length > childMask) throw new RangeError(`A forest of ${feature.length} nodes is too large.`);
      const total = gains.reduce((sum, gain) => sum + gain, 0);
      const { buffer } = new Int32Array(2 * feature.length);
      const asks = new Int32Array(buffer);
      const thresholds = new Float32Array(buffer);
      feature.forEach((asked, node) => {
        asks[2 * node] = (asked << childBits) | child[node]!;
        thresholds[2 * node + 1] = threshold[node]!;
      });
      return {
        featureCount: table.columns.length,
        depth: deepest,
        roots,
        asks,
        thresholds,
        value: Float64Array.from(value),
        importances: gains.map((gain) => (total > 0 ? gain / total : 0)),
      };
    },
  };
}

function summarise(impurity: Impurity, members: Int32Array, targets: Float64Array): number {
  impurity.reset();
  for (const member of members) impurity.push(targets[member]!);
  return impurity.loss();
}

/** The best split over features in random order, of which those that cannot divide the members do not count. */
function chooseSplit(
  members: Int32Array,
  featureCount: number,
  fraction: number,
  search: SplitSearch,
  random: Random,
): Split | undefined {
  const tries = Math.max(1, Math.round(fraction * featureCount));
  const order = Array.from({ length: featureCount }, (_, feature) => feature);
  let best: Split | undefined;
  let tried = 0;
  for (let i = 0; i < featureCount && tried < tries; i += 1) {
    const j = i + Math.floor(randomFraction(random) * (featureCount - i));
    [order[i], order[j]] = [order[j]!, order[i]!];
    const split = search(members, order[i]!);
    if (!split) continue;
    tried += 1;
    if (!best || split.loss < best.loss) best = split;
  }
  return best;
}
