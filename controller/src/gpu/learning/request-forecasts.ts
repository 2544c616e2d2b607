// Forecasts of functions' requests by SMORE's LS-LSTM, and the training of its model in background jobs.
import { keepNewest } from '@gpuwhisk/common/collections';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { JobHandler, Jobs } from '@gpuwhisk/common/jobs/jobs';
import { runInWorker } from '@gpuwhisk/common/jobs/worker-run';
import type { Logger } from '@gpuwhisk/common/logging';
import { every } from '@gpuwhisk/common/system/clock';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import { restoredForecast } from '@gpuwhisk/gpu/forecast/forecast-codec';
import { FunctionForecasts } from '@gpuwhisk/gpu/forecast/function-forecasts';
import type { MinuteCounts } from '@gpuwhisk/gpu/forecast/function-forecasts';
import type { Forecast, RequestSeries } from '@gpuwhisk/gpu/forecast/ls-lstm';
import { functionKeyOf } from '@gpuwhisk/gpu/ledger/occupancy';
import { forecastTrainingModule } from '@gpuwhisk/gpu/forecast/train-worker';
import type { ForecastTrainingInput } from '@gpuwhisk/gpu/forecast/train-worker';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMinutes = 1440;

/** A stored model: plain data of `storedForecast`, and when it was trained, epoch ms. */
interface LearnedForecast {
  learnedAt: number;
  model: JsonValue;
}

/** A function with its arrivals. */
export interface CalledFunction {
  /** `/namespace/action` of its code, and the namespace that it runs for. */
  function: string;
  namespace: string;
  counts: MinuteCounts;
}

/** Requests of a function by minute: those of the last hour, and what was expected of each minute before it began. */
export interface ForecastView {
  function: string;
  namespace: string;
  /** The last one is the present minute, which is not over. */
  requests: number[];
  /** As many; null: nothing was forecast of that minute. */
  expected: (number | null)[];
  /** Of the present minute; absent: no model has been trained yet. */
  now?: Forecast;
}

const shownMinutes = 60;
/** Functions whose forecasts are remembered; beyond that the one that was asked for least recently is forgotten. */
const mostShown = 10_000;

/** The forecasts of one function that were made, by minute; the last is of `minute`. */
interface Made {
  minute: number;
  expected: (number | null)[];
}

/** The forecasts of all functions by one model. Nothing is forecast before a model was trained. */
export class RequestForecasts {
  private forecasts: FunctionForecasts | undefined;
  private learned: LearnedForecast | undefined;
  private functions: () => Iterable<CalledFunction> = () => [];
  private readonly made = new Map<string, Made>();

  /** `onChange`: called when another model is in force. */
  constructor(private readonly onChange: () => void) {}

  /** When the model in force was trained, epoch ms; undefined: there is none. */
  get learnedAt(): number | undefined {
    return this.learned?.learnedAt;
  }

  /** The requests that are expected of a function in the minute of `at`, epoch ms; undefined: there is no model. */
  of(called: CalledFunction, at: number): Forecast | undefined {
    const key = functionKeyOf(called);
    const forecast = this.forecasts?.of(key, called.counts, at);
    if (forecast !== undefined) this.note(key, forecast, Math.floor(at / minuteMs));
    return forecast;
  }

  /** Sets the function that gives all functions with their arrivals, to train on and to show. */
  showFunctions(functions: () => Iterable<CalledFunction>): void {
    this.functions = functions;
  }

  /** The functions that were called in the last day before `at`, epoch ms. */
  views(at: number): ForecastView[] {
    return Array.from(this.functions(), (one): ForecastView => {
      const now = this.of(one, at);
      const made = this.made.get(functionKeyOf(one));
      return {
        function: one.function,
        namespace: one.namespace,
        requests: Array.from(one.counts.byMinute(at)).slice(-shownMinutes),
        expected: made === undefined ? Array<null>(shownMinutes).fill(null) : [...made.expected],
        ...(now && { now }),
      };
    });
  }

  /** Requests by minute of the functions with arrivals in the day before `at` (epoch ms), each from its first one on. */
  series(at: number): RequestSeries[] {
    const day = Math.floor(at / minuteMs) - dayMinutes;
    return Array.from(this.functions(), ({ counts: one }): RequestSeries => {
      // The minute of `at` is not over.
      const counts = Array.from(one.byMinute(at)).slice(0, -1);
      const first = counts.findIndex((count) => count > 0);
      return { minute: day + 1 + Math.max(0, first), requests: first < 0 ? [] : counts.slice(first) };
    }).filter(({ requests }) => requests.length > 0);
  }

