/* eslint-disable @typescript-eslint/no-non-null-assertion -- indices follow from the shape, which fixes the arrays' lengths */
// Truncated backpropagation through time (Williams and Peng 1990) and Adam (Kingma and Ba 2015) for an LSTM.
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import { kept, newState, stepLstm, type Lstm, type LstmState } from './lstm.js';

/** A series to learn from. */
export interface LstmSeries {
  /** Steps × inputs of the LSTM. */
  inputs: Float64Array;
  steps: number;
}

/**
 * Loss of the outputs of step `step` of series `series`. Its derivatives by the outputs are written to `slopes`, which
 * holds zeros. A step without a target has loss 0.
 */
export type StepLoss = (series: number, step: number, outputs: Float64Array, slopes: Float64Array) => number;

/** How an LSTM is trained. */
export interface TrainingOptions {
  /** Adam steps. */
  updates: number;
  /** Sequences that a step learns from at once. */
  lanes: number;
  /** Steps in time that a gradient goes back. */
  window: number;
  /** Adam's step size at the start; it falls linearly to a twentieth. */
  rate: number;
  seed: number;
}

/**
 * Adds the gradient of the loss over steps `from` to `from + steps` to `gradient`, and moves `state` to the end of these
 * steps. Nothing flows back beyond `from`. Returns the sum of the losses.
 */
export function addGradient(
  lstm: Lstm,
  { series, of, from, steps }: { series: LstmSeries; of: number; from: number; steps: number },
  state: LstmState,
  loss: StepLoss,
  gradient: Float64Array,
): number {
  const { inputs, hidden, outputs, weights } = lstm;
  const [width, head] = [inputs + hidden + 1, 4 * hidden * (inputs + hidden + 1)];
  const gates = new Float64Array(steps * kept * hidden);
  const states = new Float64Array((steps + 1) * 2 * hidden);
  const slopes = new Float64Array(steps * outputs);
  states.set(state);
  const out = new Float64Array(outputs);
  let sum = 0;
  for (let step = 0; step < steps; step += 1) {
    const ofStep = gates.subarray(step * kept * hidden, (step + 1) * kept * hidden);
    stepLstm(lstm, state, series.inputs, (from + step) * inputs, out, ofStep);
    states.set(state, (step + 1) * 2 * hidden);
    sum += loss(of, from + step, out, slopes.subarray(step * outputs, (step + 1) * outputs));
  }
  // Derivatives by the outputs and the cells of the units, and by the sums that enter the gates.
  const byH = new Float64Array(hidden);
  const byC = new Float64Array(hidden);
  const before = new Float64Array(hidden);
  for (let step = steps - 1; step >= 0; step -= 1) {
    const now = (step + 1) * 2 * hidden;
    const last = step * 2 * hidden;
    for (let output = 0, row = head; output < outputs; output += 1, row += hidden + 1) {
      const slope = slopes[step * outputs + output]!;
      if (slope === 0) continue;
      for (let k = 0; k < hidden; k += 1) {
        gradient[row + k]! += slope * states[now + k]!;
        byH[k]! += slope * weights[row + k]!;
      }
      gradient[row + hidden]! += slope;
    }
    before.fill(0);
    const x = (from + step) * inputs;
    for (let unit = 0; unit < hidden; unit += 1) {
      const gate = (step * hidden + unit) * kept;
      const [i, f, o] = [gates[gate]!, gates[gate + 1]!, gates[gate + 2]!];
      const [g, squashed] = [gates[gate + 3]!, gates[gate + 4]!];
      const cell = byC[unit]! + byH[unit]! * o * (1 - squashed * squashed);
      byC[unit] = cell * f;
      const di = cell * g * i * (1 - i);
      const df = cell * states[last + hidden + unit]! * f * (1 - f);
      const dO = byH[unit]! * squashed * o * (1 - o);
      const dg = cell * i * (1 - g * g);
      const iRow = 4 * unit * width;
      const [fRow, oRow, gRow] = [iRow + width, iRow + 2 * width, iRow + 3 * width];
      for (let k = 0; k < inputs; k += 1) {
        const value = series.inputs[x + k]!;
        gradient[iRow + k]! += di * value;
        gradient[fRow + k]! += df * value;
        gradient[oRow + k]! += dO * value;
        gradient[gRow + k]! += dg * value;
      }
      for (let k = 0, column = inputs; k < hidden; k += 1, column += 1) {
        const value = states[last + k]!;
        gradient[iRow + column]! += di * value;
        gradient[fRow + column]! += df * value;
        gradient[oRow + column]! += dO * value;
        gradient[gRow + column]! += dg * value;
        before[k]! +=
          di * weights[iRow + column]! +
          df * weights[fRow + column]! +
          dO * weights[oRow + column]! +
          dg * weights[gRow + column]!;
      }
      gradient[iRow + width - 1]! += di;
      gradient[fRow + width - 1]! += df;
      gradient[oRow + width - 1]! += dO;
      gradient[gRow + width - 1]! += dg;
    }
    byH.set(before);
  }
  return sum;
}

