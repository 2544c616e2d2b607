// The databases for operators: rows of views, and documents as stored.
import type { ByteBound } from '@gpuwhisk/common/entities/limits';
import { malformedPath, malformedQuery, malformedContent } from '@gpuwhisk/common/errors';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import type {
  ArtifactStore,
  DatabaseName,
  ViewName,
  NamedAttachment,
  StoredDocument,
} from '@gpuwhisk/common/store/artifact-store';
import { isJsonObject } from '@gpuwhisk/common/json';
import { checkFieldSize } from '../http/request.js';
import { refuseConflict } from './subjects.js';

/** OpenWhisk's design documents and views, mapped to our names of views; the last entry is our own. */
const views: Record<DatabaseName, Readonly<Record<string, ViewName>>> = {
  subjects: {
    'subjects.v2.0.0/identities': 'identities',
    'namespaceThrottlings/blockedNamespaces': 'blocked-namespaces',
  },
  whisks: {
    'whisks.v2.1.0/actions': 'actions',
    'whisks.v2.1.0/packages': 'packages',
    'whisks.v2.1.0/packages-public': 'packages-public',
    'whisks.v2.1.0/rules': 'rules',
    'whisks.v2.1.0/triggers': 'triggers',
  },
  activations: {
    'whisks.v2.1.0/activations': 'activations',
    'whisks-filters.v2.1.1/activations': 'activations-by-name',
  },
  gpu: { 'gpu.v1/apis': 'apis' },
};

/** The database of this name. Throws ApiError (400). */
export function databaseNamed(name: string): DatabaseName {
  if (Object.hasOwn(views, name)) return name as DatabaseName;
  throw malformedPath(`There is no database '${name}'; the databases are ${Object.keys(views).join(', ')}.`);
}

/** The view of a `design/view` name, as CouchDB writes it. Throws ApiError (400). */
function viewNamed(database: DatabaseName, name: string): ViewName {
  const view = Object.hasOwn(views[database], name) ? views[database][name] : undefined;
  if (view !== undefined) return view;
  const known = Object.keys(views[database]).join(', ');
  throw malformedQuery('view', `There is no view '${name}' of ${database}; its views are ${known}.`);
}

/** Selects rows of a database. */
interface RowQuery {
  /** `design/view`; absent: all documents by id. */
  view: string | undefined;
  /** Lists only documents with an id greater than this one. */
  after: string | undefined;
  skip: number;
  limit: number;
  includeDocs: boolean;
}

/** Rows as CouchDB writes them. Throws ApiError (400). */
export async function readRows(store: ArtifactStore, database: DatabaseName, query: RowQuery): Promise<JsonObject[]> {
  const { view, after, skip, limit, includeDocs } = query;
  if (view === undefined) {
    const documents = await store.list(database, { limit, ...(after !== undefined && { after }) });
    return documents.map((doc) => {
      const row: JsonObject = { id: doc._id, key: doc._id, value: { rev: doc._rev ?? null } };
      return includeDocs ? { ...row, doc } : row;
    });
  }
  const range = { view: viewNamed(database, view), startKey: [], endKey: ['\uffff'], skip, limit, includeDocs };
  const rows = await store.query(database, range);
  return rows.map(({ id, key, value, doc }) => {
    const row: JsonObject = { id, key: [...key], value };
    return includeDocs ? { ...row, doc: doc ?? null } : row;
  });
}

/** A document as an operator has sent it. */
interface RawDocument {
  document: StoredDocument;
  /** Undefined: the document keeps its attachments. */
  attachment: NamedAttachment | undefined;
}

/**
 * Reads a document from a request's body. An attachment is inline, as in CouchDB: `"_attachments": {"<name>":
 * {"content_type", "data": "<base64>"}}`. Throws ApiError (400, 413).
 */
export function readRawDocument(body: JsonValue, id?: string, mostAttached: ByteBound = { bytes: 0 }): RawDocument {
  if (!isJsonObject(body)) throw malformedContent('JSON object expected');
  const { _attachments: attachments, ...fields } = body;
  const { _id: ownId = id, _rev: revision } = fields;
  if (typeof ownId !== 'string' || ownId === '') throw malformedContent("'_id' must be a string");
  if (id !== undefined && ownId !== id) throw malformedContent("'_id' must equal the id in the path");
  if (revision !== undefined && typeof revision !== 'string') throw malformedContent("'_rev' must be a string");
  const attachment = attachments === undefined ? undefined : readAttachment(attachments);
  if (attachment !== undefined) checkFieldSize('attachment', attachment.bytes.length, mostAttached);
  return { document: { ...fields, _id: ownId }, attachment };
}

function readAttachment(value: JsonValue): NamedAttachment {
  const entries = isJsonObject(value) ? Object.entries(value) : [];
  const [first] = entries;
  if (first === undefined || entries.length > 1) throw malformedContent("'_attachments' must have one attachment");
  const [name, described] = first;
  const { content_type: contentType, data }: JsonObject = isJsonObject(described) ? described : {};
  if (name === '' || typeof contentType !== 'string' || typeof data !== 'string') {
    throw malformedContent("an attachment must have a name, 'content_type' and 'data'");
  }
  return { name, contentType, bytes: Buffer.from(data, 'base64') };
}

/**
 * Stores a document unchanged; a given attachment replaces all stored ones. Resolves with the new revision. Throws ApiError
 * (409).
 */
export function storeRawDocument(
  store: ArtifactStore,
  database: DatabaseName,
  { document, attachment }: RawDocument,
): Promise<string> {
  return store.put(database, document, attachment && [attachment]).catch(refuseConflict);
}
