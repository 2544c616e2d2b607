import { ApiError, malformedContent, malformedPath } from '@gpuwhisk/common/errors';
import { namespaceNameProblem } from '@gpuwhisk/common/entities/names';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { ProcessSort } from '@gpuwhisk/common/state/process-registry';
import { NamespaceLimits, Subjects } from '../admin/subjects.js';
import type { KeyRequest, Subject } from '../admin/subjects.js';
import type { Answer } from '../http/answer.js';
import { jsonAnswer } from '../http/answer.js';
import { readPutBody } from '../http/request.js';
import type { ApiContext } from './api-context.js';
import { errorResponses, pathParameters, queryParameters } from './descriptions.js';
import { apiRoot, pathParameter } from '../http/route.js';
import type { Call, IdentifiedCall, Route } from '../http/route.js';

/** The channel on which controllers are told to forget authenticated identities. */
export const identityChanges = 'identities';

/** Longest request body of this API, bytes. */
const maxBodyBytes = 64 * 1024;

async function readObject(call: Call): Promise<JsonObject> {
  const body = await readPutBody(call.request, maxBodyBytes);
  if (!isJsonObject(body)) throw malformedContent('JSON object expected');
  return body;
}

/** An optional field that must be a text. Throws ApiError (400). */
function textOf(body: JsonObject, field: string): string | undefined {
  const value = body[field];
  if (value === undefined || typeof value === 'string') return value;
  throw malformedContent(`'${field}' must be a string`);
}

function checkNamespace(namespace: string): string {
  const problem = namespaceNameProblem(namespace);
  if (problem !== undefined) throw malformedPath(problem);
  return namespace;
}

async function readKeyRequest(call: Call): Promise<KeyRequest> {
  const body = await readObject(call);
  const subject = pathParameter(call, 'subject');
  const uuid = textOf(body, 'uuid');
  const key = textOf(body, 'key');
  if (body.revoke !== undefined && typeof body.revoke !== 'boolean') {
    throw malformedContent("'revoke' must be true or false");
  }
  return {
    subject,
    namespace: checkNamespace(textOf(body, 'namespace') ?? subject),
    ...(uuid !== undefined && { uuid }),
    ...(key !== undefined && { key }),
    revoke: body.revoke === true,
  };
}

function subjectAnswer({ namespaces, ...subject }: Subject): Answer {
  return jsonAnswer({ ...subject, namespaces: namespaces.map((one) => ({ ...one })) });
}

