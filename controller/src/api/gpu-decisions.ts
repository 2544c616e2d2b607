// The GPU queue, recorded decisions about activations, and what they tell of one activation.
import { viewNotSaved } from '@gpuwhisk/common/errors';
import type { Rejection } from '@gpuwhisk/common/gpu';
import type { RunFacts } from '@gpuwhisk/common/gpu-decisions';
import type { JsonObject } from '@gpuwhisk/common/json';
import { explanation } from '../gpu/scheduler/explanation.js';
import type { Answer } from '../http/answer.js';
import { jsonAnswer } from '../http/answer.js';
import { apiRoot } from '../http/route.js';
import type { Route, ViewerCall } from '../http/route.js';
import { activationIdOf, recordOf } from './activations.js';
import type { ApiContext } from './api-context.js';
import { activationIdParameter, errorResponses } from './descriptions.js';

type Context = Pick<ApiContext, 'gpuScheduler' | 'store' | 'expiredBefore'>;

/** A task's owner, its rejected alternatives, and what was seen of its run. */
interface Shown {
  activationId: string;
  namespace: string;
  rejected: Rejection[];
  waitedFor?: string;
  run?: RunFacts;
}

/** What a viewer is told in place of a function that is not of its namespace. */
const ofOthers = 'a function of another namespace';

/** A device's state with its reasons. The reasons may name other namespaces' functions, so that only operators see them. */
const stateWithReasons = /^(cordoned|draining|offline): .*/s;

/** What a viewer may see of tasks: an operator everything, a namespace its own, without names of others' functions. */
function shownTo<One extends Shown>({ identity, isOperator }: ViewerCall, all: readonly One[]): One[] {
  if (isOperator) return [...all];
  const own = identity.namespace.name;
  return all
    .filter(({ namespace }) => namespace === own)
    .map((one) => {
      const { rejected, run, waitedFor } = one;
      const beside = run?.beside.map((other) =>
        other.namespace === own ? other : { ...other, action: ofOthers, namespace: '' },
      );
      return {
        ...one,
        rejected: rejected.map((other) => ({ ...other, reason: other.reason.replace(stateWithReasons, '$1') })),
        ...(waitedFor !== undefined && { waitedFor: waitedFor.replace(stateWithReasons, '$1') }),
        ...(run && beside && { run: { ...run, beside } }),
      };
    });
}

/** Routes to the GPU queue, to recorded decisions about activations that need a GPU, and to what both tell of one. */
export function gpuDecisionRoutes({ gpuScheduler, store, expiredBefore }: Context): Route[] {
  const shown = <One extends Shown>(call: ViewerCall, all: readonly One[]): JsonObject[] => {
    const wanted = call.query.get('activation');
    const found = wanted === null ? all : all.filter(({ activationId }) => activationId === wanted);
    return shownTo(call, found) as unknown as JsonObject[];
  };
  const explained = async (call: ViewerCall): Promise<Answer> => {
    const activationId = activationIdOf(call);
    const ofOne = <One extends Shown>(all: readonly One[]): One[] =>
      shownTo(
        call,
        all.filter((one) => one.activationId === activationId),
      );
    const decisions = ofOne(gpuScheduler.decisions());
    const [queued] = ofOne(gpuScheduler.queued());
    const namespace = decisions[0]?.namespace ?? call.identity.namespace.name;
    const record = queued ? undefined : await recordOf({ store, expiredBefore }, { namespace, activationId });
    const sentence = explanation({ decisions, ...(queued && { queued }), ...(record && { record }) });
    return jsonAnswer({
      ...(sentence !== undefined && { sentence }),
      decisions: decisions as unknown as JsonObject[],
    });
  };
  const shared = {
    access: 'viewer',
    tag: 'GPUs',
    method: 'GET',
    parameters: [{ name: 'activation', in: 'query', type: 'string', description: 'Only entries of this activation' }],
  } as const;
  return [
    {
      ...shared,
      path: `${apiRoot}/gpu/queue`,
      operationId: 'getGpuQueue',
      summary: 'Activations that wait for a GPU',
      responses: {
        200: { description: 'Activations in queue order', schema: { arrayOf: 'GpuQueued' } },
        ...errorResponses(401, 500),
      },
      handle: (call: ViewerCall) => Promise.resolve(jsonAnswer(shown(call, gpuScheduler.queued()))),
    },
    {
      ...shared,
      path: `${apiRoot}/gpu/decisions`,
      operationId: 'getGpuDecisions',
      summary: 'Decisions about activations that need a GPU',
      responses: {
        200: {
          description: 'The last 1000 decisions of this controller, newest first',
          schema: { arrayOf: 'GpuDecision' },
        },
        ...errorResponses(401, 500),
      },
      handle: (call: ViewerCall) => Promise.resolve(jsonAnswer(shown(call, gpuScheduler.decisions()))),
    },
    {
      access: 'viewer',
      tag: 'GPUs',
      method: 'GET',
      path: `${apiRoot}/gpu/explanations/{activationId}`,
      parameters: [activationIdParameter],
      operationId: 'explainActivation',
      summary: 'Where the time of an activation with a GPU went, in one sentence, and the decisions about it',
      responses: {
        200: { description: 'The sentence and the decisions', schema: 'GpuExplanation' },
        ...errorResponses(400, 401, 500),
      },
      handle: explained,
    },
    {
      access: 'operator',
      tag: 'GPUs',
      method: 'GET',
      path: `${apiRoot}/gpu/view`,
      operationId: 'getGpuView',
      summary: 'The present view of the policy, to repeat a decision (operators)',
      responses: {
        200: { description: 'The view, the policy and the state of its stages', schema: 'GpuView' },
        ...errorResponses(401, 403, 500, 503),
      },
      handle: () => {
        if (gpuScheduler.epoch === undefined) throw viewNotSaved();
        return Promise.resolve(jsonAnswer(gpuScheduler.savedView()));
      },
    },
  ];
}
