import { describe, expect, test } from '@jest/globals';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import { kept, lstmSize, newLstm, newState, stepLstm } from './lstm.js';
import { addGradient, trainLstm, type LstmSeries, type StepLoss } from './lstm-training.js';

const shape = { inputs: 2, hidden: 5, outputs: 2 };

function seriesOf(steps: number, of: (step: number, input: number) => number): LstmSeries {
  return { steps, inputs: Float64Array.from({ length: steps * 2 }, (_, at) => of(at >> 1, at & 1)) };
}

/** Squared error of the second output against `target`. */
function squares(target: (step: number) => number): StepLoss {
  return (_, step, outputs, slopes) => {
    const error = outputs[1]! - target(step);
    slopes[1] = error;
    return (error * error) / 2;
  };
}

describe('an LSTM', () => {
  test('has the gradient of its loss, by finite differences', () => {
    const random = seededRandom(3);
    const series = seriesOf(12, () => 2 * randomFraction(random) - 1);
    const lstm = newLstm(shape, 7);
    const start = newState(shape).map(() => randomFraction(random) - 0.5);
    const loss: StepLoss = (of, step, outputs, slopes) => {
      slopes[0] = Math.cos(outputs[0]!);
      slopes[1] = outputs[1]! - step / 10;
      return Math.sin(outputs[0]!) + slopes[1] ** 2 / 2;
    };
    const part = { series, of: 0, from: 2, steps: 10 };
    const gradient = new Float64Array(lstmSize(shape));
    addGradient(lstm, part, start.slice(), loss, gradient);
    const moved = (at: number, by: number): number => {
      const weights = lstm.weights.slice();
      weights[at]! += by;
      return addGradient({ ...lstm, weights }, part, start.slice(), loss, new Float64Array(gradient.length));
    };
    for (let at = 0; at < gradient.length; at += 1) {
      const slope = (moved(at, 1e-5) - moved(at, -1e-5)) / 2e-5;
      expect(Math.abs(gradient[at]! - slope)).toBeLessThan(1e-6 * (1 + Math.abs(slope)));
    }
  });

  test('remembers an input over ten steps, which its last inputs do not tell', () => {
    const random = seededRandom(5);
    const series = seriesOf(2000, (_, input) => (input === 0 && randomFraction(random) < 0.1 ? 1 : 0));
    const since = new Float64Array(series.steps).fill(99);
    for (let step = 0; step < series.steps; step += 1) {
      since[step] = series.inputs[2 * step]! > 0 ? 0 : step > 0 ? since[step - 1]! + 1 : 99;
    }
    const target = (step: number): number => (since[step]! === 10 ? 1 : 0);
    const options = { updates: 400, lanes: 8, window: 40, rate: 0.02, seed: 1 };
    const trained = trainLstm(newLstm({ ...shape, hidden: 12 }, 1), [series], squares(target), options);
    const gradient = new Float64Array(trained.weights.length);
    const part = { series, of: 0, from: 0, steps: series.steps };
    const error = addGradient(trained, part, newState(trained), squares(target), gradient);
    const variance = since.filter((one) => one === 10).length / 2;
    expect(error).toBeLessThan(0.3 * variance);
  });

  test('is the same for the same seed, and leaves the given weights as they were', () => {
    const series = seriesOf(50, (step) => step % 3);
    const lstm = newLstm(shape, 2);
    const before = lstm.weights.slice();
    const options = { updates: 5, lanes: 2, window: 10, rate: 0.01, seed: 4 };
    const train = (): Float64Array =>
      trainLstm(
        lstm,
        [series],
        squares(() => 1),
        options,
      ).weights;
    expect(train()).toEqual(train());
    expect(lstm.weights).toEqual(before);
    expect(newLstm(shape, 2).weights).not.toEqual(newLstm(shape, 3).weights);
  });

  test('stays finite at huge inputs', () => {
    const lstm = newLstm(shape, 1);
    const out = new Float64Array(2);
    const state = newState(shape);
    stepLstm(lstm, state, [1e300, -1e300], 0, out, new Float64Array(kept * shape.hidden));
    expect([...out, ...state].every(Number.isFinite)).toBe(true);
  });

  test('refuses a shape that is none, and to learn from nothing', () => {
    expect(() => newLstm({ inputs: 0, hidden: 1, outputs: 1 }, 1)).toThrow('An LSTM has no shape of 0 units.');
    const options = { updates: 1, lanes: 1, window: 1, rate: 1, seed: 1 };
    const nothing = { inputs: new Float64Array(), steps: 0 };
    expect(() =>
      trainLstm(
        newLstm(shape, 1),
        [nothing],
        squares(() => 0),
        options,
      ),
    ).toThrow('no series to learn from');
  });
});
