import { isApiError, notAuthorized } from '@gpuwhisk/common/errors';
import { referenceId } from '@gpuwhisk/common/entities/names';
import type { EntityReference } from '@gpuwhisk/common/entities/names';
import { MalformedError, asObject } from '@gpuwhisk/common/entities/malformed';
import { ruleToApi, readRuleStatus } from '@gpuwhisk/common/entities/trigger';
import type { RuleStatus } from '@gpuwhisk/common/entities/trigger';
import { parametersBound } from '@gpuwhisk/common/entities/limits';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { Answer } from '../http/answer.js';
import { emptyAnswer, jsonAnswer } from '../http/answer.js';
import { readFields, readPutBody, booleanParameter } from '../http/request.js';
import { readRulePut } from '../triggers/trigger-writer.js';
import type { RulePut } from '../triggers/trigger-writer.js';
import { listEntities } from './collections.js';
import { boundsOf } from '../entitlement/limits.js';
import type { ApiContext } from './api-context.js';
import {
  errorResponses,
  listParameters,
  namespaceParameter,
  overwriteParameter,
  ruleNameParameter,
} from './descriptions.js';
import { apiRoot, checkOwner, entityNameOf, namespaceOf } from '../http/route.js';
import type { IdentifiedCall, Route } from '../http/route.js';
import { actionNameOf } from '../entities/action-name.js';

type Context = Pick<ApiContext, 'actionResolver' | 'clock' | 'config' | 'logger' | 'ruleWriter' | 'store'>;

/** The rule that the path names, in the caller's own namespace. Throws ApiError (400, 403). */
function ownRule(call: IdentifiedCall): { namespace: string; name: string; id: string } {
  const namespace = namespaceOf(call);
  const name = entityNameOf(call, 'ruleName');
  checkOwner(call, namespace, name);
  return { namespace, name, id: `${namespace}/${name}` };
}

async function putRule(context: Context, call: IdentifiedCall): Promise<Answer> {
  const { namespace, name } = ownRule(call);
  // Annotations at their maximum size, and the same again for the other fields.
  const body = await readPutBody(call.request, parametersBound(context.config.limits, 2));
  const put = readRulePut(body, namespace, boundsOf(context, call.identity));
  const overwrite = booleanParameter(call.query, 'overwrite', false);
  await checkRights(context, call, put);
  const written = await context.ruleWriter.put(namespace, name, put, {
    overwrite,
    nowMs: context.clock.now(),
    checkAction: (reference) => resolveAction(context, call, reference),
  });
  return jsonAnswer(ruleToApi(written.rule, written.status));
}

function resolveAction(context: Context, { identity }: IdentifiedCall, reference: EntityReference): Promise<unknown> {
  return context.actionResolver.resolve(identity, actionNameOf(reference));
}

/** Refuses targets that the caller may not use, before the answer can reveal whether they exist. Throws ApiError (403). */
async function checkRights(context: Context, call: IdentifiedCall, { trigger, action }: RulePut): Promise<void> {
  const denied: string[] = [];
  if (trigger !== undefined && trigger.path.split('/', 1)[0] !== call.identity.namespace.name) {
    denied.push(referenceId(trigger));
  }
  if (action !== undefined) {
    try {
      await resolveAction(context, call, action);
    } catch (error) {
      if (!isApiError(error)) throw error;
      if (error.status === 403) {
        if (denied.length === 0) throw error;
        denied.push(referenceId(action));
      }
    }
  }
  if (denied.length > 0) throw notAuthorized(...denied);
}

async function getRule(context: Context, call: IdentifiedCall): Promise<Answer> {
  const { rule, status } = await context.ruleWriter.read(ownRule(call).id);
  return jsonAnswer(ruleToApi(rule, status));
}

async function deleteRule(context: Context, call: IdentifiedCall): Promise<Answer> {
  return jsonAnswer(ruleToApi(await context.ruleWriter.delete(ownRule(call).id), 'inactive'));
}

async function setState(context: Context, call: IdentifiedCall): Promise<Answer> {
  const { id } = ownRule(call);
  const body = await readPutBody(call.request, boundsOf(context, call.identity).maxPayload);
  await context.ruleWriter.setStatus(
    id,
    readFields(() => requestedStatus(body)),
  );
  return emptyAnswer(200);
}

function requestedStatus(body: JsonValue): RuleStatus {
  const { status } = asObject(body);
  if (status === undefined) throw new MalformedError('key not found: status');
  return readRuleStatus(status);
}

/** Routes to rules. */
export function ruleRoutes(context: Context): Route[] {
  const path = `${apiRoot}/namespaces/{namespace}/rules`;
  const one = { access: 'identified', tag: 'Rules', path: `${path}/{ruleName}` } as const;
  const names = [namespaceParameter, ruleNameParameter];
  const found = { 200: { description: 'The rule', schema: 'Rule' } } as const;
  return [
    {
      access: 'identified',
      tag: 'Rules',
      method: 'GET',
      path,
      trailingSlash: true,
      operationId: 'getAllRules',
      summary: 'Rules of a namespace, last written first, without their status',
      parameters: [namespaceParameter, ...listParameters],
      responses: {
        200: { description: 'Rules', schema: { arrayOf: 'RuleMeta', count: 'rules' } },
        ...errorResponses(400, 401, 403, 500),
      },
      handle: (call: IdentifiedCall) => listEntities(context, call, 'rules'),
    },
    {
      ...one,
      method: 'PUT',
      stores: true,
      operationId: 'updateRule',
      summary: 'Create or update a rule',
      parameters: [...names, overwriteParameter],
      body: { schema: 'RulePut', required: true },
      responses: { ...found, ...errorResponses(400, 401, 403, 409, 413, 500) },
      handle: (call: IdentifiedCall) => putRule(context, call),
    },
    {
      ...one,
      method: 'GET',
      operationId: 'getRuleByName',
      summary: 'A rule and its status',
      parameters: names,
      responses: { ...found, ...errorResponses(400, 401, 403, 404, 409, 500) },
      handle: (call: IdentifiedCall) => getRule(context, call),
    },
    {
      ...one,
      method: 'DELETE',
      operationId: 'deleteRule',
      summary: 'Delete a rule, active or not',
      parameters: names,
      responses: { ...found, ...errorResponses(400, 401, 403, 404, 409, 500) },
      handle: (call: IdentifiedCall) => deleteRule(context, call),
    },
    {
      ...one,
      method: 'POST',
      operationId: 'setState',
      summary: 'Enable or disable a rule',
      parameters: names,
      body: { schema: 'RuleStatus', required: true },
      responses: {
        200: { description: 'The rule has the state' },
        ...errorResponses(400, 401, 403, 404, 409, 413, 500),
      },
      handle: (call: IdentifiedCall) => setState(context, call),
    },
  ];
}
