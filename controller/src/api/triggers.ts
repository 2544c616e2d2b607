import { triggerToApi } from '@gpuwhisk/common/entities/trigger';
import type { WhiskTrigger } from '@gpuwhisk/common/entities/trigger';
import { parametersBound } from '@gpuwhisk/common/entities/limits';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Answer } from '../http/answer.js';
import { emptyAnswer, jsonAnswer } from '../http/answer.js';
import {
  checkContentType,
  checkDeclaredLength,
  parseArguments,
  readBody,
  readPutBody,
  wantsExtraLogging,
  booleanParameter,
} from '../http/request.js';
import { postAction, TriggerFires } from '../triggers/trigger-fires.js';
import { readTriggerPut } from '../triggers/trigger-writer.js';
import { listEntities } from './collections.js';
import { boundsOf, maxPayloadOf } from '../entitlement/limits.js';
import type { ApiContext } from './api-context.js';
import {
  errorResponses,
  listParameters,
  namespaceParameter,
  overwriteParameter,
  triggerNameParameter,
} from './descriptions.js';
import { acceptedAnswer } from '../http/invocation.js';
import { apiRoot, checkOwner, entityNameOf, namespaceOf } from '../http/route.js';
import type { Call, IdentifiedCall, Route } from '../http/route.js';

type Context = Pick<
  ApiContext,
  | 'actionResolver'
  | 'clock'
  | 'config'
  | 'invoker'
  | 'logger'
  | 'manifest'
  | 'random'
  | 'records'
  | 'requestTraces'
  | 'ruleWriter'
  | 'store'
  | 'throttles'
  | 'triggerWriter'
>;

/** The trigger that the path names, in the caller's own namespace. Throws ApiError (400, 403). */
function ownTrigger(call: IdentifiedCall): { namespace: string; name: string; id: string } {
  const namespace = namespaceOf(call);
  const name = entityNameOf(call, 'triggerName');
  checkOwner(call, namespace, name);
  return { namespace, name, id: `${namespace}/${name}` };
}

async function putTrigger(context: Context, call: IdentifiedCall): Promise<Answer> {
  const { namespace, name } = ownTrigger(call);
  // Both lists of parameters at their maximum sizes, and the same again for the other fields.
  const body = await readPutBody(call.request, parametersBound(context.config.limits, 3));
  const put = readTriggerPut(body, boundsOf(context, call.identity));
  const overwrite = booleanParameter(call.query, 'overwrite', false);
  return jsonAnswer(
    triggerToApi(await context.triggerWriter.put(namespace, name, put, overwrite, context.clock.now())),
  );
}

/** The trigger after pending changes of its rules' links are settled. Throws ApiError (404, 409, 500). */
async function settledTrigger({ triggerWriter, ruleWriter }: Context, id: string): Promise<WhiskTrigger> {
  return ruleWriter.settled(await triggerWriter.read(id));
}

async function fireTrigger(context: Context, fires: TriggerFires, call: IdentifiedCall): Promise<Answer> {
  const { request, identity, transactionId } = call;
  entityNameOf(call, 'triggerName');
  await context.throttles.admitFire(identity);
  const { id } = ownTrigger(call);
  const maxPayload = maxPayloadOf(context, identity);
  checkDeclaredLength(request, maxPayload);
  const body = await readBody(request, maxPayload, context.clock);
  checkContentType(request.headers['content-type'], body.length);
  const payload = parseArguments(body);
  const trigger = await settledTrigger(context, id);
  const headers = headersOf(call);
  const extraLogging = wantsExtraLogging(request);
  const trace = context.requestTraces?.of(request);
  const fire = { identity, trigger, payload, headers, transactionId, extraLogging, maxPayload, trace };
  const activationId = await fires.fire(fire);
  return activationId === undefined ? emptyAnswer(204) : acceptedAnswer(activationId);
}

/** Headers about the body. Functions get the parsed body without them. */
const bodyHeaders = new Set(['content-length', 'content-type', 'transfer-encoding']);

function headersOf({ request }: Call): JsonObject {
  const headers: JsonObject = {};
  for (const [name, value] of Object.entries(request.headers)) {
    if (value === undefined || bodyHeaders.has(name)) continue;
    headers[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return headers;
}

/** Routes to manage and fire triggers. */
export function triggerRoutes(context: Context): Route[] {
  const { clock, config, random, logger, records, triggerWriter } = context;
  const fires = new TriggerFires({
    clock,
    random,
    logger,
    records,
    recordLevels: config,
    post: (fire, action, args) => postAction(context, fire, action, args),
  });
  const path = `${apiRoot}/namespaces/{namespace}/triggers`;
  const one = { access: 'identified', tag: 'Triggers', path: `${path}/{triggerName}` } as const;
  const names = [namespaceParameter, triggerNameParameter];
  const found = { 200: { description: 'The trigger', schema: 'Trigger' } } as const;
  return [
    {
      access: 'identified',
      tag: 'Triggers',
      method: 'GET',
      path,
      trailingSlash: true,
      operationId: 'getAllTriggers',
      summary: 'Triggers of a namespace, last written first',
      parameters: [namespaceParameter, ...listParameters],
      responses: {
        200: { description: 'Triggers', schema: { arrayOf: 'TriggerMeta', count: 'triggers' } },
        ...errorResponses(400, 401, 403, 500),
      },
      handle: (call: IdentifiedCall) => listEntities(context, call, 'triggers'),
    },
    {
      ...one,
      method: 'PUT',
      stores: true,
      operationId: 'updateTrigger',
      summary: 'Create or update a trigger',
      parameters: [...names, overwriteParameter],
      body: { schema: 'TriggerPut', required: true },
      responses: { ...found, ...errorResponses(400, 401, 403, 409, 413, 500) },
      handle: (call: IdentifiedCall) => putTrigger(context, call),
    },
    {
      ...one,
      method: 'GET',
      operationId: 'getTriggerByName',
      summary: 'A trigger and the rules that it fires',
      parameters: names,
      responses: { ...found, ...errorResponses(400, 401, 403, 404, 409, 500) },
      handle: async (call: IdentifiedCall) =>
        jsonAnswer(triggerToApi(await settledTrigger(context, ownTrigger(call).id))),
    },
    {
      ...one,
      method: 'DELETE',
      operationId: 'deleteTrigger',
      summary: 'Delete a trigger; its rules stay, without effect',
      parameters: names,
      responses: { ...found, ...errorResponses(400, 401, 403, 404, 409, 500) },
      handle: async (call: IdentifiedCall) => jsonAnswer(triggerToApi(await triggerWriter.delete(ownTrigger(call).id))),
    },
    {
      ...one,
      method: 'POST',
      operationId: 'fireTrigger',
      summary: 'Fire a trigger: invoke the actions of its active rules',
      parameters: names,
      body: { schema: 'TriggerPayload', required: false },
      responses: {
        202: { description: 'Accepted', schema: 'ActivationId' },
        204: { description: 'No rule is active: nothing was done' },
        ...errorResponses(400, 401, 403, 404, 409, 413, 429, 500, 503),
      },
      handle: (call: IdentifiedCall) => fireTrigger(context, fires, call),
    },
  ];
}
