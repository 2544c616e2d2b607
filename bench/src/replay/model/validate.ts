import { fitModel, predictPair } from './fit.js';
import type { IgniterData, PairSide } from './igniter.js';

/** Mean absolute error of the slowdown on pairs that were kept out of the fit. */
export interface Validation {
  leftOut: 'pair' | 'model';
  model: number;
  /** Of the mean slowdown of what the fit saw, whatever runs. */
  constant: number;
}

/**
 * Fits without each pair (or each model, with all its pairs) in turn and predicts it; the constant predictor, which
 * ignores what runs, is told beside it.
 */
export function validate(data: IgniterData, leftOut: Validation['leftOut']): Validation {
  const groups =
    leftOut === 'pair'
      ? [...new Set(data.pairs.map(({ pair }) => pair))].map((name) => (one: PairSide) => one.pair === name)
      : [...new Set(data.pairs.map(({ model }) => model))].map(
          (name) => (one: PairSide) => one.model === name || one.neighbour.model === name,
        );
  let modelError = 0;
  let constantError = 0;
  let count = 0;
  for (const isOut of groups) {
    const seen = data.pairs.filter((one) => !isOut(one));
    const parameters = fitModel({ ...data, pairs: seen });
    const mean = seen.reduce((sum, { slowdown }) => sum + slowdown, 0) / seen.length;
    for (const one of data.pairs.filter(isOut)) {
      modelError += Math.abs(predictPair(parameters, one, data.power) - one.slowdown);
      constantError += Math.abs(mean - one.slowdown);
      count += 1;
    }
  }
  return { leftOut, model: modelError / count, constant: constantError / count };
}
