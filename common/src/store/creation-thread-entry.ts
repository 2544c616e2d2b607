import { getPriority, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { withoutHalfPairs } from '../json.js';
import { nameThread } from '../system/thread-name.js';
import type { StoredDocument } from './artifact-store.js';
import type { ExpiredRecords, ThreadAnswer, ThreadRequest } from './creation-thread.js';
import { encodeNewDocument, withoutShared } from './document-codec.js';
import { LmdbDocuments } from './lmdb-documents.js';
import { LmdbSizes, openSizes, readCounts } from './lmdb-sizes.js';
import type { Counter } from './lmdb-sizes.js';
import { openRoot, LmdbWrites } from './lmdb-table.js';
import { namespaceOfDocument } from './stored-bytes.js';
import type { NamespaceBytes } from './stored-bytes.js';

/** The thread that CreationThread starts. */
// There it is the thread's own. Where the server goes before others, half as much: it is not to be pushed off its processor.
const priority = process.platform === 'linux' ? getPriority() : 0;
if (priority < 0) setPriority((priority / 2) | 0);
// The bench `profile` finds the thread by this name.
nameThread('records');
const port = parentPort as MessagePort;
const root = openRoot(workerData as string);
const writes = new LmdbWrites();
const documents = new LmdbDocuments(root, writes);
/** Of the thread that has rows to defer: one that writes large documents has none. */
let deferredRows: ReturnType<typeof documents.views.deferredRows> | undefined;
const deferred = (): NonNullable<typeof deferredRows> => (deferredRows ??= documents.views.deferredRows());
/** Each counter is of one thread, which counts once it has something to count. */
const sizes: Partial<Record<Counter, LmdbSizes>> = {};
const sizesOf = (counter: Counter): LmdbSizes =>
  (sizes[counter] ??= new LmdbSizes(root, writes, counter, readCounts(openSizes(root))[counter]));

type Numbered = ThreadRequest & { number: number };

port.on('message', (request: Numbered | undefined) => {
  if (request !== undefined) void answer(request);
  else void (deferredRows?.idle() ?? Promise.resolve()).then(close);
});

async function answer(request: Numbered): Promise<void> {
  const { number } = request;
  try {
    if (request.type === 'expire') {
      port.postMessage({ number, ...(await expire(request)) } satisfies ThreadAnswer);
      return;
    }
    port.postMessage({ number, ...(await created(request)) } satisfies ThreadAnswer);
  } catch (error) {
    port.postMessage({ number, problem: (error as Error).message } satisfies ThreadAnswer);
  }
}

interface Created {
  created: boolean[];
  stored: NamespaceBytes;
}

function created(request: Exclude<ThreadRequest, { type: 'expire' }>): Promise<Created> {
  switch (request.type) {
    case 'create':
      return create(request);
    case 'createLarge':
      return createLarge(request);
    case 'merge':
      return merge();
  }
}

async function createLarge({ database, document: pieces }: ThreadRequest & { type: 'createLarge' }): Promise<Created> {
  const document = JSON.parse(withoutHalfPairs(Buffer.concat(pieces).toString('utf8'))) as StoredDocument;
  root.resetReadTxn();
  const { _id: id } = document;
  if (documents.has(database, id)) return { created: [false], stored: new Map() };
  let stored: NamespaceBytes = new Map();
  const text = encodeNewDocument(withoutShared(database, document));
  await documents.writeApart(database, document, text, async (gather) => {
    stored = await sizesOf('largeRecords').durable((note) => note(namespaceOfDocument(database, id), gather()));
  });
  return { created: [true], stored };
}

async function create({ database, documents: json }: ThreadRequest & { type: 'create' }): Promise<Created> {
  const given = JSON.parse(withoutHalfPairs(json)) as StoredDocument[];
  const created: boolean[] = [];
  const rows: Buffer[] = [];
  let onDurable: (() => void) | undefined;
  // What the server's thread has written must be seen.
  root.resetReadTxn();
  const stored = await sizesOf('records').durable((note) => {
    for (const document of given) {
      const isNew = !documents.has(database, document._id);
      if (isNew) {
        const bytes = documents.write(database, document, encodeNewDocument(withoutShared(database, document)), rows);
        note(namespaceOfDocument(database, document._id), bytes);
      }
      created.push(isNew);
    }
    onDurable = deferred().add(rows);
  });
  onDurable?.();
  return { created, stored };
}

async function merge(): Promise<Created> {
  await deferred().merged();
  return { created: [], stored: new Map() };
}

/** Removes the next records that have expired, and says how many, and where to go on. */
async function expire({
  beforeMs,
  from,
  most,
}: ThreadRequest & { type: 'expire' }): Promise<{ expired: ExpiredRecords; stored: NamespaceBytes }> {
  // None of their rows may be put into its view later.
  await deferred().merged();
  root.resetReadTxn();
  const { records, next } = documents.views.expired(beforeMs, from, most);
  const stored = await sizesOf('records').durable((note) => {
    for (const record of records) {
      note(namespaceOfDocument('activations', record._id), -documents.remove('activations', record));
    }
  });
  const removed = records.length;
  return { expired: next === undefined ? { removed } : { removed, next }, stored };
}

async function close(): Promise<void> {
  await root.close();
  port.close();
}
