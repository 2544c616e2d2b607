// The form in which a model of forecasts is stored.
import { inputCounts, type InputKind } from './forecast-inputs.js';
import { lstmSize, type Lstm } from './lstm.js';
import type { LsLstmModel } from './ls-lstm.js';

const format = 'gpuwhisk request forecast';
/** Counts every change of the weights' layout or of the inputs. */
const formatVersion = 1;

/** Thrown for data that is no model, is damaged, or is of another version. */
export class ForecastFormatError extends Error {
  override name = 'ForecastFormatError';

  constructor(reason: string) {
    super(`This is no usable forecast model: ${reason}. Train a new one.`);
  }
}

interface StoredLstm {
  inputs: number;
  hidden: number;
  outputs: number;
  /** Float64, little-endian, in base64. */
  weights: string;
}

/** A stored model: plain data for JSON. */
export interface StoredForecast {
  format: typeof format;
  version: number;
  inputs: InputKind;
  short: StoredLstm;
  long?: StoredLstm;
}

/** The model as plain data for JSON. */
export function storedForecast({ inputs, short, long }: LsLstmModel): StoredForecast {
  const stored = ({ weights, ...shape }: Lstm): StoredLstm => ({
    ...{ inputs: shape.inputs, hidden: shape.hidden, outputs: shape.outputs },
    weights: Buffer.from(weights.buffer, weights.byteOffset, weights.byteLength).toString('base64'),
  });
  return { format, version: formatVersion, inputs, short: stored(short), ...(long && { long: stored(long) }) };
}

/** The model of stored data. Throws ForecastFormatError for another format, version, shape, or weights not finite. */
export function restoredForecast(data: unknown): LsLstmModel {
  if (typeof data !== 'object' || data === null) throw new ForecastFormatError('it is no object');
  const stored = data as Partial<StoredForecast>;
  if (stored.format !== format) throw new ForecastFormatError(`its format is '${String(stored.format)}'`);
  if (stored.version !== formatVersion) {
    throw new ForecastFormatError(`its version is ${String(stored.version)}, and ${formatVersion} is read`);
  }
  const { inputs, short, long } = stored;
  if (inputs === undefined || !(inputs in inputCounts)) {
    throw new ForecastFormatError(`there are no inputs '${String(inputs)}'`);
  }
  return {
    inputs,
    short: restoredLstm(short, 'short', inputs),
    ...(long !== undefined && { long: restoredLstm(long, 'long', inputs) }),
  };
}

function restoredLstm(stored: StoredLstm | undefined, window: 'short' | 'long', kind: InputKind): Lstm {
  if (typeof stored !== 'object' || stored === null) throw new ForecastFormatError(`it has no ${window} model`);
  const { inputs, hidden, outputs, weights: text } = stored;
  const expected = { inputs: inputCounts[kind][window], outputs: kind === 'counts' ? 1 : 2 };
  if (inputs !== expected.inputs || outputs !== expected.outputs || !Number.isInteger(hidden) || hidden < 1) {
    const shape = `${String(inputs)} inputs, ${String(hidden)} units and ${String(outputs)} outputs`;
    const wanted = `${expected.inputs} inputs and ${expected.outputs} outputs`;
    throw new ForecastFormatError(`its ${window} model has ${shape} instead of ${wanted}`);
  }
  const bytes = Buffer.from(typeof text === 'string' ? text : '', 'base64');
  const count = lstmSize({ inputs, hidden, outputs });
  if (bytes.length !== count * Float64Array.BYTES_PER_ELEMENT) {
    throw new ForecastFormatError(`its ${window} model has ${bytes.length / 8} weights instead of ${count}`);
  }
  // A copy: the bytes of a Buffer need not be aligned.
  const weights = new Float64Array(new Uint8Array(bytes).buffer);
  if (!weights.every(Number.isFinite)) throw new ForecastFormatError(`its ${window} model has weights not finite`);
  return { inputs, hidden, outputs, weights };
}
