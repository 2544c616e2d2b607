import { createHash } from 'node:crypto';
import type { DeviceMode } from '@gpuwhisk/common/gpu';
import type { Forest } from './forest.js';
import { faashareFeatureNames } from './slowdown-predictor.js';
import type { ModelKey, SlowdownModel } from './slowdown-model.js';
import type { SmoothRegression } from './smooth-regression.js';

const format = 'gpuwhisk slowdown model';
const formatVersion = 1;

/** Thrown for a text that is no model, is damaged, or is of another version. */
export class ModelFormatError extends Error {
  override name = 'ModelFormatError';

  constructor(reason: string) {
    super(`This is no usable slowdown model: ${reason}.`);
  }
}

interface Body {
  gpuType: string;
  mode: DeviceMode;
  version: number;
  sampleCount: number;
  seed: number;
  features: readonly string[];
  forest: Record<'roots' | 'feature' | 'child' | 'threshold' | 'value' | 'importances', string> & { depth: number };
  smooth: Record<'means' | 'factors' | 'slopes' | 'centres' | 'heights', string> & { mean: number; length: number };
}

/** A model as text: a line with format, version and digest, and a line of JSON with numbers in base64. */
export function encodeModel(model: SlowdownModel): string {
  const { forest, smooth } = model.regression;
  const body: Body = {
    gpuType: model.gpuType,
    mode: model.mode,
    version: model.version,
    sampleCount: model.sampleCount,
    seed: model.seed,
    features: faashareFeatureNames,
    forest: {
      depth: forest.depth,
      roots: base64(forest.roots),
      feature: base64(forest.feature),
      child: base64(forest.child),
      threshold: base64(forest.threshold),
      value: base64(forest.value),
      importances: base64(forest.importances),
    },
    smooth: {
      mean: smooth.mean,
      length: smooth.length,
      means: base64(smooth.scaling.means),
      factors: base64(smooth.scaling.factors),
      slopes: base64(smooth.slopes),
      centres: base64(smooth.centres),
      heights: base64(smooth.heights),
    },
  };
  const line = JSON.stringify(body);
  return `${JSON.stringify({ format, formatVersion, sha256: digest(line) })}\n${line}\n`;
}

/** Reads what `encodeModel` wrote. Throws ModelFormatError. */
export function decodeModel(text: string): SlowdownModel {
  const [head = '', line = ''] = text.split('\n', 2);
  const header = parsed(head) as { format?: unknown; formatVersion?: unknown; sha256?: unknown } | null;
  if (header?.format !== format) throw new ModelFormatError(`it does not begin with the format '${format}'`);
  if (header.formatVersion !== formatVersion) {
    throw new ModelFormatError(`its format has version ${String(header.formatVersion)} instead of ${formatVersion}`);
  }
  if (header.sha256 !== digest(line)) throw new ModelFormatError('it is damaged: its SHA-256 is another');
  const body = parsed(line) as Body;
  if (body.features.join() !== faashareFeatureNames.join()) {
    throw new ModelFormatError(`its features are ${body.features.join(', ')}`);
  }
  const { gpuType, mode, version, sampleCount, seed } = body;
  const regression = { forest: forestOf(body.forest), smooth: smoothOf(body.smooth) };
  return { gpuType, mode, version, sampleCount, seed, regression };
}

/**
 * The model in `text`, or one learned anew by `retrain` where the text is unusable or of another GPU type or mode, with
 * the reason. Throws what `retrain` throws.
 */
export function openModel(
  text: string,
  key: ModelKey,
  retrain: () => SlowdownModel,
): { model: SlowdownModel; refused?: string } {
  try {
    const model = decodeModel(text);
    if (model.gpuType === key.gpuType && model.mode === key.mode) return { model };
    throw new ModelFormatError(`it is of ${model.gpuType}/${model.mode} instead of ${key.gpuType}/${key.mode}`);
  } catch (error) {
    if (!(error instanceof ModelFormatError)) throw error;
    return { model: retrain(), refused: error.message };
  }
}

function forestOf({ depth, ...arrays }: Body['forest']): Forest {
  const forest = {
    featureCount: faashareFeatureNames.length,
    depth,
    roots: new Int32Array(bytesOf(arrays.roots)),
    feature: new Int16Array(bytesOf(arrays.feature)),
    child: new Int32Array(bytesOf(arrays.child)),
    threshold: new Float64Array(bytesOf(arrays.threshold)),
    value: new Float64Array(bytesOf(arrays.value)),
    importances: new Float64Array(bytesOf(arrays.importances)),
  };
  const nodes = forest.value.length;
  const alike = [forest.feature, forest.child, forest.threshold].every((array) => array.length === nodes);
  const inside = forest.roots.every((root) => root >= 0 && root < nodes);
  // The step behind a child is taken only where its parent asks something.
  const led = forest.child.every(
    (child, node) => child >= 0 && child + (forest.threshold[node] === Infinity ? 0 : 1) < nodes,
  );
  const asked = forest.feature.every((feature) => feature >= 0 && feature < forest.featureCount);
  if (!alike || !inside || !led || !asked || forest.roots.length === 0 || !(depth >= 0 && depth <= 64)) {
    throw new ModelFormatError('its forest is not whole');
  }
  return forest;
}

function smoothOf({ mean, length, ...arrays }: Body['smooth']): SmoothRegression {
  const width = faashareFeatureNames.length;
  const [means, factors, slopes, centres, heights] = (
    ['means', 'factors', 'slopes', 'centres', 'heights'] as const
  ).map((name) => new Float64Array(bytesOf(arrays[name]))) as [
    Float64Array,
    Float64Array,
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  const wide = [means, factors, slopes].every((array) => array.length === width);
  if (!wide || centres.length !== width * heights.length || !(length > 0) || !Number.isFinite(mean)) {
    throw new ModelFormatError('its regression is not whole');
  }
  return { scaling: { means, factors }, mean, length, slopes, centres, heights };
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line) as unknown;
  } catch (error) {
    throw new ModelFormatError(`it is no JSON (${(error as Error).message})`);
  }
}

const digest = (line: string): string => createHash('sha256').update(line).digest('hex');

const base64 = (array: Int16Array | Int32Array | Float64Array): string =>
  Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString('base64');

/** A buffer of its own, so that typed arrays over it are aligned. */
function bytesOf(text: string): ArrayBuffer {
  return Uint8Array.from(Buffer.from(text, 'base64')).buffer;
}
