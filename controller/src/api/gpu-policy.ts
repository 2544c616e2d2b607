import type { JsonObject } from '@gpuwhisk/common/json';
import { compositionOf, settingsInForce } from '@gpuwhisk/gpu/policies/make-policy';
import { median } from '@gpuwhisk/gpu/profile/kept-runs';
import type { LearnedFunction, LearnedModel } from '../gpu/learning/learned-view.js';
import { PolicyTrials, readTrial } from './gpu-policy-trials.js';
import { jsonAnswer } from '../http/answer.js';
import { readPutBody } from '../http/request.js';
import type { ApiContext } from './api-context.js';
import { errorResponses } from './descriptions.js';
import { apiRoot } from '../http/route.js';
import type { IdentifiedCall, Route, ViewerCall } from '../http/route.js';

/** Arrivals may be given in the body. */
const maxTrialBytes = 4 * 1024 * 1024;

/** The predictors of the kinds of GPU that functions were measured on, with their errors. */
function modelsView(functions: readonly LearnedFunction[], models: readonly LearnedModel[]): JsonObject[] {
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
  const learned = new Map(models.map((model) => [`${model.gpuType}/${model.mode}`, model]));
  return [...new Set([...learned.keys(), ...misses.keys()])].sort().map((key) => {
    const [gpuType = '', mode = ''] = key.split('/');
    const { version = 0, sampleCount = 0, learnedAt } = learned.get(key) ?? {};
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

/** The policy in force with its stages, settings and learned state. */
export function gpuPolicyRoutes(
  context: Pick<ApiContext, 'clock' | 'config' | 'gpuScheduler' | 'learned' | 'logger'>,
): Route[] {
  const { config, gpuScheduler, learned } = context;
  const trials = new PolicyTrials(context);
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
        const composition = compositionOf(config.gpu.policy);
        const functions = learned.functions(readable);
        return Promise.resolve(
          jsonAnswer({
            policy: composition.name,
            admission: config.gpu.admission,
            decides: gpuScheduler.decides,
            stages: { ...composition.stages },
            settings: settingsInForce(composition) as JsonObject,
            functions: functions.length,
            sharedSets: learned.quotas(readable).filter(({ points }) => points.length > 0).length,
            models: modelsView(functions, learned.models()),
          }),
        );
      },
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
        200: { description: 'How the arrivals would have fared', schema: 'GpuPolicyTrialResult' },
        ...errorResponses(400, 401, 403, 429, 500, 503),
      },
      handle: async (call: IdentifiedCall) =>
        jsonAnswer(await trials.run(readTrial(await readPutBody(call.request, maxTrialBytes)))),
    },
  ];
}
