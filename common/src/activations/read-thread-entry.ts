import { getPriority, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { nameThread } from '../system/thread-name.js';
import { DamagedDocumentError, NoDocumentError } from '../store/artifact-store.js';
import { documentText } from './record-texts.js';
import { LmdbDocuments } from '../store/lmdb-documents.js';
import { openRoot, LmdbWrites } from '../store/lmdb-table.js';
import { countStep, textStep } from '../store/lmdb-texts.js';
import type { ReadBudget } from '../store/lmdb-texts.js';
import type { ReadAnswer, ReadRequest } from '../store/read-thread.js';
import { endedBefore } from '../store/views.js';

/** The thread that ReadThread starts. */
// Where the server goes before others, the thread's lists do not: they would hold up the records of other namespaces.
if (process.platform === 'linux' && getPriority() < 0) setPriority(0);
nameThread('reads');
const port = parentPort as MessagePort;
const root = openRoot(workerData as string);
const writes = new LmdbWrites();
const documents = new LmdbDocuments(root, writes);
/** 50,000 rows are passed over in about 15 ms. */
const budget: ReadBudget = { bytes: 256 * 1024, rows: 50_000, isStrict: false };

port.on('message', (request: (ReadRequest & { number: number }) | undefined) => {
  if (request === undefined) void root.close().then(() => port.close());
  else {
    const answer = answerTo(request);
    // Large bytes are handed over, not copied.
    const bytes = 'attachment' in answer ? answer.attachment.bytes : 'step' in answer ? answer.step.texts : undefined;
    // The empty one is there for all answers without a text.
    const isMoved = bytes !== undefined && bytes.buffer.byteLength > 0;
    port.postMessage(answer, isMoved ? [bytes.buffer as ArrayBuffer] : []);
  }
});

/** A text in a buffer that was used before, or a new one if that is too small. New ones have the collector walk all memory. */
function bytesIn(used: ArrayBuffer | undefined, text: string): Uint8Array {
  const length = Buffer.byteLength(text);
  const isEnough = used !== undefined && used.byteLength >= length;
  const buffer = isEnough ? used : new ArrayBuffer(Math.max(length, budget.bytes * 2));
  const bytes = Buffer.from(buffer);
  return bytes.subarray(0, bytes.write(text));
}

function answerTo(request: ReadRequest & { number: number }): ReadAnswer {
  const { number } = request;
  try {
    // Whatever the server's thread has written must be seen.
    root.resetReadTxn();
    switch (request.type) {
      case 'texts': {
        const making = { documentText, bytesOf: (text: string) => bytesIn(request.used, text) };
        const step = textStep(documents, request.database, request.query, request.position, budget, making);
        return { number, step };
      }
      case 'count':
        return { number, counted: countStep(documents, request.query, request.from, budget) };
      case 'text': {
        const stored = documents.read(request.database, request.id);
        if (stored === undefined) throw new NoDocumentError(request.id);
        const document = documents.decode(request.database, stored);
        if (endedBefore(document, request.endedSince)) throw new NoDocumentError(request.id);
        const text = documentText(document, request.as);
        return { number, text: Buffer.from(text) };
      }
      case 'attachment':
        return { number, attachment: documents.attachments.get(request.database, request.id, request.name) };
    }
  } catch (error) {
    const isMissing = error instanceof NoDocumentError;
    const kind = isMissing ? 'missing' : error instanceof DamagedDocumentError ? 'damaged' : 'other';
    return { number, problem: (error as Error).message, kind };
  }
}
