import { malformedPath, malformedQuery } from '@gpuwhisk/common/errors';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { ArtifactStore, DatabaseName, ViewName } from '@gpuwhisk/common/store/artifact-store';

/** OpenWhisk's design documents and their views, as our views are named; the last is our own. */
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

/** One of the databases. Throws ApiError (400). */
export function databaseNamed(name: string): DatabaseName {
  if (Object.hasOwn(views, name)) return name as DatabaseName;
  throw malformedPath(`There is no database '${name}'; there are ${Object.keys(views).join(', ')}.`);
}

/** A view by `design/view`, as CouchDB names it. Throws ApiError (400). */
function viewNamed(database: DatabaseName, name: string): ViewName {
  const view = Object.hasOwn(views[database], name) ? views[database][name] : undefined;
  if (view !== undefined) return view;
  const known = Object.keys(views[database]).join(', ');
  throw malformedQuery('view', `There is no view '${name}' of ${database}; there are ${known}.`);
}

/** Which rows of a database are wanted. */
export interface RowQuery {
  /** `design/view`; absent: all documents by id. */
  view: string | undefined;
  /** Of documents by id: those behind this one. */
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
