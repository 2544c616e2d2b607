// Features of one side of a pair for predictions of degradation: names, checks, and the row that regressions read.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- rows have an element for each name of their set */
import type { FeatureRecord } from './slowdown-predictor.js';

/**
 * The twelve features of SMORE's table III (thesis, table 3.1), as keys of a FeatureRecord, in the order of the table:
 *
 * | key | meaning |
 * | --- | --- |
 * | `flops` | floating-point operations of one sample, forward pass |
 * | `params` | parameters |
 * | `memoryMiB` | device memory of the process, MiB |
 * | `activations` | activation operators |
 * | `convLayers`, `linearLayers` | layers of that kind |
 * | `batch` | samples of a step or a request |
 * | `normLayers`, `reluLayers`, `embedLayers`, `poolLayers`, `dropoutLayers` | layers of that kind |
 */
export const staticFeatureNames = [
  'flops',
  'params',
  'memoryMiB',
  'activations',
  'convLayers',
  'linearLayers',
  'batch',
  'normLayers',
  'reluLayers',
  'embedLayers',
  'poolLayers',
  'dropoutLayers',
] as const;

/** What runs alone show beside memory and batch: fractions of the GPU, ms of a step or a request, and settings. */
const soloFeatureNames = ['smUtil', 'dramUtil', 'l2Util', 'soloMs', 'share', 'mixedPrecision'] as const;

/**
 * The sets of features that a model may read. `static`: the paper's twelve a side. `measured`: for records without a
 * model's definition, from runs alone. `all`: both.
 */
export const featureSets = {
  all: [...staticFeatureNames, ...soloFeatureNames],
  static: staticFeatureNames,
  measured: ['memoryMiB', 'batch', ...soloFeatureNames],
} as const;

/** Name of a set of features. */
export type FeatureSet = keyof typeof featureSets;

/** Set names in the order in which predictions prefer them. */
export const featureSetNames = Object.keys(featureSets) as FeatureSet[];

interface Kind {
  /** Greatest value that is believed. */
  most: number;
  /** Whether regressions read log(1 + value). */
  log: boolean;
}

const layers: Kind = { most: 1e5, log: true };
/** Utilisations are measured, and a little more than all of a GPU is rounding. */
const fraction: Kind = { most: 1.05, log: false };

const kinds: Readonly<Record<(typeof featureSets.all)[number], Kind>> = {
  flops: { most: 1e17, log: true },
  params: { most: 1e13, log: true },
  memoryMiB: { most: 1e7, log: true },
  activations: layers,
  convLayers: layers,
  linearLayers: layers,
  batch: { most: 1e7, log: true },
  normLayers: layers,
  reluLayers: layers,
  embedLayers: layers,
  poolLayers: layers,
  dropoutLayers: layers,
  smUtil: fraction,
  dramUtil: fraction,
  l2Util: fraction,
  soloMs: { most: 1e9, log: true },
  share: fraction,
  mixedPrecision: { most: 1, log: false },
};

/** The value of a feature, or undefined if it is absent, no number, negative or above the greatest believed value. */
function valueOf(record: FeatureRecord, name: keyof typeof kinds): number | undefined {
  const value = record[name];
  return value !== undefined && value >= 0 && value <= kinds[name].most ? value : undefined;
}

/** How many features of the sets `record` has with a value that is not believed: NaN, negative, or absurdly great. */
export function featureFaults(record: FeatureRecord): number {
  return featureSets.all.filter((name) => record[name] !== undefined && valueOf(record, name) === undefined).length;
}

/** The features of the sets that `record` has with a value that is believed. */
export function believedFeatures(record: FeatureRecord): FeatureRecord {
  return Object.fromEntries(
    featureSets.all.flatMap((name) => {
      const value = valueOf(record, name);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** The sets that both records have. */
export function commonSets(one: FeatureRecord, other: FeatureRecord): FeatureSet[] {
  return featureSetNames.filter((set) => hasSet(one, set) && hasSet(other, set));
}

/** Whether the record has what `set` cannot do without: `flops` and `params`, and `smUtil` or `soloMs`. */
export function hasSet(record: FeatureRecord, set: FeatureSet): boolean {
  const isStatic = valueOf(record, 'flops') !== undefined && valueOf(record, 'params') !== undefined;
  const isMeasured = valueOf(record, 'smUtil') !== undefined || valueOf(record, 'soloMs') !== undefined;
  return (set === 'measured' || isStatic) && (set === 'static' || isMeasured);
}

const encoded = new WeakMap<FeatureRecord, Partial<Record<FeatureSet, Float64Array>>>();

/**
 * The row of one side: an element for each name of `set`, log(1 + value) for counts, sizes and times, the value itself
 * for fractions. `flops` is multiplied by the batch: the operations of a step. NaN where the record has no value that is
 * believed. The same array for the same record.
 */
export function sideRow(record: FeatureRecord, set: FeatureSet): Float64Array {
  let rows = encoded.get(record);
  if (rows === undefined) encoded.set(record, (rows = {}));
  return (rows[set] ??= encode(record, set));
}

function encode(record: FeatureRecord, set: FeatureSet): Float64Array {
  const names = featureSets[set];
  const row = new Float64Array(names.length);
  for (let at = 0; at < names.length; at += 1) {
    const name = names[at]!;
    const value = valueOf(record, name);
    if (value === undefined) row[at] = NaN;
    else if (name === 'flops') row[at] = Math.log1p(value * Math.max(1, valueOf(record, 'batch') ?? 1));
    else row[at] = kinds[name].log ? Math.log1p(value) : value;
  }
  return row;
}

/** Column means of the values that are there; 0 for a column without any, so that it is constant. */
export function typicalSide(sides: readonly Float64Array[], width: number): Float64Array {
  const sums = new Float64Array(width);
  const counts = new Float64Array(width);
  for (const side of sides) {
    side.forEach((value, at) => {
      if (Number.isNaN(value)) return;
      sums[at]! += value;
      counts[at]! += 1;
    });
  }
  return sums.map((sum, at) => (counts[at]! > 0 ? sum / counts[at]! : 0));
}

/** The row X = φ(own) ⊕ φ(other) of equation 3.1; typical values stand for absent ones. */
export function pairRow(own: Float64Array, other: Float64Array, typical: Float64Array): Float64Array {
  const width = typical.length;
  const row = new Float64Array(2 * width);
  for (let at = 0; at < width; at += 1) {
    row[at] = Number.isNaN(own[at]!) ? typical[at]! : own[at]!;
    row[width + at] = Number.isNaN(other[at]!) ? typical[at]! : other[at]!;
  }
  return row;
}
