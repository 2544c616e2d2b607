// The GPU policy: the policy in force, its change, and trials of other policies.
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import type { GeometryReport } from '@gpuwhisk/gpu/stages/geometry/geometry';
import { inertParts } from '@gpuwhisk/gpu/policies/inert-parts';
import { compositionOf, settingsInForce } from '@gpuwhisk/gpu/policies/make-policy';
import { policyChoices, settingMeanings, settingSource } from '@gpuwhisk/gpu/policies/setting-meanings';
import { median } from '@gpuwhisk/gpu/stages/profile/fill';
import { malformedContent, trialFailed, trialUnderWay } from '@gpuwhisk/common/errors';
import { isJsonObject } from '@gpuwhisk/common/json';
import { runInWorker } from '@gpuwhisk/common/jobs/worker-run';
import type { PolicyChoice } from '@gpuwhisk/gpu/policies/make-policy';
import { policyModules } from '@gpuwhisk/gpu/policies/policy-modules';
import { shareAnswers } from '@gpuwhisk/gpu/share/share-counts';
import type { ShareCounts } from '@gpuwhisk/gpu/share/share-counts';
import { trialModule } from '@gpuwhisk/gpu/simulate/try-policy';
import type { PolicyTrial } from '@gpuwhisk/gpu/simulate/try-policy';
import type { Task } from '@gpuwhisk/gpu/view/view';
import type { FunctionPerformance, PredictorSummary } from './gpu-performance-views.js';
import { policyProblem } from '../gpu/scheduler/check-policy.js';
import type { Answer } from '../http/answer.js';
import { jsonAnswer } from '../http/answer.js';
import { readPutBody } from '../http/request.js';
import { clusterFacts } from './cluster-facts.js';
import type { ApiContext } from './api-context.js';
import { errorResponses } from './descriptions.js';
import { whileReachable } from './gpu-nodes.js';
import { apiRoot } from '../http/route.js';
import type { IdentifiedCall, Route, ViewerCall } from '../http/route.js';

/** Longest request body, bytes; it may list arrivals. */
const maxTrialBytes = 4 * 1024 * 1024;
/** Longest body with a policy that is set, bytes. */
const maxChoiceBytes = 16 * 1024;

/** Predictors of each kind of GPU that functions were measured on, with their errors. */
function modelsView(functions: readonly FunctionPerformance[], models: readonly PredictorSummary[]): JsonObject[] {
  const misses = new Map<string, { misses: number[]; runs: number }>();
  for (const { gpuType, mode, batches } of functions) {
    for (const { slowdown } of batches) {
      if (slowdown === undefined) continue;
      const key = `${gpuType}/${mode}`;
      const known = misses.get(key) ?? { misses: [], runs: 0 };
      known.misses.push(Math.abs(slowdown.predicted / slowdown.measured - 1));
      known.runs += slowdown.runs;
      misses.set(key, known);
    }
  }
  const performanceData = new Map(models.map((model) => [`${model.gpuType}/${model.mode}`, model]));
  return [...new Set([...performanceData.keys(), ...misses.keys()])].sort().map((key) => {
    const [gpuType = '', mode = ''] = key.split('/');
    const { version = 0, sampleCount = 0, learnedAt } = performanceData.get(key) ?? {};
    const known = misses.get(key);
    const error = known && median(known.misses);
    const age = learnedAt !== undefined && { learnedAt };
    return {
      gpuType,
      mode,
      version,
      sampleCount,
      ...age,
      ...(known && error !== undefined && { error, runs: known.runs }),
    };
  });
}

/** The state of stage geometry, if it has one. */
function geometryView(report: GeometryReport | undefined): JsonObject {
  return report === undefined ? {} : { geometry: report as unknown as JsonObject };
}

