import type { ArtifactStore, StoredDocument, ViewQuery } from '@gpuwhisk/common/store/artifact-store';

/** A place where stores of the kind under test live. */
export interface StoreHome {
  /** Opens the store that lies there; what an earlier one, closed since, held is in it. */
  open(): Promise<ArtifactStore>;
  /** Whether ids beyond the basic multilingual plane are listed in their order; default true. */
  listsAstralIds?: boolean;
  /** Removes the place. */
  remove(): Promise<void>;
}

/** What the case under way has. */
export interface StoreUnderTest {
  home: StoreHome;
  store: ArtifactStore;
}

/** The document of an action `guest/<name>`. */
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

/** The document of the `number`th activation in namespace guest, which took 5 ms. */
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

/** A query as lists make it. */
export const newestFirst = (view: ViewQuery['view'], path: string, more: Partial<ViewQuery> = {}): ViewQuery => ({
  view,
  startKey: [path, 0],
  endKey: [path, '\ufff0', '\ufff0'],
  descending: true,
  ...more,
});

/** The ids that a view of actions, activations and the like has, in its order. */
export async function idsIn(store: ArtifactStore, query: ViewQuery): Promise<unknown[]> {
  const database = query.view.startsWith('activations') ? 'activations' : 'whisks';
  return (await store.query(database, query)).map((row) => row.id);
}
