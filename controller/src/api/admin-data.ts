// Documents of the databases, and records that the store refuses, for operators.
import { malformedContent, malformedQuery, noSuchEntity } from '@gpuwhisk/common/errors';
import { base64Bytes } from '@gpuwhisk/common/entities/exec-codec';
import { maxCodeFor, parametersBound } from '@gpuwhisk/common/entities/limits';
import { isJsonObject } from '@gpuwhisk/common/json';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { DatabaseName } from '@gpuwhisk/common/store/artifact-store';
import { deleteRefused, listRefused, readRefused } from '@gpuwhisk/common/activations/refused-records';
import { databaseNamed, readRows, readRawDocument, storeRawDocument } from '../admin/databases.js';
import { refuseConflict } from '../admin/subjects.js';
import type { Answer } from '../http/answer.js';
import { jsonAnswer } from '../http/answer.js';
import { readPutBody, booleanParameter, parseInt32 } from '../http/request.js';
import { identityChanges } from './admin.js';
import type { ApiContext } from './api-context.js';
import { errorResponses, pathParameters, queryParameters } from './descriptions.js';
import { apiRoot, pathParameter } from '../http/route.js';
import type { Call, IdentifiedCall, Route } from '../http/route.js';

type Context = Pick<ApiContext, 'actions' | 'config' | 'identities' | 'logRing' | 'packages' | 'state' | 'store'>;

/** Most rows of one answer. */
const maxRows = 1000;

/** Most bytes of documents that are created at the same time. */
const maxCreateBytes = 32 * 1024 * 1024;

/** A whole number of the query, from 0 to `most`. Throws ApiError (400). */
function countParameter(call: Call, name: string, otherwise: number, most: number): number {
  const text = call.query.get(name);
  if (text === null) return otherwise;
  const value = parseInt32(text);
  if (value === undefined || value < 0 || value > most) throw malformedQuery(name, `It must be 0 to ${most}.`);
  return value;
}

const databaseOf = (call: Call): DatabaseName => databaseNamed(pathParameter(call, 'database'));

function refuseMissing(error: unknown): never {
  if (error instanceof NoDocumentError) throw noSuchEntity();
  return refuseConflict(error);
}

/** Removes from the caches a document that was written directly to the database. */
async function forget({ actions, packages, identities, state }: Context, database: DatabaseName, id: string) {
  if (database === 'subjects') {
    identities.forget();
    await state.publish(identityChanges, null);
  } else if (database === 'whisks') {
    const slash = id.lastIndexOf('/');
    const path = { namespace: id.slice(0, slash), name: id.slice(slash + 1) };
    actions.drop(path.namespace, path.name);
    packages.drop(path);
  }
}

async function getRows(context: Context, call: IdentifiedCall): Promise<Answer> {
  const { query } = call;
  const rows = await readRows(context.store, databaseOf(call), {
    view: query.get('view') ?? undefined,
    after: query.get('after') ?? undefined,
    skip: countParameter(call, 'skip', 0, 2 ** 31 - 1),
    limit: countParameter(call, 'limit', 200, maxRows),
    includeDocs: booleanParameter(query, 'docs', false),
  });
  return jsonAnswer({ rows });
}

async function getDocument({ store }: Context, call: IdentifiedCall): Promise<Answer> {
  return jsonAnswer(await store.get(databaseOf(call), pathParameter(call, 'documentId')).catch(refuseMissing));
}

async function putDocument(context: Context, call: IdentifiedCall): Promise<Answer> {
  const { limits } = context.config;
  const code = maxCodeFor(limits);
  const database = databaseOf(call);
  const id = pathParameter(call, 'documentId');
  // Code may be text, or an attachment in base64, which is longer by a third.
  const bytes = base64Bytes(code.bytes) + parametersBound(limits, 3).bytes;
  const body = await readPutBody(call.request, { ...code, bytes });
  const rev = await storeRawDocument(context.store, database, readRawDocument(body, id, code));
  await forget(context, database, id);
  return jsonAnswer({ ok: true, id, rev });
}

async function createDocuments(context: Context, call: IdentifiedCall): Promise<Answer> {
  const database = databaseOf(call);
  const body = await readPutBody(call.request, maxCreateBytes);
  const given = isJsonObject(body) ? body.documents : undefined;
  if (!Array.isArray(given) || given.length > maxRows) {
    throw malformedContent(`'documents' must be a list of ${maxRows} documents at most`);
  }
  const documents = given.map((one) => {
    const { document, attachment } = readRawDocument(one);
    if (attachment !== undefined || document._rev !== undefined) {
      throw malformedContent("new documents have no '_rev', and attachments come with single documents only");
    }
    return document;
  });
  const created = await context.store.createMany(database, documents);
  for (const { _id: id } of documents) await forget(context, database, id);
  return jsonAnswer({ created });
}

async function deleteDocument(context: Context, call: IdentifiedCall): Promise<Answer> {
  const database = databaseOf(call);
  const id = pathParameter(call, 'documentId');
  const revision = call.query.get('rev');
  if (revision === null) throw malformedQuery('rev', 'It must be the revision of the document.');
  await context.store.delete(database, id, revision).catch(refuseMissing);
  await forget(context, database, id);
  return jsonAnswer({ ok: true, id });
}