  /** Takes a model of `storedForecast` over. Throws ForecastFormatError. */
  put(model: JsonValue, learnedAt: number): void {
    this.use({ model, learnedAt });
    this.onChange();
  }

  /** The model in force as JSON text. */
  text(): string {
    return JSON.stringify(this.learned);
  }

  /** Takes what `text` gave. Throws ForecastFormatError. */
  restore(text: string): void {
    this.use(JSON.parse(text) as LearnedForecast);
  }

  private note(key: string, { requests }: Forecast, minute: number): void {
    const made = this.made.get(key) ?? { minute: minute - 1, expected: Array<null>(shownMinutes).fill(null) };
    // Where the clock was set back, the newest forecast stays.
    for (; made.minute < minute; made.minute += 1) {
      if (minute - made.minute > shownMinutes) made.minute = minute - shownMinutes;
      made.expected.push(made.minute === minute - 1 ? requests : null);
      made.expected.shift();
    }
    keepNewest(this.made, key, made, mostShown);
  }

  private use(learned: LearnedForecast): void {
    this.forecasts = new FunctionForecasts(restoredForecast(learned.model));
    this.learned = learned;
  }
}

/** The kind of job that trains the model. */
const trainingKind = 'request-forecast';
/** A first model is trained once some function was called so long ago; a model is replaced once it is so old. */
const [firstMinutes, oldMs] = [60, 24 * hourMs];
const checkMs = 10 * minuteMs;
const timeoutMs = 20 * minuteMs;
/** Functions that are learned from: those with the longest history. */
const mostSeries = 500;

/** Dependencies of ForecastTraining. */
export interface ForecastTrainingParts {
  forecasts: RequestForecasts;
  jobs: Pick<Jobs, 'submit' | 'handle'>;
  clock: Clock;
  logger: Logger;
  /** Trains a model in a thread; tests replace it. */
  run?: typeof runInWorker;
}

/** Trains the model in background jobs: a first one after an hour of requests, and another each day. */
export class ForecastTraining {
  private handler: JobHandler | undefined;
  private timer: Timer | undefined;

  constructor(private readonly parts: ForecastTrainingParts) {}

  /** Begins to run jobs here, including those of earlier processes. */
  open(): void {
    this.handler ??= this.parts.jobs.handle(trainingKind, { concurrency: 1, timeoutMs }, (_, { signal }) =>
      this.train(signal),
    );
    this.timer?.cancel();
    this.timer = every(this.parts.clock, checkMs, () => this.check());
  }

  /** Ends the jobs here. */
  async close(): Promise<void> {
    this.timer?.cancel();
    const { handler } = this;
    this.handler = undefined;
    await handler?.close();
  }

  private check(): void {
    const { forecasts, jobs, clock, logger } = this.parts;
    const { learnedAt } = forecasts;
    const at = clock.now();
    // A model of the future is one of before this clock was set back.
    const isDue =
      learnedAt === undefined
        ? forecasts.series(at).some(({ requests }) => requests.length >= firstMinutes)
        : Math.abs(at - learnedAt) >= oldMs;
    if (!isDue) return;
    jobs.submit({ kind: trainingKind, key: trainingKind, payload: {} }).catch((error: unknown) =>
      // The next check requests the job again.
      logger.info({ reason: String(error) }, 'the model of requests was not trained'),
    );
  }

  private async train(signal: AbortSignal): Promise<void> {
    const { forecasts, clock, logger, run = runInWorker } = this.parts;
    const at = clock.now();
    const series = forecasts
      .series(at)
      .sort((one, other) => other.requests.length - one.requests.length)
      .slice(0, mostSeries);
    const isLong = (series[0]?.requests.length ?? 0) >= dayMinutes - 1;
    if ((series[0]?.requests.length ?? 0) < 2) return;
    const input: ForecastTrainingInput = { series, seed: Math.floor(at / oldMs), isLong };
    forecasts.put(await run(forecastTrainingModule, input as unknown as JsonValue, signal), at);
    logger.info({ functions: series.length, isLong }, 'the model of requests was trained');
  }
}
