import { viewNotSaved } from '@gpuwhisk/common/errors';
import type { Rejection } from '@gpuwhisk/common/gpu';
import type { JsonObject } from '@gpuwhisk/common/json';
import { jsonAnswer } from '../http/answer.js';
import type { ApiContext } from './api-context.js';
import { errorResponses } from './descriptions.js';
import { apiRoot } from '../http/route.js';
import type { ViewerCall, Route } from '../http/route.js';

/** Whose it is, and what was rejected for it. */
interface Shown {
  activationId: string;
  namespace: string;
  rejected: readonly Rejection[];
}

/** What operators read of a device's state may name functions of others. */
const stateWithReasons = /^(cordoned|draining|offline): .*/s;

/** What waits for a GPU, and what was decided about activations that need one. */
export function gpuDecisionRoutes({ gpuScheduler }: Pick<ApiContext, 'gpuScheduler'>): Route[] {
  const shown = <One extends Shown>({ identity, isOperator, query }: ViewerCall, all: readonly One[]): JsonObject[] => {
    const wanted = query.get('activation');
    return all
      .filter(({ namespace }) => isOperator || namespace === identity.namespace.name)
      .filter(({ activationId }) => wanted === null || activationId === wanted)
      .map((one) => {
        const rejected = one.rejected.map(({ reason, ...rejection }) => ({
          ...rejection,
          reason: isOperator ? reason : reason.replace(stateWithReasons, '$1'),
        }));
        return { ...one, rejected } as unknown as JsonObject;
      });
  };
  const shared = {
    access: 'viewer',
    tag: 'GPUs',
    method: 'GET',
    parameters: [
      { name: 'activation', in: 'query', type: 'string', description: 'Only of the activation with this id' },
    ],
  } as const;
  return [
    {
      ...shared,
      path: `${apiRoot}/gpu/queue`,
      operationId: 'getGpuQueue',
      summary: 'Activations that wait for a GPU',
      responses: {
        200: { description: 'In the order of their turn', schema: { arrayOf: 'GpuQueued' } },
        ...errorResponses(401, 500),
      },
      handle: (call: ViewerCall) => Promise.resolve(jsonAnswer(shown(call, gpuScheduler.queued()))),
    },
    {
      ...shared,
      path: `${apiRoot}/gpu/decisions`,
      operationId: 'getGpuDecisions',
      summary: 'What was decided about activations that need a GPU',
      responses: {
        200: {
          description: 'The last 1000 of this controller, the last one first',
          schema: { arrayOf: 'GpuDecision' },
        },
        ...errorResponses(401, 500),
      },
      handle: (call: ViewerCall) => Promise.resolve(jsonAnswer(shown(call, gpuScheduler.decisions()))),
    },
    {
      access: 'operator',
      tag: 'GPUs',
      method: 'GET',
      path: `${apiRoot}/gpu/view`,
      operationId: 'getGpuView',
      summary: 'All that the policy decides on now, to repeat a decision (operators)',
      responses: {
        200: { description: 'The view, the policy and the state of its stages', schema: 'GpuView' },
        ...errorResponses(401, 403, 500, 503),
      },
      handle: () => {
        if (!gpuScheduler.decides) throw viewNotSaved();
        return Promise.resolve(jsonAnswer(gpuScheduler.savedView()));
      },
    },
  ];
}
