/* eslint-disable @typescript-eslint/no-non-null-assertion -- indices run below the length of arrays of as many parameters */

/** A function to minimise: returns its value at `at` and writes its gradient into `gradient`, which it finds filled with zeros. */
export type Objective = (at: Float64Array, gradient: Float64Array) => number;

const [decay1, decay2, tiny] = [0.9, 0.99, 1e-9];
const [firstStep, lastStep] = [0.08, 0.004];

/**
 * The point that `steps` steps of Adam (Kingma and Ba, 2015) reach from `start`, with a step that falls geometrically. The
 * same arguments give the same point. Throws RangeError if the function's value is no finite number.
 */
export function minimise(start: Float64Array, steps: number, objective: Objective): Float64Array {
  const at = Float64Array.from(start);
  const gradient = new Float64Array(at.length);
  const mean = new Float64Array(at.length);
  const square = new Float64Array(at.length);
  for (let step = 1; step <= steps; step += 1) {
    gradient.fill(0);
    const value = objective(at, gradient);
    if (!Number.isFinite(value)) throw new RangeError(`the fit diverged after ${step} steps`);
    const rate = firstStep * (lastStep / firstStep) ** (step / steps);
    const [correction1, correction2] = [1 - decay1 ** step, 1 - decay2 ** step];
    for (let i = 0; i < at.length; i += 1) {
      const slope = gradient[i]!;
      mean[i] = decay1 * mean[i]! + (1 - decay1) * slope;
      square[i] = decay2 * square[i]! + (1 - decay2) * slope * slope;
      at[i]! -= (rate * (mean[i]! / correction1)) / (Math.sqrt(square[i]! / correction2) + tiny);
    }
  }
  return at;
}