/** Routes to the policy in force with its stages, settings and learned state. */
export function gpuPolicyRoutes(
  context: Pick<ApiContext, 'clock' | 'gpuScheduler' | 'logger' | 'performanceData' | 'policySetting'> &
    Parameters<typeof clusterFacts>[0],
): Route[] {
  const { config, gpuScheduler, performanceData, performanceViews, policySetting } = context;
  const trials = new PolicyTrials(context);
  const changed = async (call: IdentifiedCall, policy: PolicyChoice | undefined): Promise<Answer> =>
    jsonAnswer({ ...(await whileReachable(policySetting.change(policy, call.identity.subject))) });
  return [
    {
      access: 'viewer',
      tag: 'GPUs',
      method: 'GET',
      path: `${apiRoot}/gpu/policy`,
      operationId: 'getGpuPolicy',
      summary: 'The policy that decides about GPUs, and its learned state',
      responses: { 200: { description: 'The policy', schema: 'GpuPolicy' }, ...errorResponses(401, 500) },
      handle: (call: ViewerCall) => {
        const readable = (name: string): boolean =>
          call.isOperator || name.startsWith(`/${call.identity.namespace.name}/`);
        const composition = compositionOf(policySetting.choice);
        const functions = performanceViews.functions(readable);
        return Promise.resolve(
          jsonAnswer({
            policy: composition.name,
            ...settingView(policySetting, call.isOperator),
            admission: config.gpu.admission,
            decides: gpuScheduler.epoch !== undefined,
            stages: { ...composition.stages },
            settings: settingsInForce(composition) as JsonObject,
            settingNotes: settingNotes(policySetting),
            inert: inertParts(composition, clusterFacts(context)).map((part) => ({ ...part })),
            choices: policyChoices() as unknown as JsonObject,
            functions: functions.length,
            sharedSets: performanceViews.quotas(readable).filter(({ points }) => points.length > 0).length,
            shareChoices: shareChoicesOf(performanceData.shareCounts),
            models: modelsView(functions, performanceViews.models()),
            ...(call.isOperator && { modules: policyModules().map(({ path, sha256 }) => ({ path, sha256 })) }),
            ...geometryView(gpuScheduler.geometry()),
          }),
        );
      },
    },
    {
      access: 'operator',
      tag: 'GPUs',
      method: 'PUT',
      path: `${apiRoot}/gpu/policy`,
      operationId: 'setGpuPolicy',
      summary: 'Put another policy in force on the running platform (operators)',
      body: { schema: 'GpuPolicyChoice', required: true },
      responses: {
        200: { description: 'The change', schema: 'GpuPolicyChange' },
        ...errorResponses(400, 401, 403, 409, 500, 503),
      },
      handle: async (call: IdentifiedCall) =>
        changed(call, readChoice(await readPutBody(call.request, maxChoiceBytes), config.gpu.admission)),
    },
    {
      access: 'operator',
      tag: 'GPUs',
      method: 'DELETE',
      path: `${apiRoot}/gpu/policy`,
      operationId: 'resetGpuPolicy',
      summary: 'Put the configured policy in force again (operators)',
      responses: {
        200: { description: 'The change', schema: 'GpuPolicyChange' },
        ...errorResponses(401, 403, 409, 500, 503),
      },
      handle: (call: IdentifiedCall) => changed(call, undefined),
    },
    {
      access: 'operator',
      tag: 'GPUs',
      method: 'POST',
      path: `${apiRoot}/gpu/policy/trials`,
      operationId: 'tryGpuPolicy',
      summary: 'Replay recorded arrivals under another policy, beside the one in force (operators)',
      body: { schema: 'GpuPolicyTrial', required: true },
      responses: {
        200: { description: 'Results of the replay', schema: 'GpuPolicyTrialResult' },
        ...errorResponses(400, 401, 403, 429, 500, 503),
      },
      handle: async (call: IdentifiedCall) =>
        jsonAnswer(await trials.run(readTrial(await readPutBody(call.request, maxTrialBytes)))),
    },
  ];
}

/** The configured policy, what operators have set in its place, and the policy that the platform has undone last. */
function settingView(
  { configured, set, problem, changes }: ApiContext['policySetting'],
  isOperator: boolean,
): JsonObject {
  const [last] = changes;
  return {
    configured: compositionOf(configured).name,
    ...(set !== undefined && { set: { at: set.at, ...(isOperator && { by: set.by }) } }),
    ...(last?.why !== undefined && { undone: { at: last.at, policy: last.from, why: last.why } }),
    ...(problem !== undefined && { problem }),
    ...(isOperator && { changes: changes.map((one) => ({ ...one })) }),
  };
}

/** The policy that an operator puts in force. Throws ApiError (400). */
function readChoice(body: JsonValue, admission: ApiContext['config']['gpu']['admission']): PolicyChoice {
  if (!isJsonObject(body)) throw malformedContent('JSON object expected');
  const { policy, ...others } = body;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw malformedContent(`'${unknown}' is no field of a policy that is set`);
  if (typeof policy !== 'string' && !isJsonObject(policy))
    throw malformedContent("'policy' must be a name or an object");
  const choice = policy as PolicyChoice;
  const problem = policyProblem({ policy: choice, admission });
  if (problem !== undefined) throw malformedContent(problem);
  return choice;
}