/** Routes to subjects, their keys, and the limits of namespaces, for operators only. */
export function adminRoutes(
  context: Pick<ApiContext, 'identities' | 'prewarmers' | 'random' | 'retirements' | 'state' | 'store'>,
): Route[] {
  const { store, random, state, identities } = context;
  const changed = async (): Promise<void> => {
    identities.forget();
    await state.publish(identityChanges, null);
  };
  const subjects = new Subjects(store, random, changed);
  const limits = new NamespaceLimits(store, changed);

  const shared = { access: 'operator', tag: 'Administration' } as const;
  const root = `${apiRoot}/admin`;
  const errors = errorResponses(400, 401, 403, 404, 409, 500);
  const subject = {
    path: `${root}/subjects/{subject}`,
    parameters: pathParameters({ subject: 'Name of the subject' }),
  };
  const limited = {
    path: `${root}/limits/{namespace}`,
    parameters: pathParameters({ namespace: 'Name of the namespace' }),
  };
  const answers = {
    subject: { 200: { description: 'The subject', schema: 'Subject' }, ...errors },
    key: { 200: { description: 'The key', schema: 'NamespaceKey' }, ...errors },
    limits: { 200: { description: 'Limits of this namespace', schema: 'UserLimits' }, ...errors },
    deleted: { 200: { description: 'Deleted' }, ...errors },
  } as const;
  const subjectOf = (call: Call): string => pathParameter(call, 'subject');
  const namespaceOf = (call: Call): string => checkNamespace(pathParameter(call, 'namespace'));
  const blocking = (blocked: boolean): Route => ({
    ...shared,
    ...subject,
    path: `${subject.path}/${blocked ? 'block' : 'unblock'}`,
    method: 'POST',
    operationId: blocked ? 'blockSubject' : 'unblockSubject',
    summary: blocked ? 'Refuse the keys of a subject' : 'Accept the keys of a subject again',
    responses: answers.subject,
    handle: async (call: IdentifiedCall) => subjectAnswer(await subjects.setBlocked(subjectOf(call), blocked)),
  });
  const retiring = (sort: ProcessSort, path: string, operationId: string): Route => ({
    ...shared,
    method: 'POST',
    path: `${root}/${path}/{name}/retire`,
    parameters: pathParameters({ name: 'Name of the process' }),
    operationId,
    summary: 'Retire a process and settle its activations; a repeated request returns the progress',
    responses: {
      200: { description: 'Progress of the retirement', schema: 'Retirement' },
      ...errorResponses(401, 403, 404, 409, 503),
    },
    handle: async (call: IdentifiedCall) => {
      if (context.retirements === undefined)
        throw new ApiError(404, 'This platform runs in one process, which cannot be retired.');
      return jsonAnswer({ ...(await context.retirements.retire(sort, pathParameter(call, 'name'))) });
    },
  });
  return [
    retiring('invokers', 'invokers', 'retireInvoker'),
    retiring('controllers', 'controllers', 'retireController'),
    {
      ...shared,
      ...subject,
      method: 'GET',
      operationId: 'getSubject',
      summary: 'A subject and its keys',
      responses: answers.subject,
      handle: async (call: IdentifiedCall) => subjectAnswer(await subjects.get(subjectOf(call))),
    },
    {
      ...shared,
      ...subject,
      method: 'PUT',
      operationId: 'updateSubject',
      summary: 'Create a key of a subject for a namespace, and the subject if it is missing',
      body: { schema: 'KeyPut', required: true },
      responses: answers.key,
      handle: async (call: IdentifiedCall) => jsonAnswer({ ...(await subjects.putKey(await readKeyRequest(call))) }),
    },
    {
      ...shared,
      ...subject,
      method: 'DELETE',
      operationId: 'deleteSubject',
      summary: 'Delete a subject, or its key for one namespace',
      parameters: [...subject.parameters, ...queryParameters({ namespace: 'Delete only the key for this namespace' })],
      responses: answers.deleted,
      handle: async (call: IdentifiedCall) => {
        await subjects.delete(subjectOf(call), call.query.get('namespace') ?? undefined);
        return jsonAnswer({});
      },
    },
    blocking(true),
    blocking(false),
    {
      ...shared,
      method: 'GET',
      path: `${root}/namespaces/{namespace}/keys`,
      parameters: limited.parameters,
      operationId: 'getNamespaceKeys',
      summary: 'Keys of a namespace, without those of blocked subjects',
      responses: { 200: { description: 'Keys', schema: { arrayOf: 'NamespaceKey' } }, ...errors },
      handle: async (call: IdentifiedCall) =>
        jsonAnswer((await subjects.ofNamespace(namespaceOf(call))).map((owner) => ({ ...owner }))),
    },
    {
      ...shared,
      method: 'GET',
      path: `${root}/prewarmers`,
      operationId: 'getPrewarmers',
      summary: 'The containers that are ready for an action yet to come',
      responses: { 200: { description: 'Containers', schema: { arrayOf: 'Prewarmer' } }, ...errorResponses(401, 403) },
      handle: async () => jsonAnswer(context.prewarmers().map((one) => ({ ...one, imports: [...one.imports] }))),
    },
    {
      ...shared,
      method: 'POST',
      path: `${root}/whois`,
      operationId: 'whois',
      summary: 'Find the owner of a key',
      body: { schema: 'AuthKey', required: true },
      responses: answers.key,
      handle: async (call: IdentifiedCall) => {
        const authkey = textOf(await readObject(call), 'authkey') ?? '';
        const colon = authkey.indexOf(':');
        if (colon < 1) throw malformedContent("'authkey' must be a uuid and a key with a colon between");
        return jsonAnswer({ ...(await subjects.whois(authkey.slice(0, colon), authkey.slice(colon + 1))) });
      },
    },
    {
      ...shared,
      ...limited,
      method: 'GET',
      operationId: 'getNamespaceLimits',
      summary: 'Limits that are set for a namespace',
      responses: answers.limits,
      handle: async (call: IdentifiedCall) => jsonAnswer(await limits.get(namespaceOf(call))),
    },
    {
      ...shared,
      ...limited,
      method: 'PUT',
      operationId: 'updateNamespaceLimits',
      summary: 'Set the limits in the body; null removes a limit',
      body: { schema: 'UserLimits', required: true },
      responses: answers.limits,
      handle: async (call: IdentifiedCall) => jsonAnswer(await limits.set(namespaceOf(call), await readObject(call))),
    },
    {
      ...shared,
      ...limited,
      method: 'DELETE',
      operationId: 'deleteNamespaceLimits',
      summary: "Remove a namespace's own limits, so that the system's apply",
      responses: answers.deleted,
      handle: async (call: IdentifiedCall) => {
        await limits.delete(namespaceOf(call));
        return jsonAnswer({});
      },
    },
  ];
}
