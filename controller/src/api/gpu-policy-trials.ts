import { malformedContent, trialFailed, trialUnderWay } from '@gpuwhisk/common/errors';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { runInWorker } from '@gpuwhisk/common/jobs/worker-run';
import { compositionOf } from '@gpuwhisk/gpu/policies/make-policy';
import type { PolicyChoice } from '@gpuwhisk/gpu/policies/make-policy';
import { trialModule } from '@gpuwhisk/gpu/simulate/try-policy';
import type { PolicyTrial } from '@gpuwhisk/gpu/simulate/try-policy';
import type { Task } from '@gpuwhisk/gpu/view/view';
import type { ApiContext } from './api-context.js';

/** A trial that an operator asks for. */
export interface AskedTrial {
  policy: PolicyChoice;
  minutes: number;
  /** Absent: the recorded ones. */
  arrivals?: Task[];
}

const maxMinutes = 60;
const maxArrivals = 10_000;
/** A trial is given up after so long, ms. */
const timeoutMs = 120_000;
/** Start of a run in an instance that is there, ms. */
const warmMs = 1;

/** Throws ApiError (400). */
export function readTrial(body: JsonValue): AskedTrial {
  if (!isJsonObject(body)) throw malformedContent('JSON object expected');
  const unknown = Object.keys(body).find((key) => !['policy', 'minutes', 'arrivals'].includes(key));
  if (unknown !== undefined) throw malformedContent(`'${unknown}' is no field of a trial`);
  const { policy, minutes = maxMinutes, arrivals } = body;
  if (typeof policy !== 'string' && !isJsonObject(policy))
    throw malformedContent("'policy' must be a name or an object");
  try {
    compositionOf(policy as PolicyChoice);
  } catch (error) {
    if (error instanceof RangeError) throw malformedContent(error.message);
    throw error;
  }
  if (typeof minutes !== 'number' || !(minutes > 0 && minutes <= maxMinutes)) {
    throw malformedContent(`'minutes' must be a number up to ${maxMinutes}`);
  }
  return {
    policy: policy as PolicyChoice,
    minutes,
    ...(arrivals !== undefined && { arrivals: readArrivals(arrivals) }),
  };
}

function readArrivals(arrivals: JsonValue): Task[] {
  if (!Array.isArray(arrivals) || arrivals.length > maxArrivals) {
    throw malformedContent(`'arrivals' must be a list of ${maxArrivals} arrivals at most`);
  }
  return arrivals.map(readArrival);
}

function readArrival(one: JsonValue, at: number): Task {
  const { function: name, ...given } = isJsonObject(one) ? one : {};
  const number = (field: string, least: number, fallback?: number): number => {
    const { [field]: value = fallback } = given;
    if (typeof value === 'number' && value >= least) return value;
    throw malformedContent(`'${field}' of arrival ${at + 1} must be a number from ${least}`);
  };
  if (typeof name !== 'string') throw malformedContent(`'function' of arrival ${at + 1} must be a name`);
  const smUtil = number('smUtil', 0, 1);
  return {
    ...{ id: `arrival ${at + 1}`, function: name, version: '', namespace: 'trial', batch: 1, gpus: 1 },
    ...{ class: 'inference', arrivedAt: number('atMs', 0), soloMs: number('soloMs', 0.001) },
    ...{ memoryMiB: number('memoryMiB', 1), startMs: number('startMs', 0, 0) },
    ...(given.sloMs !== undefined && { sloMs: number('sloMs', 0) }),
    features: { smUtil: Math.min(1, smUtil), dramUtil: Math.min(1, smUtil) / 2, l2Util: Math.min(1, smUtil) / 2 },
  };
}

/** Replays arrivals under the policy in force and under another one, in a thread of its own, one trial at a time. */
export class PolicyTrials {
  private isRunning = false;

  constructor(private readonly context: Pick<ApiContext, 'config' | 'gpuScheduler' | 'clock' | 'logger'>) {}

  /** Rejects with ApiError (429, 503). */
  async run({ policy, minutes, arrivals }: AskedTrial): Promise<JsonObject> {
    const { config, gpuScheduler, clock, logger } = this.context;
    if (this.isRunning) throw trialUnderWay();
    const recorded = gpuScheduler.trialSince(clock.now() - minutes * 60_000);
    const all = arrivals ?? recorded.tasks;
    const tasks = all.filter(({ gpus, soloMs }) => gpus === 1 && soloMs !== undefined);
    if (recorded.places.length === 0) throw trialFailed('no GPU is healthy');
    const trial: PolicyTrial = {
      ...{ policies: [config.gpu.policy, policy], admission: config.gpu.admission, warmMs },
      ...{ ...recorded, tasks },
    };
    this.isRunning = true;
    const controller = new AbortController();
    const timer = clock.setBackgroundTimer(timeoutMs, () => controller.abort());
    try {
      const { signal } = controller;
      const { results } = (await runInWorker(trialModule, trial as unknown as JsonValue, signal)) as JsonObject;
      const leftOut = all.length - tasks.length;
      return { arrivals: tasks.length, leftOut, gpus: recorded.places.length, results: results! };
    } catch (error) {
      logger.warn({ error: String(error) }, 'a policy could not be tried');
      throw trialFailed(`it did not end within ${timeoutMs / 1000} s, or failed`);
    } finally {
      timer.cancel();
      this.isRunning = false;
    }
  }
}
