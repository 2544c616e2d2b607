// Records as JSON texts of the API.
import { activationToApi, readActivation, responseToApi } from '../entities/activation.js';
import { MalformedError } from '../entities/malformed.js';
import type { JsonValue } from '../json.js';
import type { ArtifactStore, DatabaseName, DocumentShape, StoredDocument, TextQuery } from '../store/artifact-store.js';
import { DamagedDocumentError, NoDocumentError } from '../store/artifact-store.js';
import { entityText } from '../store/document-codec.js';

/** The JSON text of a document as the API shows it. Throws DamagedDocumentError for a damaged activation. */
export function documentText(document: StoredDocument, as: DocumentShape): string {
  if (as === 'entity') return entityText(document);
  try {
    return JSON.stringify(shapeOf(document, as));
  } catch (error) {
    if (error instanceof MalformedError) throw new DamagedDocumentError(document._id, { cause: error });
    throw error;
  }
}

function shapeOf(document: StoredDocument, as: Exclude<DocumentShape, 'entity'>): JsonValue {
  const record = readActivation(document);
  switch (as) {
    case 'activation':
      return activationToApi(record);
    case 'logs':
      return { logs: record.logs };
    case 'result':
      return responseToApi(record.response);
  }
}

/** Documents that are read at once. */
const readsAtOnce = 4;
/** Bytes after which texts are given out. */
const pieceBytes = 64 * 1024;

/** ArtifactStore.texts by the store's own `query` and `get`: rows first, then their documents, a few at a time. */
export async function* textsByQuery(
  store: Pick<ArtifactStore, 'query' | 'get'>,
  database: DatabaseName,
  query: TextQuery,
): AsyncGenerator<Uint8Array> {
  const { as } = query;
  const rows = await store.query(database, query);
  let texts: string[] = [];
  let bytes = 0;
  for (let at = 0; at < rows.length; at += readsAtOnce) {
    const some = rows.slice(at, at + readsAtOnce);
    const found =
      as === 'value'
        ? some.map(({ value }) => JSON.stringify(value))
        : await Promise.all(some.map(({ id }) => textIfThere(store, database, id, as)));
    for (const text of found) {
      if (text === undefined) continue;
      texts.push(text);
      bytes += text.length;
    }
    if (bytes < pieceBytes) continue;
    yield Buffer.from(texts.join(','));
    texts = [];
    bytes = 0;
  }
  if (texts.length > 0) yield Buffer.from(texts.join(','));
}

async function textIfThere(
  store: Pick<ArtifactStore, 'get'>,
  database: DatabaseName,
  id: string,
  as: DocumentShape,
): Promise<string | undefined> {
  try {
    return documentText(await store.get(database, id), as);
  } catch (error) {
    // It was removed after the view was read.
    if (error instanceof NoDocumentError) return undefined;
    throw error;
  }
}