/** Routes to raw documents of the databases and to the log, for operators only. */
export function adminDataRoutes(context: Context): Route[] {
  const shared = { access: 'operator', tag: 'Administration' } as const;
  const database = `${apiRoot}/admin/databases/{database}`;
  const databaseParameters = pathParameters({ database: 'subjects, whisks or activations' });
  const one = {
    path: `${database}/documents/{documentId}`,
    parameters: [...databaseParameters, ...pathParameters({ documentId: 'Id of the document, percent-encoded' })],
  };
  const errors = errorResponses(400, 401, 403, 404, 409, 413, 500);
  const document = { 200: { description: 'The document', schema: 'Document' }, ...errors } as const;
  const revision = { 200: { description: 'Id and revision of the document' }, ...errors } as const;
  return [
    {
      ...shared,
      method: 'GET',
      path: `${database}/documents`,
      operationId: 'getDocuments',
      summary: 'Documents of a database by id, or the rows of a view',
      parameters: [
        ...databaseParameters,
        ...queryParameters({
          view: "A view as CouchDB names it, such as 'whisks.v2.1.0/actions'; absent: all documents",
          after: 'For documents by id: only those after this id',
          skip: 'For a view: rows to leave out',
          limit: `Rows at most, up to ${maxRows}; default 200`,
          docs: 'Whether rows hold the documents',
        }),
      ],
      responses: { 200: { description: 'Rows', schema: 'DocumentRows' }, ...errors },
      handle: (call: IdentifiedCall) => getRows(context, call),
    },
    {
      ...shared,
      method: 'POST',
      path: `${database}/documents`,
      parameters: databaseParameters,
      operationId: 'createDocuments',
      summary: 'Create documents without changes; existing documents are kept',
      body: { schema: 'NewDocuments', required: true },
      responses: { 200: { description: 'Whether each was created', schema: 'CreatedDocuments' }, ...errors },
      handle: (call: IdentifiedCall) => createDocuments(context, call),
    },
    {
      ...shared,
      ...one,
      method: 'GET',
      operationId: 'getDocument',
      summary: 'A document as it is stored',
      responses: document,
      handle: (call: IdentifiedCall) => getDocument(context, call),
    },
    {
      ...shared,
      ...one,
      method: 'PUT',
      operationId: 'updateDocument',
      summary: 'Store a document without changes, with an inline attachment; replacing one requires its _rev',
      body: { schema: 'Document', required: true },
      responses: revision,
      handle: (call: IdentifiedCall) => putDocument(context, call),
    },
    {
      ...shared,
      ...one,
      method: 'DELETE',
      operationId: 'deleteDocument',
      summary: 'Delete a document and its attachments',
      parameters: [...one.parameters, ...queryParameters({ rev: 'Revision of the document' })],
      responses: revision,
      handle: (call: IdentifiedCall) => deleteDocument(context, call),
    },
    {
      ...shared,
      method: 'GET',
      path: `${apiRoot}/admin/syslog`,
      operationId: 'getLog',
      summary: 'The last lines of the log',
      parameters: queryParameters({
        transid: 'Only lines of this transaction',
        grep: 'Only lines that contain this text',
      }),
      responses: { 200: { description: 'Lines', schema: 'LogLines' }, ...errors },
      handle: async ({ query }: IdentifiedCall) => {
        const transactionId = query.get('transid') ?? undefined;
        const text = query.get('grep') ?? undefined;
        const wanted = { ...(transactionId !== undefined && { transactionId }), ...(text !== undefined && { text }) };
        return jsonAnswer({ lines: context.logRing?.find(wanted) ?? [] });
      },
    },
  ];
}

/** Most records of one answer. */
const maxRecords = 1000;

/** Routes to activation records that the store will never accept, for operators only. */
export function refusedRecordRoutes(context: Pick<ApiContext, 'store'>): Route[] {
  const { store } = context;
  const shared = { access: 'operator', tag: 'Administration' } as const;
  const all = `${apiRoot}/admin/refused-records`;
  const one = {
    path: `${all}/{namespace}/{activationId}`,
    parameters: pathParameters({ namespace: 'Namespace of the activation', activationId: 'Id of the activation' }),
  };
  const errors = errorResponses(400, 401, 403, 404, 500);
  const idOf = (call: Call): string => `${pathParameter(call, 'namespace')}/${pathParameter(call, 'activationId')}`;
  return [
    {
      ...shared,
      method: 'GET',
      path: all,
      operationId: 'getRefusedRecords',
      summary: 'Activation records that the store refuses, by id',
      parameters: queryParameters({
        after: 'Only records after this id',
        limit: `Records at most, up to ${maxRecords}; default 200`,
      }),
      responses: { 200: { description: 'Records', schema: { arrayOf: 'RefusedRecord' } }, ...errors },
      handle: async (call: Call) => {
        const after = call.query.get('after') ?? '';
        const limit = countParameter(call, 'limit', 200, maxRecords);
        return jsonAnswer((await listRefused(store, { after, limit })).map((record) => ({ ...record })));
      },
    },
    {
      ...shared,
      ...one,
      method: 'GET',
      operationId: 'getRefusedRecord',
      summary: 'A refused record',
      responses: { 200: { description: 'The record', schema: 'Document' }, ...errors },
      handle: async (call: Call) => {
        const record = await readRefused(store, idOf(call)).catch((error: unknown) => {
          throw error instanceof NoDocumentError ? noSuchEntity() : error;
        });
        return jsonAnswer(record);
      },
    },
    {
      ...shared,
      ...one,
      method: 'DELETE',
      operationId: 'deleteRefusedRecord',
      summary: 'Delete a record that was refused',
      responses: { 200: { description: 'Deleted' }, ...errors },
      handle: async (call: Call) => {
        if (!(await deleteRefused(store, idOf(call)))) throw noSuchEntity();
        return jsonAnswer({});
      },
    },
  ];
}
