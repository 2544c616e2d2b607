// Forecasts of traces in rolling splits, by models that were trained on what was before.
import {
  FunctionForecaster,
  trainLsLstm,
  type Forecast,
  type LsLstmModel,
  type LsLstmOptions,
} from '@gpuwhisk/gpu/forecast/ls-lstm';
import type { RequestTrace } from '../data/request-traces.js';
import type { TracePart } from './prewarm-score.js';

const dayMinutes = 1440;

/** The traces of an experiment; a function is only judged where it is in `judgedDays`. */
export interface PrewarmTraces {
  weeks: readonly RequestTrace[];
  days: readonly RequestTrace[];
  judgedDays: readonly RequestTrace[];
}

/**
 * Functions that share a model: `all`; `pool`: those of the weeks, and those of the day; `own`: none.
 */
export type Scope = 'all' | 'pool' | 'own';

/** A candidate of the choice on validation parts. */
export interface Candidate {
  scope: Scope;
  options: LsLstmOptions;
}

/** Minutes of day 1 that the first models learn from; then those that validate, up to the test of the day's traces. */
export const cuts = { learn: 600, validate: 840 };

/** Forecasts of minutes `from` to `to`, each made a minute ahead. */
export function forecastPart(model: LsLstmModel, trace: RequestTrace, from: number, to: number): TracePart {
  const forecaster = new FunctionForecaster(model);
  const forecasts: Forecast[] = [];
  for (let minute = 0; minute + 1 < to; minute += 1) {
    const next = forecaster.step(minute, trace.minutes[minute] ?? NaN);
    if (minute + 1 >= from) forecasts.push(next);
  }
  return { trace, from, to, forecasts };
}

/** The model of each trace of `judged`, trained on the first `until` minutes of the traces that share it. */
function modelsOf(
  { weeks, days }: PrewarmTraces,
  judged: readonly RequestTrace[],
  until: number,
  { scope, options }: Candidate,
): Map<RequestTrace, LsLstmModel> {
  const train = (traces: readonly RequestTrace[]): LsLstmModel =>
    trainLsLstm(
      traces.map(({ minutes }) => ({ minute: 0, requests: minutes.slice(0, until) })),
      // A day's rhythm shows from the second day on.
      { ...options, isLong: options.isLong && until > dayMinutes },
    );
  if (scope === 'own') return new Map(judged.map((trace) => [trace, train([trace])]));
  const pools = scope === 'all' ? [[...weeks, ...days]] : [weeks, days];
  const used = pools.filter((pool) => pool.some((trace) => judged.includes(trace)));
  return new Map(
    used.flatMap((pool) => {
      const model = train(pool);
      return judged.filter((trace) => pool.includes(trace)).map((trace) => [trace, model] as const);
    }),
  );
}

function partsOf(
  traces: PrewarmTraces,
  judged: readonly RequestTrace[],
  [learned, from, to]: readonly [number, number, number],
  candidate: Candidate,
): TracePart[] {
  const models = modelsOf(traces, judged, learned, candidate);
  return Array.from(models, ([trace, model]) => forecastPart(model, trace, from, to));
}

/** Mean −log of the probability that a part's forecasts gave to requests, or none, as they came. */
export function logLoss(parts: readonly TracePart[]): number {
  let [sum, count] = [0, 0];
  for (const { trace, from, forecasts } of parts) {
    for (const [index, { active }] of forecasts.entries()) {
      const right = (trace.minutes[from + index] ?? 0) > 0 ? active : 1 - active;
      sum -= Math.log(Math.max(1e-6, right));
      count += 1;
    }
  }
  return sum / count;
}

/** Parts to choose a model by: of day 1, after what the first models learn from and before any test. */
export function choiceParts(traces: PrewarmTraces, candidate: Candidate): TracePart[] {
  const judged = [...traces.weeks, ...traces.judgedDays];
  return partsOf(traces, judged, [cuts.learn, cuts.learn, cuts.validate], candidate);
}

/** Test parts that begin at one time, and all parts that ended before, which their knob is chosen on. */
export interface Split {
  tests: readonly TracePart[];
  validations: readonly TracePart[];
}

/** A part cut in two at a minute. */
function halves(part: TracePart, at: number): TracePart[] {
  const { from, to, forecasts } = part;
  return [
    { ...part, to: at, forecasts: forecasts.slice(0, at - from) },
    { ...part, from: at, to, forecasts: forecasts.slice(at - from) },
  ];
}

/**
 * The day's traces are tested from minute 840 on, weeks day by day from day 2, with models of all minutes before. Knobs
 * are chosen on forecasts for minutes before the test by models that had not seen them: minutes 600 to 840 of all
 * functions, and from then on the rest of day 1 and the tests of the days before.
 */
export function rollingSplits(traces: PrewarmTraces, candidate: Candidate, say: (line: string) => void): Split[] {
  const { weeks, judgedDays } = traces;
  const { learn, validate } = cuts;
  const first = [
    ...partsOf(traces, judgedDays, [learn, learn, validate], candidate),
    ...partsOf(traces, weeks, [learn, learn, dayMinutes], candidate).flatMap((part) => halves(part, validate)),
  ];
  const days = partsOf(traces, judgedDays, [validate, validate, dayMinutes], candidate);
  const splits: Split[] = [{ tests: days, validations: first.filter(({ to }) => to <= validate) }];
  let seen = [...first, ...days];
  const length = Math.min(...weeks.map(({ minutes }) => minutes.length));
  for (let from = dayMinutes; from < length; from += dayMinutes) {
    const tests = partsOf(traces, weeks, [from, from, Math.min(length, from + dayMinutes)], candidate);
    splits.push({ tests, validations: seen });
    seen = [...seen, ...tests];
    say(`  day ${from / dayMinutes + 1}: log loss ${logLoss(tests).toFixed(4)}`);
  }
  return splits;
}

/** The splits of some traces alone. */
export function splitsOf(splits: readonly Split[], traces: readonly RequestTrace[]): Split[] {
  const ofTraces = (parts: readonly TracePart[]): TracePart[] => parts.filter(({ trace }) => traces.includes(trace));
  return splits
    .map(({ tests, validations }) => ({ tests: ofTraces(tests), validations: ofTraces(validations) }))
    .filter(({ tests }) => tests.length > 0);
}