/** Meaning and source of each setting in force, by its name. */
function settingNotes({ choice, set }: Pick<ApiContext['policySetting'], 'choice' | 'set'>): JsonObject {
  const sourceOf = (name: string): string => {
    const source = settingSource(choice, name);
    return source === 'configuration' && set !== undefined ? 'operator' : source;
  };
  const names = Object.values(settingsInForce(compositionOf(choice))).flatMap((settings) => Object.keys(settings));
  const notes = names.map((name): [string, JsonObject] => {
    const { [name]: meaning = '' } = settingMeanings;
    return [name, { meaning, source: sourceOf(name) }];
  });
  return Object.fromEntries(notes);
}

/** Counts of share choices, with the time that the answers saved, ms. */
function shareChoicesOf(counts: ShareCounts): JsonObject {
  const views = shareAnswers.map((answer): [string, JsonObject] => {
    const { choices, taken, chosenMs, fillingMs } = counts[answer];
    return [answer, { choices, taken, savedMs: Math.round(fillingMs - chosenMs) }];
  });
  return Object.fromEntries(views);
}

/** A trial that an operator has requested. */
interface AskedTrial {
  policy: PolicyChoice;
  minutes: number;
  /** Absent: the recorded arrivals. */
  arrivals?: Task[];
}

const maxMinutes = 60;
const maxArrivals = 10_000;
/** Timeout of a trial, ms. */
const timeoutMs = 120_000;
/** Time to start a run in a warm instance, ms. */
const warmMs = 1;

/** Reads the body of a trial. Throws ApiError (400). */
function readTrial(body: JsonValue): AskedTrial {
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
    id: `arrival ${at + 1}`,
    function: name,
    version: '',
    namespace: 'trial',
    batch: 1,
    gpus: 1,
    class: 'inference',
    arrivedAt: number('atMs', 0),
    soloMs: number('soloMs', 0.001),
    memoryMiB: number('memoryMiB', 1),
    startMs: number('startMs', 0, 0),
    ...(given.sloMs !== undefined && { sloMs: number('sloMs', 0) }),
    features: { smUtil: Math.min(1, smUtil), dramUtil: Math.min(1, smUtil) / 2, l2Util: Math.min(1, smUtil) / 2 },
  };
}

/** Replays arrivals under the policy in force and under another policy. Trials run in a thread, one at a time. */
class PolicyTrials {
  private isRunning = false;

  constructor(
    private readonly context: Pick<ApiContext, 'config' | 'gpuScheduler' | 'clock' | 'logger' | 'policySetting'>,
  ) {}

  /** Runs a trial. Rejects with ApiError (429, 503). */
  async run({ policy, minutes, arrivals }: AskedTrial): Promise<JsonObject> {
    const { config, gpuScheduler, clock, logger, policySetting } = this.context;
    if (this.isRunning) throw trialUnderWay();
    const recorded = gpuScheduler.trialSince(clock.now() - minutes * 60_000);
    const all = arrivals ?? recorded.tasks;
    const tasks = all.filter(({ gpus, soloMs }) => gpus === 1 && soloMs !== undefined);
    if (recorded.places.length === 0) throw trialFailed('no GPU is healthy');
    const trial: PolicyTrial = {
      policies: [policySetting.choice, policy],
      admission: config.gpu.admission,
      warmMs,
      ...recorded,
      tasks,
      modules: policyModules(),
    };
    this.isRunning = true;
    const controller = new AbortController();
    const timer = clock.setBackgroundTimer(timeoutMs, () => controller.abort());
    try {
      const { signal } = controller;
      const { results = [] } = (await runInWorker(trialModule, trial as unknown as JsonValue, signal)) as JsonObject;
      const leftOut = all.length - tasks.length;
      return { arrivals: tasks.length, leftOut, gpus: recorded.places.length, results };
    } catch (error) {
      logger.warn({ error: String(error) }, 'a trial of a policy failed');
      throw trialFailed(`the trial did not end within ${timeoutMs / 1000} s, or failed`);
    } finally {
      timer.cancel();
      this.isRunning = false;
    }
  }
}
