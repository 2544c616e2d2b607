// Forecasts of requests whose model is trained in the background.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openEmbeddedJobs } from '@gpuwhisk/common/jobs/embedded-jobs';
import type { Jobs } from '@gpuwhisk/common/jobs/jobs';
import type { runInWorker } from '@gpuwhisk/common/jobs/worker-run';
import type { JsonValue } from '@gpuwhisk/common/json';
import { createLogger } from '@gpuwhisk/common/logging';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { ForecastTraining, RequestForecasts } from '@gpuwhisk/controller/gpu/learning/request-forecasts';
import type { CalledFunction, ForecastView } from '@gpuwhisk/controller/gpu/learning/request-forecasts';
import { storedForecast } from '@gpuwhisk/gpu/forecast/forecast-codec';
import { lsLstmDefaults, trainLsLstm } from '@gpuwhisk/gpu/forecast/ls-lstm';
import type { ForecastTrainingInput } from '@gpuwhisk/gpu/forecast/train-worker';
import { ArrivalCounts } from '@gpuwhisk/gpu/view/function-log';
import { SimulatedClock } from '../simulation/simulated-clock.js';
import { SimulatedDisk } from '../simulation/simulated-disk.js';

const minuteMs = 60_000;
const logger = createLogger({ level: 'silent' });

let clock: SimulatedClock;
let jobs: Jobs;
let forecasts: RequestForecasts;
let training: ForecastTraining;
let trained: ForecastTrainingInput[];
let changes: number;
let busy: ArrivalCounts;
const quiet = new ArrivalCounts();
const called = (name: string, counts: ArrivalCounts): CalledFunction => {
  return { function: `/a/${name}`, namespace: 'a', counts };
};

beforeEach(async () => {
  clock = new SimulatedClock();
  trained = [];
  changes = 0;
  busy = new ArrivalCounts();
  const random = seededRandom(1);
  const disk = new SimulatedDisk(clock, random, 0);
  const leases = embeddedState(clock);
  ({ jobs } = await clock.runUntil(openEmbeddedJobs({ disk, folder: '/jobs', clock, random, leases, holder: 'c0' })));
  const run: typeof runInWorker = (_, given) => {
    const input = given as unknown as ForecastTrainingInput;
    trained.push(input);
    const options = { ...lsLstmDefaults, seed: input.seed, isLong: input.isLong, updates: 20 };
    return Promise.resolve(storedForecast(trainLsLstm(input.series, options)) as unknown as JsonValue);
  };
  forecasts = new RequestForecasts(() => (changes += 1));
  forecasts.showFunctions(() => [called('f', busy), called('q', quiet)]);
  training = new ForecastTraining({ forecasts, jobs, clock, logger, run });
  training.open();
});
afterEach(async () => {
  await clock.runUntil(training.close());
  await clock.runUntil(jobs.close());
});

/** Requests every minute, for so many minutes. */
async function requests(minutes: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute += 1) {
    for (let one = 0; one < 5; one += 1) busy.add(clock.now());
    await clock.runFor(minuteMs);
  }
}

test('nothing is forecast before a first model, which is trained after an hour of requests', async () => {
  await requests(55);
  expect([trained.length, forecasts.of(called('f', busy), clock.now())]).toEqual([0, undefined]);
  await requests(20);
  expect([trained.length, changes]).toEqual([1, 1]);
  // The function that was never called teaches nothing.
  expect(trained[0]!.series.map(({ requests: counts }) => Array.from(counts))).toEqual([
    Array.from({ length: trained[0]!.series[0]!.requests.length }, () => 5),
  ]);
  expect(trained[0]!.isLong).toBe(false);
  const expected = forecasts.of(called('f', busy), clock.now())!;
  expect(expected.active).toBeGreaterThan(0.5);
  expect(forecasts.of(called('q', quiet), clock.now())!.active).toBeLessThan(0.5);
  const copy = new RequestForecasts(() => undefined);
  copy.restore(forecasts.text());
  expect(copy.of(called('f', busy), clock.now())).toEqual(expected);
});

test('the model is trained again each day, then with a long one', async () => {
  await requests(75);
  const first = forecasts.learnedAt!;
  await requests(1440);
  expect(trained.length).toBe(2);
  expect(forecasts.learnedAt! - first).toBeGreaterThanOrEqual(1440 * minuteMs);
  expect(trained[1]!.isLong).toBe(true);
});

test('a model of another version is refused, and the one in force stays', async () => {
  await requests(75);
  const { model, learnedAt } = JSON.parse(forecasts.text()) as { model: object; learnedAt: number };
  expect(() => forecasts.restore(JSON.stringify({ learnedAt, model: { ...model, version: 99 } }))).toThrow('99');
  expect(forecasts.of(called('f', busy), clock.now())).toBeDefined();
});

test('shows the requests of the last hour beside what was expected of each minute', async () => {
  await requests(75);
  const views = (): ForecastView[] => forecasts.views(clock.now());
  const [first] = views();
  expect(first).toMatchObject({ function: '/a/f', namespace: 'a' });
  expect([first!.requests.length, first!.expected.length]).toEqual([60, 60]);
  expect(first!.requests.slice(-3)).toEqual([5, 5, 0]);
  expect(first!.expected.slice(0, -1).every((one) => one === null)).toBe(true);
  expect(first!.expected.at(-1)).toBe(first!.now!.requests);
  await requests(2);
  views();
  await requests(1);
  const later = views()[0]!.expected.slice(-4);
  // No one asked for the forecast of the minute between.
  expect(later).toEqual([first!.expected.at(-1), null, expect.any(Number), expect.any(Number)]);
  const copy = new RequestForecasts(() => undefined);
  copy.showFunctions(() => [called('f', busy)]);
  expect(copy.views(clock.now())[0]).not.toHaveProperty('now');
});
