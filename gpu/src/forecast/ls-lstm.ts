/* eslint-disable @typescript-eslint/no-non-null-assertion -- outputs are as many as the shape says */
// Long-short LSTM forecasts of requests a minute (SMORE, section VI; thesis, section 3.4).
import { ArrivalHistory, hourMinutes, meanAndDeviation } from './arrival-history.js';
import { inputCounts, writeInputs, type InputKind } from './forecast-inputs.js';
import { kept, newLstm, newState, sigmoid, stepLstm, type Lstm, type LstmState } from './lstm.js';
import { trainLstm, type LstmSeries, type StepLoss, type TrainingOptions } from './lstm-training.js';

/** Models that forecast any function: their inputs are relative to the function's own history. */
export interface LsLstmModel {
  inputs: InputKind;
  short: Lstm;
  /** Absent where no function has a day of history: the short one forecasts alone. */
  long?: Lstm;
}

/** Requests of a function by minute, to learn from. Not a number: not known. */
export interface RequestSeries {
  /** The first minute, counted from midnight of any day. */
  minute: number;
  requests: ArrayLike<number>;
}

/** The forecast of one minute. */
export interface Forecast {
  /** Expected requests. */
  requests: number;
  /** Probability that there are any. */
  active: number;
}

/** No request is expected. */
export const noRequests: Forecast = { requests: 0, active: 0 };

/** Weight of the long model (policies: section 4; paper, eq. 8). */
export const longWeights = { usual: 0.5, erratic: 0.2 };
/** The last hour is erratic while it correlates less with the day before and varies more. */
const erratic = { correlation: 0.2, variation: 2 };

/** The weight α of the long model: `usual`, or `erratic` while the last hour is. */
export function longWeight(history: ArrivalHistory): number {
  const { mean, deviation } = meanAndDeviation(history.hour);
  const isSteady = history.hour.squares === 0 || deviation <= erratic.variation * mean;
  if (isSteady) return longWeights.usual;
  // An hour without a day before it has no rhythm to follow.
  return (history.dayCorrelation() ?? 0) < erratic.correlation ? longWeights.erratic : longWeights.usual;
}

/** Forecasts the requests of one function from minute to minute. */
export class FunctionForecaster {
  private readonly history = new ArrivalHistory();
  private readonly short: LstmState;
  private readonly long: LstmState | undefined;

  constructor(private readonly model: LsLstmModel) {
    this.short = newState(model.short);
    this.long = model.long && newState(model.long);
  }

  /**
   * Takes the requests of `minute`, which has ended (not a number: not known), and forecasts the next. A minute that is
   * left out counts as not known. Throws RangeError for a minute that is not an integer after the last.
   */
  step(minute: number, requests: number): Forecast {
    const { history, model } = this;
    history.add(minute, requests);
    const short = forecast(model, 'short', model.short, this.short, history);
    if (model.long === undefined || this.long === undefined) return short;
    const long = forecast(model, 'long', model.long, this.long, history);
    const alpha = longWeight(history);
    return {
      requests: alpha * long.requests + (1 - alpha) * short.requests,
      active: alpha * long.active + (1 - alpha) * short.active,
    };
  }

  /** Takes the requests of a minute into the history alone: for minutes long ago, before the first `step`. */
  recall(minute: number, requests: number): void {
    this.history.add(minute, requests);
  }
}

type Window = 'short' | 'long';

// One step at a time: they belong to no forecaster.
const scratch = { inputs: new Float64Array(32), out: new Float64Array(2), gates: new Float64Array(0) };

function forecast(
  { inputs }: LsLstmModel,
  window: Window,
  lstm: Lstm,
  state: LstmState,
  history: ArrivalHistory,
): Forecast {
  if (scratch.gates.length < kept * lstm.hidden) scratch.gates = new Float64Array(kept * lstm.hidden);
  writeInputs(history, inputs, window, scratch.inputs, 0);
  stepLstm(lstm, state, scratch.inputs, 0, scratch.out, scratch.gates);
  return forecastOf(inputs, window, history, scratch.out);
}

/** Unit of the requests in a minute that has some: their mean in the window, at least 1. */
function scaleOf(history: ArrivalHistory, window: Window): number {
  const { requests, active } = window === 'short' ? history.hour : history.wholeDay;
  return active === 0 ? 1 : Math.max(1, requests / active);
}

const softplus = (x: number): number => (x > 30 ? x : Math.log1p(Math.exp(x)));

