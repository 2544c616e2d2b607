import {
  activationDocumentId,
  activationToApi,
  readActivation,
  responseToApi,
} from '@gpuwhisk/common/entities/activation';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { MalformedError } from '@gpuwhisk/common/entities/malformed';
import { isEntityName } from '@gpuwhisk/common/entities/names';
import {
  corruptedEntity,
  docsWithCount,
  malformedPath,
  malformedQuery,
  noSuchEntity,
  overloaded,
} from '@gpuwhisk/common/errors';
import { isActivationId } from '@gpuwhisk/common/ids';
import { StateUnavailableError } from '@gpuwhisk/common/state/cluster-state';
import { sleep } from '@gpuwhisk/common/system/clock';
import { DamagedDocumentError, LargeDocumentError, NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ViewQuery } from '@gpuwhisk/common/store/artifact-store';
import { endedBefore } from '@gpuwhisk/common/store/views';
import { isInFlight } from '../entitlement/in-flight.js';
import type { Answer } from '../http/answer.js';
import { jsonAnswer } from '../http/answer.js';
import { listAnswer, readOrRefuse } from '../http/list-answer.js';
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
import type { Call, IdentifiedCall, Route } from '../http/route.js';

type Context = Pick<ApiContext, 'clock' | 'store' | 'state' | 'logStreams' | 'logger' | 'expiredBefore'>;

const collection = 'activations';
const idLength = 32;
/** A blocking answer may precede its record by 50 ms, so a missing record is looked up again after this delay. */
const recordLagMs = 60;
/** Longest wait between two looks for logs, ms: a blocking call may return before they are complete, and their record is stored. */
const longestLogsWaitMs = 480;

/** Stored records up to this size are read at once; larger ones in the store's thread. */
const atOnceBytes = 64 * 1024;

/** What is shown of a record. */
const shownParts = {
  activation: activationToApi,
  logs: ({ logs }: WhiskActivation) => ({ logs }),
  result: ({ response }: WhiskActivation) => responseToApi(response),
} as const;
type RecordPart = keyof typeof shownParts;

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

async function listActivations(
  { clock, store, logger, expiredBefore }: Context,
  call: IdentifiedCall,
): Promise<Answer> {
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
  const endedSince = expiredBefore();
  const shown = { ...range, reader: call.identity.namespace.uuid, ...(endedSince !== undefined && { endedSince }) };
  if (count) {
    const rows = await readOrRefuse(store.count('activations', shown));
    return jsonAnswer({ [collection]: Math.max(0, rows - skip) });
  }
  const as = docs ? 'activation' : 'value';
  return listAnswer(store.texts('activations', { ...shown, descending: true, skip, limit, as }), { clock, logger });
}

/** The id of an activation that a path names. Throws ApiError (400). */
export function activationIdOf(call: Call): string {
  const id = pathParameter(call, 'activationId');
  if (id.length !== idLength) throw malformedPath(`Activation id length is ${id.length} but must be ${idLength}.`);
  if (!isActivationId(id)) throw malformedPath('The activation id is not valid.');
  return id;
}

/** The activation that a path names, which must be the caller's. Throws ApiError (400, 403). */
function activationOf(call: IdentifiedCall): { namespace: string; activationId: string } {
  const namespace = namespaceOf(call);
  const id = activationIdOf(call);
  checkOwner(call, namespace, id);
  return { namespace, activationId: id };
}

/** The record of an activation, or undefined if there is none. Throws ApiError (500) for a corrupted one. */
export async function recordOf(
  { store, expiredBefore }: Pick<Context, 'store' | 'expiredBefore'>,
  { namespace, activationId }: ReturnType<typeof activationOf>,
): Promise<WhiskActivation | undefined> {
  try {
    const document = await store.get('activations', activationDocumentId(namespace, activationId));
    return endedBefore(document, expiredBefore()) ? undefined : readActivation(document);
  } catch (error) {
    if (error instanceof NoDocumentError) return undefined;
    if (error instanceof MalformedError) throw corruptedEntity();
    throw error;
  }
}

/** A record or a part of it as an answer, or undefined if there is no record. Throws ApiError (429, 500). */
async function shownRecord(
  { store, expiredBefore }: Context,
  call: IdentifiedCall,
  as: RecordPart,
): Promise<Answer | undefined> {
  const { namespace, activationId } = activationOf(call);
  const id = activationDocumentId(namespace, activationId);
  try {
    const document = await store.get('activations', id, atOnceBytes);
    return endedBefore(document, expiredBefore()) ? undefined : jsonAnswer(shownParts[as](readActivation(document)));
  } catch (error) {
    if (error instanceof NoDocumentError) return undefined;
    if (error instanceof MalformedError) throw corruptedEntity();
    if (!(error instanceof LargeDocumentError)) throw error;
  }
  try {
    const reader = call.identity.namespace.uuid;
    const text = await readOrRefuse(store.text('activations', id, as, reader, expiredBefore()));
    return { status: 200, body: Buffer.from(text.buffer, text.byteOffset, text.length) };
  } catch (error) {
    if (error instanceof NoDocumentError) return undefined;
    if (error instanceof DamagedDocumentError) throw corruptedEntity();
    throw error;
  }
}

async function readRecord(context: Context, call: IdentifiedCall, as: RecordPart): Promise<Answer> {
  const known = await shownRecord(context, call, as);
  if (known !== undefined) return known;
  await sleep(context.clock, recordLagMs);
  const late = await shownRecord(context, call, as);
  if (late === undefined) throw noSuchEntity();
  return late;
}

/** The logs of a record, which is waited for. */
async function readLogs(context: Context, call: IdentifiedCall): Promise<Answer> {
  for (let waitMs = recordLagMs; ; waitMs *= 2) {
    const logs = await shownRecord(context, call, 'logs');
    if (logs !== undefined) return logs;
    if (waitMs > longestLogsWaitMs) throw noSuchEntity();
    await sleep(context.clock, waitMs);
  }
}

/** Whether an activation is in flight. Throws ApiError (503). */
async function isUnderWay({ state }: Context, { identity }: IdentifiedCall, activationId: string): Promise<boolean> {
  try {
    return await isInFlight(state, identity.namespace, activationId);
  } catch (error) {
    if (error instanceof StateUnavailableError) throw overloaded();
    throw error;
  }
}

function followLogs(context: Context, call: IdentifiedCall): Promise<Answer> {
  const activation = activationOf(call);
  return context.logStreams.open(call, {
    ...activation,
    recorded: async () => (await recordOf(context, activation))?.logs,
    isInFlight: () => isUnderWay(context, call, activation.activationId),
  });
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
      handle: (call) => listActivations(context, call),
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
      handle: (call) => readRecord(context, call, 'activation'),
    },
    {
      method: 'GET',
      path: `${path}/{activationId}/logs`,
      access: 'identified',
      operationId: 'getActivationLogs',
      tag,
      summary: 'The logs of an activation',
      parameters: [
        ...one,
        {
          name: 'follow',
          in: 'query',
          type: 'boolean',
          description:
            "Whether to stream the lines, also those of a running activation, as server-sent events 'lines' and 'end'",
        },
      ],
      responses: {
        200: { description: 'Logs', schema: 'ActivationLogs' },
        ...errorResponses(400, 401, 403, 404, 429, 500, 503),
      },
      handle: (call) =>
        booleanParameter(call.query, 'follow', false) ? followLogs(context, call) : readLogs(context, call),
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
      handle: (call) => readRecord(context, call, 'result'),
    },
  ];
}
