import { runInWorker } from '@gpuwhisk/common/jobs/worker-run';
import type { JsonValue } from '@gpuwhisk/common/json';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import type { RequestSeries } from '@gpuwhisk/gpu/forecast/ls-lstm';
import { forecastTrainingModule, type ForecastTrainingInput } from '@gpuwhisk/gpu/forecast/train-worker';
import { join } from 'node:path';
import { connectApi, guestHeaders, invokePath, smallBody } from '@gpuwhisk/bench/api';
import { medianOf, type BenchContext, type Measurement } from '@gpuwhisk/bench/bench';
import { errorsOf, type LoadResult } from '@gpuwhisk/bench/load/load';
import { startPlatform } from '@gpuwhisk/bench/servers';

const dayMinutes = 1440;
/** As many as the platform learns from at most. */
const functions = 500;
const mostRounds = 7;

/**
 * P99 of no-op requests while a model of requests is trained, over that without a training, round by round. The training
 * runs as the platform's does, in a thread of low priority, but in this process, which also sends the requests.
 */
export async function retraining({ options, say, load, cleanup, temporaryDir }: BenchContext): Promise<Measurement[]> {
  const platform = await startPlatform(cleanup, { dataDir: join(temporaryDir, 'retraining') });
  const api = connectApi(platform.url);
  cleanup.add('connection', () => api.close());
  await api.putAction('noop');
  const stretch = (): Promise<LoadResult> =>
    load.run({
      baseUrl: platform.url,
      paths: [invokePath('noop', true)],
      headers: guestHeaders,
      body: smallBody,
      connections: 1,
      seconds: options.seconds,
      seed: options.seed,
      countStatuses: true,
    });
  const input = trainingInput(options.seed);
  await stretch();
  const [alone, beside]: [LoadResult[], LoadResult[]] = [[], []];
  const quiet = async (): Promise<void> => void alone.push(await stretch());
  for (let round = 0; round < Math.min(mostRounds, options.rounds); round += 1) {
    if (round % 2 === 0) await quiet();
    beside.push(await whileTraining(input, stretch));
    if (round % 2 === 1) await quiet();
    const [one, other] = [alone.at(-1)?.p99Ms ?? NaN, beside.at(-1)?.p99Ms ?? NaN];
    say(`  retraining: p99 ${one.toFixed(2)} ms alone, ${other.toFixed(2)} ms beside a training`);
  }
  api.close();
  await platform.stop();
  const ratios = beside.map(({ p99Ms }, round) => p99Ms / (alone[round]?.p99Ms ?? NaN));
  return [
    medianOf('retrainingP99Ratio', ratios),
    medianOf(
      'retrainingP99Ms',
      beside.map(({ p99Ms }) => p99Ms),
    ),
    medianOf(
      'retrainingAloneP99Ms',
      alone.map(({ p99Ms }) => p99Ms),
    ),
    { name: 'retrainingErrors', value: [...alone, ...beside].reduce((sum, one) => sum + errorsOf(one, 200), 0) },
  ];
}

/** A day of requests by minute of each function, with a period of its own. */
function trainingInput(seed: number): ForecastTrainingInput {
  const random = seededRandom(seed);
  const series = Array.from({ length: functions }, (_, of): RequestSeries => {
    const requests = Array.from({ length: dayMinutes }, (_, minute) =>
      Math.round(5 * randomFraction(random) * (1 + Math.sin(minute / (5 + (of % 50))))),
    );
    return { minute: 0, requests };
  });
  return { series, seed, isLong: true };
}

/** Keeps trainings running, one after the other, during `measure`. */
async function whileTraining<Result>(input: ForecastTrainingInput, measure: () => Promise<Result>): Promise<Result> {
  const ended = new AbortController();
  const trained = (async (): Promise<void> => {
    while (!ended.signal.aborted) {
      await runInWorker(forecastTrainingModule, input as unknown as JsonValue, ended.signal);
    }
  })().catch((error: unknown) => {
    if (!ended.signal.aborted) throw error;
  });
  const result = await Promise.race([measure(), trained.then(() => Promise.reject(new Error('no training runs')))]);
  ended.abort(new Error('measured'));
  await trained;
  return result;
}
