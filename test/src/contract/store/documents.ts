import type { ArtifactStore, StoredDocument, ViewQuery } from '@gpuwhisk/common/store/artifact-store';

/** Storage for stores of the kind under test. */
export interface StoreHome {
  /** Opens a store on the storage, with the data of an earlier closed store. */
  open(): Promise<ArtifactStore>;
  /** Whether ids with characters beyond U+FFFF are listed in their order; default true. */
  listsAstralIds?: boolean;
  /** Deletes the storage. */
  remove(): Promise<void>;
}

/** The store of the current case. */
export interface StoreUnderTest {
  home: StoreHome;
  store: ArtifactStore;
}

/** A document of action `guest/<name>`. */
export function action(name: string, updated: number, more: Partial<StoredDocument> = {}): StoredDocument {
  return {
    _id: `guest/${name}`,
    entityType: 'action',
    namespace: 'guest',
    name,
    version: '0.0.1',
    publish: false,
    annotations: [],
    parameters: [],
    limits: { timeout: 60000, memory: 256, logs: 10, concurrency: 1 },
    exec: { kind: 'nodejs:20', code: 'x', binary: false },
    updated,
    ...more,
  };
}

/** The document of activation `number` in namespace guest, which took 5 ms. */
export function activation(number: number, start: number, more: Partial<StoredDocument> = {}): StoredDocument {
  const activationId = number.toString(16).padStart(32, '0');
  return {
    _id: `guest/${activationId}`,
    entityType: 'activation',
    namespace: 'guest',
    name: 'hello',
    version: '0.0.1',
    subject: 'guest',
    activationId,
    start,
    end: start + 5,
    duration: 5,
    response: { statusCode: 0, result: { greeting: 'hello' } },
    logs: ['a line'],
    publish: false,
    annotations: [{ key: 'path', value: 'guest/hello' }],
    ...more,
  };
}

/** A query as the API's lists make it: newest first. */
export const newestFirst = (view: ViewQuery['view'], path: string, more: Partial<ViewQuery> = {}): ViewQuery => ({
  view,
  startKey: [path, 0],
  endKey: [path, '\ufff0', '\ufff0'],
  descending: true,
  ...more,
});

/** The ids of a view's rows, in the order of the view. The view's name determines the database. */
export async function idsIn(store: ArtifactStore, query: ViewQuery): Promise<unknown[]> {
  const database = query.view.startsWith('activations') ? 'activations' : 'whisks';
  return (await store.query(database, query)).map((row) => row.id);
}