/** A sequence in training: where it is, and its state there. */
interface Lane {
  of: number;
  from: number;
  state: LstmState;
}

/** A gradient longer than this is shortened to it, so that one burst does not undo what was learned. */
const longestGradient = 1;

/**
 * The LSTM after training; the given one stays as it is. Each lane walks through a series with its state carried on,
 * and enters a series, chosen by length, at a random step with an empty state once one has ended. The same arguments
 * give the same weights. Throws RangeError if there is no series with a step.
 */
export function trainLstm(lstm: Lstm, all: readonly LstmSeries[], loss: StepLoss, options: TrainingOptions): Lstm {
  const { updates, lanes, window, rate, seed } = options;
  const total = all.reduce((sum, { steps }) => sum + steps, 0);
  if (total === 0) throw new RangeError('There is no series to learn from.');
  const random = seededRandom(seed);
  const enter = (): Lane => {
    let step = Math.floor(randomFraction(random) * total);
    let of = 0;
    while (step >= all[of]!.steps) step -= all[of++]!.steps;
    return { of, from: step, state: newState(lstm) };
  };
  const running = Array.from({ length: lanes }, enter);
  const trained = { ...lstm, weights: lstm.weights.slice() };
  const adam = newAdam(trained.weights);
  const gradient = new Float64Array(trained.weights.length);
  for (let update = 0; update < updates; update += 1) {
    gradient.fill(0);
    let seen = 0;
    for (const [at, { of, from, state }] of running.entries()) {
      const series = all[of]!;
      const steps = Math.min(window, series.steps - from);
      addGradient(trained, { series, of, from, steps }, state, loss, gradient);
      seen += steps;
      running[at] = from + steps >= series.steps ? enter() : { of, from: from + steps, state };
    }
    for (let at = 0; at < gradient.length; at += 1) gradient[at]! /= seen;
    adam(gradient, rate * (1 - (0.95 * update) / updates));
  }
  return trained;
}

/** Adam on `weights` with the paper's constants. */
function newAdam(weights: Float64Array): (gradient: Float64Array, rate: number) => void {
  const [first, second] = [0.9, 0.999];
  const mean = new Float64Array(weights.length);
  const square = new Float64Array(weights.length);
  let [firstPower, secondPower] = [1, 1];
  return (gradient, rate) => {
    firstPower *= first;
    secondPower *= second;
    const norm = Math.sqrt(gradient.reduce((sum, one) => sum + one * one, 0));
    const scale = norm > longestGradient ? longestGradient / norm : 1;
    for (let at = 0; at < weights.length; at += 1) {
      const slope = gradient[at]! * scale;
      mean[at] = first * mean[at]! + (1 - first) * slope;
      square[at] = second * square[at]! + (1 - second) * slope * slope;
      const spread = Math.sqrt(square[at]! / (1 - secondPower)) + 1e-8;
      weights[at]! -= (rate * mean[at]!) / (1 - firstPower) / spread;
    }
  };
}
