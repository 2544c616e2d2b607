import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer as createHttpsServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { ArtifactStore, StoredDocument } from '@gpuwhisk/common/store/artifact-store';

/** A document of CouchDB, and the bytes of its attachments. */
interface Entry {
  document: StoredDocument;
  attachments: Map<string, { contentType: string; bytes: Uint8Array }>;
}

/** The requests of CouchDB's protocol that a migration makes, with its answers. */
export interface FakeCouchdb {
  /** URL with user and password. */
  url: string;
  put(database: string, document: StoredDocument, attachments?: Record<string, string>): void;
  /** Copies all documents of a platform's store, whose layout is CouchDB's. */
  copy(store: ArtifactStore, prefix: string): Promise<void>;
  /** Paths of the requests so far, without the names of databases. */
  readonly requests: string[];
  close(): Promise<void>;
}

const user = 'whisk:se cret';

/** Starts a server on a free port; with `tls` over HTTPS. */
export async function startFakeCouchdb(tls?: ServerOptions): Promise<FakeCouchdb> {
  const databases = new Map<string, Map<string, Entry>>();
  const requests: string[] = [];
  const answerRequest: RequestListener = (request, response) => {
    const answer = (status: number, body: JsonObject): void =>
      void response.writeHead(status).end(JSON.stringify(body));
    const url = new URL(request.url ?? '/', 'http://couchdb');
    requests.push(url.pathname.slice(1));
    if (request.headers.authorization !== `Basic ${Buffer.from(user).toString('base64')}`) {
      return answer(401, { error: 'unauthorized', reason: 'Name or password is incorrect.' });
    }
    const [name = '', id, attachment] = url.pathname.slice(1).split('/').map(decodeURIComponent);
    const database = databases.get(name);
    if (database === undefined) return answer(404, { error: 'not_found', reason: 'Database does not exist.' });
    if (id === undefined) return answer(200, { db_name: name, doc_count: database.size });
    if (id === '_all_docs') return answer(200, allDocs(database, url.searchParams));
    const bytes = database.get(id)?.attachments.get(attachment ?? '')?.bytes;
    if (bytes === undefined) return answer(404, { error: 'not_found', reason: 'Document is missing attachment' });
    return void response.writeHead(200).end(bytes);
  };
  const server = tls ? createHttpsServer(tls, answerRequest) : createHttpServer(answerRequest);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const entriesOf = (name: string): Map<string, Entry> => {
    const entries = databases.get(name) ?? new Map<string, Entry>();
    databases.set(name, entries);
    return entries;
  };
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls ? 'https' : 'http'}://${user.replace(' ', '%20')}@localhost:${port}`,
    requests,
    put(name, document, attachments = {}) {
      const stored = Object.entries(attachments).map(
        ([key, text]) => [key, { contentType: 'text/plain', bytes: Buffer.from(text) }] as const,
      );
      entriesOf(name).set(document._id, { document: { _rev: '1-a', ...document }, attachments: new Map(stored) });
    },
    async copy(store, prefix) {
      for (const name of ['subjects', 'whisks', 'activations'] as const) {
        for (const document of await store.list(name, { limit: 10_000 })) {
          const attachments: Entry['attachments'] = new Map();
          const key = codeBeside(document);
          if (key !== undefined) attachments.set(key, await store.getAttachment(name, document._id, key));
          entriesOf(prefix + name).set(document._id, { document, attachments });
        }
      }
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/**
 * The name of an action's attachment, or undefined without one. Removes length and digest, which OpenWhisk writes for
 * inline code only.
 */
function codeBeside({ exec }: StoredDocument): string | undefined {
  const { code } = (exec ?? {}) as { code?: JsonObject };
  const key = /^couch:(.*)$/.exec(String(code?.attachmentName))?.[1];
  if (code === undefined || key === undefined) return undefined;
  delete code.length;
  delete code.digest;
  return key;
}

/** CouchDB orders ids by their bytes. */
function allDocs(database: Map<string, Entry>, query: URLSearchParams): JsonObject {
  const keyOf = (name: string): string | undefined => {
    const text = query.get(name);
    return text === null ? undefined : (JSON.parse(text) as string);
  };
  const [start, end] = [keyOf('startkey'), keyOf('endkey')];
  const compare = (one: string, other: string): number => Buffer.compare(Buffer.from(one), Buffer.from(other));
  const skip = Number(query.get('skip') ?? 0);
  const rows = [...database.values()]
    .filter(({ document: { _id: id } }) => start === undefined || compare(id, start) >= 0)
    .filter(({ document: { _id: id } }) => end === undefined || compare(id, end) <= 0)
    .sort((one, other) => compare(one.document._id, other.document._id))
    .slice(skip, skip + Number(query.get('limit')))
    .map(({ document, attachments }) => ({
      id: document._id,
      key: document._id,
      value: { rev: document._rev ?? null },
      doc: { ...document, ...(attachments.size > 0 && { _attachments: stubs(attachments) }) },
    }));
  return { total_rows: database.size, offset: 0, rows };
}

function stubs(attachments: Entry['attachments']): JsonObject {
  return Object.fromEntries(
    [...attachments].map(([name, { contentType, bytes }]) => [
      name,
      { content_type: contentType, revpos: 1, length: bytes.length, stub: true },
    ]),
  );
}
