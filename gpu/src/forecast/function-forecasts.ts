// Forecasts of all functions of a scheduler, from their arrivals by minute.
import { keepNewest } from '@gpuwhisk/common/collections';
import { hourMinutes } from './arrival-history.js';
import { FunctionForecaster, noRequests, type Forecast, type LsLstmModel } from './ls-lstm.js';

const minuteMs = 60_000;

/** Arrivals by minute, the minute of `at` (ms) last, as `ArrivalCounts` has them. */
export interface MinuteCounts {
  byMinute(at: number): ArrayLike<number>;
}

interface Known {
  forecaster: FunctionForecaster;
  /** The newest minute that it has read, and the forecast of the next. */
  minute: number;
  forecast: Forecast;
}

/**
 * The forecaster of each function. A function that is new, or was not asked for during an hour, is read from its
 * arrivals: the whole day into its history, and the last hour through the LSTMs.
 */
export class FunctionForecasts {
  private readonly functions = new Map<string, Known>();

  /** `mostFunctions`: beyond so many the one that was asked for least recently is removed. */
  constructor(
    private readonly model: LsLstmModel,
    private readonly mostFunctions = 10_000,
  ) {}

  /**
   * The forecast of the minute of `at` (ms) for the function `key`: a step for each minute that has ended since the
   * last call. A clock that was set back gets the newest forecast.
   */
  of(key: string, arrivals: MinuteCounts, at: number): Forecast {
    const ended = Math.floor(at / minuteMs) - 1;
    let known = this.functions.get(key);
    if (known === undefined || ended - known.minute > hourMinutes) known = this.read(arrivals, at, ended);
    else if (ended > known.minute) this.step(known, arrivals, at, ended);
    keepNewest(this.functions, key, known, this.mostFunctions);
    return known.forecast;
  }

  private step(known: Known, arrivals: MinuteCounts, at: number, ended: number): void {
    const counts = arrivals.byMinute(at);
    for (let minute = known.minute + 1; minute <= ended; minute += 1) {
      known.forecast = known.forecaster.step(minute, counts[counts.length - 2 - (ended - minute)] ?? NaN);
    }
    known.minute = ended;
  }

  private read(arrivals: MinuteCounts, at: number, ended: number): Known {
    const forecaster = new FunctionForecaster(this.model);
    const counts = arrivals.byMinute(at);
    const all = Array.from({ length: counts.length - 1 }, (_, index) => counts[index] ?? NaN);
    let forecast = noRequests;
    // Minutes before the first request say nothing: the function may have been made then.
    const first = all.findIndex((count) => count > 0);
    for (let index = first < 0 ? all.length : first; index < all.length; index += 1) {
      const minute = ended - (all.length - 1 - index);
      if (ended - minute < hourMinutes) forecast = forecaster.step(minute, all[index] ?? NaN);
      else forecaster.recall(minute, all[index] ?? NaN);
    }
    return { forecaster, minute: ended, forecast };
  }
}