function forecastOf(inputs: InputKind, window: Window, history: ArrivalHistory, out: Float64Array): Forecast {
  if (inputs === 'counts') {
    const { mean, deviation } = meanAndDeviation(window === 'short' ? history.hour : history.wholeDay);
    const requests = Math.max(0, mean + deviation * out[0]!);
    return { requests, active: 1 - Math.exp(-requests) };
  }
  const active = sigmoid(out[1]!);
  return { requests: active * scaleOf(history, window) * softplus(out[0]!), active };
}

/** Sizes of the models, and how they are trained. */
export interface LsLstmOptions extends TrainingOptions {
  inputs: InputKind;
  hidden: number;
  /** Whether a long model is trained. */
  isLong: boolean;
}

export const lsLstmDefaults: Omit<LsLstmOptions, 'seed'> = {
  inputs: 'idle-times',
  hidden: 16,
  isLong: true,
  updates: 800,
  lanes: 16,
  window: 48,
  rate: 0.01,
};

/** Beyond this many times the scale a burst teaches no more. */
const mostOfScale = 20;
/** Weight of the number of requests beside that of whether there are any. */
const requestsWeight = 0.2;

/**
 * One model for all functions of `all`: a pure function of its arguments. Its loss is the mean over the minutes of
 * −log P(any requests or none as seen) + 0.2 × Poisson deviance of the number in minutes with requests, in units of
 * the window's mean there; with inputs `counts` the squared error of the z-score. Throws RangeError if no series has two minutes.
 */
export function trainLsLstm(all: readonly RequestSeries[], options: LsLstmOptions): LsLstmModel {
  const { inputs, isLong } = options;
  return {
    inputs,
    short: trainWindow(all, 'short', options),
    ...(isLong && { long: trainWindow(all, 'long', options) }),
  };
}

function trainWindow(all: readonly RequestSeries[], window: Window, options: LsLstmOptions): Lstm {
  const { inputs: kind, hidden, seed } = options;
  const isLiteral = kind === 'counts';
  const inputs = inputCounts[kind][window];
  const prepared = all.map((series) => prepare(series, kind, window));
  const loss: StepLoss = (of, step, outputs, slopes) => {
    const { targets, scales, isTaught } = prepared[of]!;
    if (isTaught[step] === 0) return 0;
    const [target, scale] = [targets[step]!, scales[step]!];
    if (isLiteral) {
      const error = outputs[0]! - target;
      slopes[0] = error;
      return (error * error) / 2;
    }
    const probability = sigmoid(outputs[1]!);
    const isActive = target > 0 ? 1 : 0;
    slopes[1] = probability - isActive;
    if (!isActive) return -Math.log(Math.max(1e-12, 1 - probability));
    const ratio = Math.min(target / scale, mostOfScale);
    const rate = softplus(outputs[0]!) + 1e-6;
    slopes[0] = requestsWeight * (1 - ratio / rate) * sigmoid(outputs[0]!);
    return -Math.log(Math.max(1e-12, probability)) + requestsWeight * (rate - ratio * Math.log(rate));
  };
  return trainLstm(newLstm({ inputs, hidden, outputs: isLiteral ? 1 : 2 }, seed), prepared, loss, options);
}

interface PreparedSeries extends LstmSeries {
  /** Requests of the next minute, or their z-score. */
  targets: Float64Array;
  scales: Float64Array;
  /** 1 where the next minute is known and there is some history. */
  isTaught: Uint8Array;
}

/** Minutes at the start of a series that are read and not learned from. */
const leastMinutes = hourMinutes / 2;

function prepare({ minute, requests }: RequestSeries, kind: InputKind, window: Window): PreparedSeries {
  const count = inputCounts[kind][window];
  const steps = Math.max(0, requests.length - 1);
  const prepared = {
    inputs: new Float64Array(steps * count),
    steps,
    targets: new Float64Array(steps),
    scales: new Float64Array(steps),
    isTaught: new Uint8Array(steps),
  };
  const history = new ArrivalHistory();
  for (let step = 0; step < steps; step += 1) {
    history.add(minute + step, requests[step]!);
    writeInputs(history, kind, window, prepared.inputs, step * count);
    const next = requests[step + 1]!;
    const isKnown = Number.isFinite(next) && next >= 0;
    prepared.isTaught[step] = isKnown && step >= leastMinutes ? 1 : 0;
    prepared.scales[step] = scaleOf(history, window);
    if (!isKnown) continue;
    const { mean, deviation } = meanAndDeviation(window === 'short' ? history.hour : history.wholeDay);
    prepared.targets[step] = kind === 'counts' ? Math.max(-5, Math.min(5, (next - mean) / deviation)) : next;
  }
  return prepared;
}
