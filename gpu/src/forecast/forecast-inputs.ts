// Inputs of the long and the short LSTM, made of a function's history.
import { dayMinutes, meanAndDeviation, type ArrivalHistory } from './arrival-history.js';

/**
 * `counts`: requests a minute and nothing else (SMORE, section VI-A, input features). `idle-times`: also the idle time,
 * which SMORE tracks (section VI-A), with its statistics, and the day before.
 */
export type InputKind = 'counts' | 'idle-times';

/** Numbers of inputs by kind and window. */
export const inputCounts: Readonly<Record<InputKind, { short: number; long: number }>> = {
  counts: { short: 1, long: 1 },
  'idle-times': { short: 13, long: 18 },
};

/** Beyond this many deviations a burst says no more. */
const mostDeviations = 5;
const idleScale = 6;

function clamp(value: number, most: number): number {
  return Math.max(-most, Math.min(most, value));
}

function logit(probability: number): number {
  const inside = Math.max(1e-3, Math.min(1 - 1e-3, probability));
  return Math.log(inside / (1 - inside));
}

/**
 * Writes the inputs for the minute after the newest to `to` from `at`: z-scores by the window (thesis, eq. 3.15), and
 * what `kind` adds. All are finite and of the order of 1.
 */
export function writeInputs(
  history: ArrivalHistory,
  kind: InputKind,
  window: 'short' | 'long',
  to: Float64Array,
  at: number,
): void {
  const sums = window === 'short' ? history.hour : history.wholeDay;
  const { mean, deviation } = meanAndDeviation(sums);
  const newest = history.at(0);
  const requests = Number.isNaN(newest) ? mean : newest;
  let next = at;
  const put = (value: number): void => {
    to[next] = value;
    next += 1;
  };
  put(clamp((requests - mean) / deviation, mostDeviations));
  if (kind === 'counts') return;
  const { idle, gaps, idleTimes } = history;
  put(Math.log1p(requests) / 3);
  put(newest > 0 ? 1 : 0);
  put(Math.log2(1 + idle) / idleScale);
  const prior = (history.wholeDay.active + 0.1) / (history.wholeDay.known + 1);
  const statistics = idleTimes[window];
  put(logit(statistics.hazard(idle, prior)) / 3);
  put(Math.log1p(statistics.seen(idle)) / 4);
  put(logit(statistics.hazard(idle, prior, 2)) / 3);
  put((sums.active + 0.5) / (sums.known + 1));
  for (const gap of gaps) {
    put(Math.log2(1 + gap) / idleScale);
    put(clamp(idle - gap, 4) / 4);
  }
  put(logit(prior) / 3);
  if (window === 'short') return;
  const minute = ((history.minute ?? 0) + 1) % dayMinutes;
  put(Math.sin((2 * Math.PI * minute) / dayMinutes));
  put(Math.cos((2 * Math.PI * minute) / dayMinutes));
  // The minutes of the day before that come next there.
  let [known, active] = [0, 0];
  for (let ahead = 0; ahead < 10; ahead += 1) {
    const then = history.at(dayMinutes - 1 - ahead);
    if (Number.isNaN(then)) continue;
    known += 1;
    if (then > 0) active += 1;
  }
  put(known / 10);
  put(known === 0 ? 0 : active / known);
  put(history.at(dayMinutes - 1) > 0 ? 1 : 0);
}
