// Profiles of functions on GPUs: their trials are begun, shown and cancelled.
import { malformedContent } from '@gpuwhisk/common/errors';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { wantedOf } from '../gpu/learning/function-trials.js';
import type { Answer } from '../http/answer.js';
import { jsonAnswer } from '../http/answer.js';
import { apiRoot, checkOwner, pathParameter } from '../http/route.js';
import type { IdentifiedCall, Route } from '../http/route.js';
import type { ApiContext } from './api-context.js';
import { errorResponses, pathParameters } from './descriptions.js';
import { resolveGpuAction } from './gpu-instances.js';

type Context = Pick<ApiContext, 'actionResolver' | 'clock' | 'performanceData' | 'performanceViews'>;

/** The action that a request's path names, of the caller's namespace. Throws ApiError (400, 403, 404). */
async function ownAction(context: Context, call: IdentifiedCall): Promise<WhiskAction> {
  const { action } = await resolveGpuAction(context, call, pathParameter(call, 'name'));
  const [owner = '', ...inside] = action.namespace.split('/');
  checkOwner(call, owner, ...inside, action.name);
  return action;
}

const nameOf = ({ namespace, name }: WhiskAction): string => `/${namespace}/${name}`;

function answerOf({ performanceViews }: Context, action: WhiskAction, status = 200): Answer {
  const view = performanceViews.trialsOf(nameOf(action));
  return jsonAnswer({ action: nameOf(action), ...(view as unknown as JsonObject) }, status);
}

/** Begins the trials of an action, or goes on with cancelled ones. Throws ApiError (400, 403, 404). */
async function begin(context: Context, call: IdentifiedCall): Promise<Answer> {
  const action = await ownAction(context, call);
  const wanted = wantedOf(action);
  if (typeof wanted === 'string') throw malformedContent(`action '${nameOf(action)}' is not profiled: ${wanted}`);
  context.performanceData.trials.want(wanted, context.clock.now());
  return answerOf(context, action, 202);
}

async function cancel(context: Context, call: IdentifiedCall): Promise<Answer> {
  const action = await ownAction(context, call);
  context.performanceData.trials.cancel(nameOf(action));
  return answerOf(context, action);
}

/** Routes to the profiles of functions on GPUs. */
export function gpuProfileRoutes(context: Context): Route[] {
  const shared = {
    access: 'identified',
    tag: 'GPUs',
    path: `${apiRoot}/gpu/functions/{name}/profile`,
    parameters: pathParameters({
      name: "'/namespace/action', or the name of one of the caller's own; percent-encoded",
    }),
  } as const;
  const profile = (description: string) => ({ description, schema: 'GpuFunctionProfile' }) as const;
  return [
    {
      ...shared,
      method: 'GET',
      operationId: 'getGpuFunctionProfile',
      summary: 'Trials of a function at share classes, and the request and limit found by them',
      responses: { 200: profile('The trials by kind of GPU'), ...errorResponses(400, 401, 403, 404, 500) },
      handle: async (call: IdentifiedCall) => answerOf(context, await ownAction(context, call)),
    },
    {
      ...shared,
      method: 'POST',
      operationId: 'profileGpuFunction',
      summary: 'Begin the trials of a function, go on with cancelled ones, and repeat those without a result',
      responses: {
        202: profile('The trials, which run while GPUs are idle'),
        ...errorResponses(400, 401, 403, 404, 500),
      },
      handle: (call: IdentifiedCall) => begin(context, call),
    },
    {
      ...shared,
      method: 'DELETE',
      operationId: 'cancelGpuFunctionProfile',
      summary: 'End the trials of a function; those that have ended are kept',
      responses: { 200: profile('The trials so far'), ...errorResponses(400, 401, 403, 404, 500) },
      handle: (call: IdentifiedCall) => cancel(context, call),
    },
  ];
}
