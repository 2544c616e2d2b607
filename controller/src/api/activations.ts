import {
  activationDocumentId,
  activationToApi,
  readActivation,
  responseToApi,
} from '@gpuwhisk/common/entities/activation';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { MalformedError } from '@gpuwhisk/common/entities/malformed';
import { isEntityName } from '@gpuwhisk/common/entities/names';
import { corruptedEntity, docsWithCount, malformedPath, malformedQuery, noSuchEntity } from '@gpuwhisk/common/errors';
import { isActivationId } from '@gpuwhisk/common/ids';
import { sleep } from '@gpuwhisk/common/system/clock';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore, ViewQuery } from '@gpuwhisk/common/store/artifact-store';
import type { Answer } from '../http/answer.js';
import { jsonAnswer } from '../http/answer.js';
import { booleanParameter, listRange, timeParameter, afterAll } from '../http/request.js';
import type { ApiContext } from './api-context.js';
import {
  activationFilters,
  activationIdParameter,
  errorResponses,
  listParameters,
  namespaceParameter,
} from './descriptions.js';
import { apiRoot, checkOwner, namespaceOf, pathParameter } from '../http/route.js';
import type { IdentifiedCall, Route } from '../http/route.js';

type Context = Pick<ApiContext, 'clock' | 'store'>;

const collection = 'activations';
const idLength = 32;
/** A blocking answer may precede its record by 50 ms, so a missing record is looked up again after this delay. */
const recordLagMs = 60;

/** Query parameter `name`: `action` or `package/action`; undefined for none. Throws ApiError (400). */
function nameFilter(query: URLSearchParams): string | undefined {
  const given = query.get('name');
  if (given === null || given.trim() === '') return undefined;
  const segments = given.split('/').filter((segment) => segment !== '');
  if (segments.length === 0 || segments.length > 2 || !segments.every(isEntityName)) {
    throw malformedQuery('name', `Parameter may be a 'simple' name or 'package-name/simple' name: ${given}`);
  }
  return segments.join('/');
}

async function listActivations(store: ArtifactStore, call: IdentifiedCall): Promise<Answer> {
  const namespace = namespaceOf(call);
  checkOwner(call, namespace);
  const { query } = call;
  const { skip, limit } = listRange(query, collection);
  const count = booleanParameter(query, 'count', false);
  const docs = booleanParameter(query, 'docs', false);
  const name = nameFilter(query);
  const since = timeParameter(query, 'since');
  const upto = timeParameter(query, 'upto');
  if (count && docs) throw docsWithCount();
  const path = name === undefined ? namespace : `${namespace}/${name}`;
  const range: Pick<ViewQuery, 'view' | 'startKey' | 'endKey'> = {
    view: name === undefined ? 'activations' : 'activations-by-name',
    startKey: [path, since ?? 0],
    endKey: [path, upto ?? afterAll, afterAll],
  };
  if (count) {
    const rows = await store.count('activations', range);
    return jsonAnswer({ [collection]: Math.max(0, rows - skip) });
  }
  const rows = await store.query('activations', { ...range, descending: true, skip, limit, includeDocs: docs });
  if (!docs) return jsonAnswer(rows.map((row) => row.value));
  // The document of a row is undefined if its record was removed after the view was read.
  return jsonAnswer(rows.flatMap((row) => (row.doc === undefined ? [] : [activationToApi(readActivation(row.doc))])));
}

async function readRecord({ store, clock }: Context, call: IdentifiedCall): Promise<WhiskActivation> {
  const namespace = namespaceOf(call);
  const id = pathParameter(call, 'activationId');
  if (id.length !== idLength) throw malformedPath(`Activation id length is ${id.length} but must be ${idLength}.`);
  if (!isActivationId(id)) throw malformedPath('The activation id is not valid.');
  checkOwner(call, namespace, id);
  const documentId = activationDocumentId(namespace, id);
  try {
    return readActivation(
      await store.get('activations', documentId).catch(async (error: unknown) => {
        if (!(error instanceof NoDocumentError)) throw error;
        await sleep(clock, recordLagMs);
        return store.get('activations', documentId);
      }),
    );
  } catch (error) {
    if (error instanceof NoDocumentError) throw noSuchEntity();
    if (error instanceof MalformedError) throw corruptedEntity();
    throw error;
  }
}

/** Routes to list and read activations and their records. */
export function activationRoutes(context: Context): Route[] {
  const path = `${apiRoot}/namespaces/{namespace}/activations`;
  const tag = 'Activations';
  const one = [namespaceParameter, activationIdParameter];
  return [
    {
      method: 'GET',
      path,
      trailingSlash: true,
      access: 'identified',
      operationId: 'getActivations',
      tag,
      summary: 'Activations of a namespace, newest first',
      parameters: [namespaceParameter, ...listParameters, ...activationFilters],
      responses: {
        200: { description: 'Activations', schema: { arrayOf: 'ActivationBrief', count: 'activations' } },
        ...errorResponses(400, 401, 403, 500),
      },
      handle: (call) => listActivations(context.store, call),
    },
    {
      method: 'GET',
      path: `${path}/{activationId}`,
      trailingSlash: true,
      access: 'identified',
      operationId: 'getActivationById',
      tag,
      summary: 'The record of an activation',
      parameters: one,
      responses: { 200: { description: 'Record', schema: 'Activation' }, ...errorResponses(400, 401, 403, 404, 500) },
      handle: async (call) => jsonAnswer(activationToApi(await readRecord(context, call))),
    },
    {
      method: 'GET',
      path: `${path}/{activationId}/logs`,
      access: 'identified',
      operationId: 'getActivationLogs',
      tag,
      summary: 'The logs of an activation',
      parameters: one,
      responses: { 200: { description: 'Logs', schema: 'ActivationLogs' }, ...errorResponses(400, 401, 403, 404, 500) },
      handle: async (call) => jsonAnswer({ logs: (await readRecord(context, call)).logs }),
    },
    {
      method: 'GET',
      path: `${path}/{activationId}/result`,
      access: 'identified',
      operationId: 'getActivationResult',
      tag,
      summary: 'The result of an activation',
      parameters: one,
      responses: {
        200: { description: 'Result', schema: 'ActivationResult' },
        ...errorResponses(400, 401, 403, 404, 500),
      },
      handle: async (call) => jsonAnswer(responseToApi((await readRecord(context, call)).response)),
    },
  ];
}
