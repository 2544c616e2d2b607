// Pair models as plain JSON.
import { featureSets } from './degradation-features.js';
import { base64, bytesOf, decodeForest, encodeArrays, encodeForest, type ForestDocument } from './forest-codec.js';
import type { Forest } from './forest.js';
import type { PairModel, PairPart } from './pair-degradation.js';
import { mostCentres, type PairKernel } from './pair-kernel.js';
import { forestWidth, type PairRegression, type Plane, type RegressionKind } from './pair-regression.js';
import { ModelFormatError } from './slowdown-model.js';

const format = 'gpuwhisk pair degradation model';
const formatVersion = 1;

/** A pair model as plain JSON; arrays of numbers are in base64. */
export interface PairModelDocument extends Omit<PairModel, 'parts'> {
  format: string;
  formatVersion: number;
  parts: PartDocument[];
}

interface PartDocument extends Omit<PairPart, 'typical' | 'regression'> {
  /** Names of the set's features when the model was learned. */
  features: readonly string[];
  typical: string;
  kind: RegressionKind;
  forest?: ForestDocument;
  plane?: { means: string; factors: string; slopes: string; mean: number };
  kernel?: Record<'means' | 'factors' | 'own' | 'other' | 'ownOf' | 'otherOf' | 'heights', string> &
    Record<'mean' | 'product' | 'shrink', number>;
}

/** The model as plain JSON. */
export function encodePairModel({ parts, ...rest }: PairModel): PairModelDocument {
  return {
    format,
    formatVersion,
    ...rest,
    parts: parts.map(({ set, sampleCount, typical, most, errors, regression }) => ({
      set,
      features: featureSets[set],
      sampleCount,
      typical: base64(typical),
      most,
      errors,
      kind: regression.kind,
      ...('forest' in regression && { forest: encodeForest(regression.forest) }),
      ...('plane' in regression && { plane: planeDocument(regression.plane) }),
      ...('kernel' in regression && { kernel: kernelDocument(regression.kernel) }),
    })),
  };
}

/**
 * Reads what `encodePairModel` wrote. Throws ModelFormatError, with the reason, for another format or version, other features,
 * or a document that is not whole.
 */
export function decodePairModel(document: unknown): PairModel {
  const found = document as Partial<PairModelDocument> | null;
  if (typeof found !== 'object' || found?.format !== format) {
    throw new ModelFormatError(`its format is not '${format}'`);
  }
  if (found.formatVersion !== formatVersion) {
    throw new ModelFormatError(`its format has version ${String(found.formatVersion)} instead of ${formatVersion}`);
  }
  const { gpuType, mode, victim, neighbour, version, seed, counts, mean, parts } = found as PairModelDocument;
  if (!Array.isArray(parts) || parts.length === 0) throw new ModelFormatError('it has no parts');
  if (!Number.isFinite(mean)) throw new ModelFormatError('its mean is no number');
  return { gpuType, mode, victim, neighbour, version, seed, counts, mean, parts: parts.map(whole) };
}

function whole(document: PartDocument): PairPart {
  try {
    return partOf(document);
  } catch (error) {
    if (error instanceof ModelFormatError) throw error;
    // A field that is missing, or bytes that are no array of numbers.
    throw new ModelFormatError(`it is not whole (${(error as Error).message})`);
  }
}

function partOf({ features, kind, typical: text, ...document }: PartDocument): PairPart {
  const { set, sampleCount, most, errors } = document;
  const names: readonly string[] | undefined = featureSets[set];
  if (names?.join() !== features.join()) {
    throw new ModelFormatError(`its features of set '${set}' are ${features.join(', ')}`);
  }
  const width = names.length;
  const typical = numbers(text, width, 'typical features');
  if (!(most >= 0) || !Number.isFinite(most)) throw new ModelFormatError('its greatest degradation is no number');
  return { set, sampleCount, typical, most, errors, regression: regressionOf(kind, document, width) };
}

function regressionOf(
  kind: RegressionKind,
  document: Pick<PartDocument, 'forest' | 'plane' | 'kernel'>,
  width: number,
): PairRegression {
  switch (kind) {
    case 'forest':
    case 'bagging':
      return { kind, forest: forestOf(document.forest, forestWidth(kind, width)) };
    case 'blend':
      return {
        kind,
        forest: forestOf(document.forest, forestWidth(kind, width)),
        kernel: kernelOf(document.kernel, width),
      };
    case 'ridge':
      return { kind, plane: planeOf(document.plane, width) };
    default:
      throw new ModelFormatError(`its regression '${String(kind)}' is unknown`);
  }
}

function forestOf(document: ForestDocument | undefined, width: number): Forest {
  const forest = document && decodeForest(document, width);
  if (forest === undefined) throw new ModelFormatError('its forest is not whole');
  return forest;
}

function planeDocument({ scaling, mean, slopes }: Plane): NonNullable<PartDocument['plane']> {
  return { means: base64(scaling.means), factors: base64(scaling.factors), slopes: base64(slopes), mean };
}

function planeOf(document: PartDocument['plane'], width: number): Plane {
  if (document === undefined || !Number.isFinite(document.mean)) throw new ModelFormatError('its plane is not whole');
  const read = (name: 'means' | 'factors' | 'slopes'): Float64Array => numbers(document[name], 2 * width, 'plane');
  return { scaling: { means: read('means'), factors: read('factors') }, mean: document.mean, slopes: read('slopes') };
}

function kernelDocument({
  scaling,
  mean,
  product,
  shrink,
  ...arrays
}: PairKernel): NonNullable<PartDocument['kernel']> {
  return { mean, product, shrink, ...encodeArrays({ ...scaling, ...arrays }) };
}

function kernelOf(document: PartDocument['kernel'], width: number): PairKernel {
  if (document === undefined) throw new ModelFormatError('its kernel is not whole');
  const { mean, product, shrink } = document;
  const kernel = {
    scaling: {
      means: numbers(document.means, width, 'kernel'),
      factors: numbers(document.factors, width, 'kernel'),
    },
    mean,
    product,
    shrink,
    own: new Float64Array(bytesOf(document.own)),
    other: new Float64Array(bytesOf(document.other)),
    ownOf: new Int32Array(bytesOf(document.ownOf)),
    otherOf: new Int32Array(bytesOf(document.otherOf)),
    heights: new Float64Array(bytesOf(document.heights)),
  };
  const within = (indices: Int32Array, sides: Float64Array): boolean =>
    indices.length === kernel.heights.length &&
    indices.length <= mostCentres &&
    sides.length <= mostCentres * width &&
    sides.length % width === 0 &&
    indices.every((index) => index >= 0 && (index + 1) * width <= sides.length);
  const isWhole = within(kernel.ownOf, kernel.own) && within(kernel.otherOf, kernel.other);
  if (!isWhole || ![mean, product, shrink].every((value) => Number.isFinite(value))) {
    throw new ModelFormatError('its kernel is not whole');
  }
  return kernel;
}

/** `count` finite numbers. */
function numbers(text: string, count: number, what: string): Float64Array {
  const array = new Float64Array(bytesOf(text));
  if (array.length !== count || !array.every((value) => Number.isFinite(value))) {
    throw new ModelFormatError(`its ${what} are not whole`);
  }
  return array;
}
