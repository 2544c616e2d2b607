// Documents as bytes in LMDB, and the fields that many documents share.
import * as crypto from 'node:crypto';
import type { StoredDocument, DatabaseName, ViewKey } from './artifact-store.js';
import type { JsonObject } from '../json.js';

const hashDigits = 32;

function sha256(text: string): string {
  // One call where Node has it (20.12 and 21.7 on), twice as fast for a record.
  if (typeof crypto.hash === 'function') return crypto.hash('sha256', text);
  return crypto.createHash('sha256').update(text).digest('hex');
}

/** The revision that follows `previous` (none: a new document) for a document whose text is `text`: `N-<hash>`. */
function nextRevision(previous: string | undefined, text: string): string {
  const generation = previous === undefined ? 0 : Number.parseInt(previous, 10);
  return `${generation + 1}-${sha256(text).slice(0, hashDigits)}`;
}

const firstRevisions = crypto.randomBytes(8).toString('hex');
let created = 0;

/**
 * A new document as it is stored. There is no other first revision of it, so this one need not say what the
 * document holds: it is unique, and cheaper than a hash.
 */
export function encodeNewDocument(document: StoredDocument): string {
  const number = (++created).toString(16).padStart(hashDigits - firstRevisions.length, '0');
  return `1-${firstRevisions}${number}\n${JSON.stringify(document)}`;
}

/** A document as it is stored: its revision, a line feed, its JSON text without `_rev`. */
export function encodeDocument(
  document: StoredDocument,
  previous: string | undefined,
): { revision: string; stored: string } {
  let fields: StoredDocument = document;
  if (document._rev !== undefined) {
    fields = { ...document };
    delete fields._rev;
  }
  const text = JSON.stringify(fields);
  const revision = nextRevision(previous, text);
  return { revision, stored: `${revision}\n${text}` };
}

/** The revision of a stored document. */
export function revisionOf(stored: string): string {
  return stored.slice(0, stored.indexOf('\n'));
}

/** A stored document with its `_rev`. */
export function decodeDocument(stored: string): StoredDocument {
  const end = stored.indexOf('\n');
  const document = JSON.parse(stored.slice(end + 1)) as StoredDocument;
  document._rev = stored.slice(0, end);
  return document;
}

const internalFields = ['_id', '_rev', 'entityType'];

/** The JSON text of an entity without the fields that only the store knows. */
export function entityText(document: StoredDocument): string {
  const entity: JsonObject = { ...document };
  for (const field of internalFields) delete entity[field];
  return JSON.stringify(entity);
}

/**
 * An activation's row in the view `activations` holds most of its document; what the row has, the document is stored
 * without.
 */
const sharedFields = ['name', 'version', 'publish', 'annotations', 'activationId', 'cause'] as const;

/** The document as it is stored beside its row. */
export function withoutShared(database: DatabaseName, document: StoredDocument): StoredDocument {
  if (database !== 'activations' || typeof document.activationId !== 'string' || !hasRow(document)) return document;
  const rest: Record<string, unknown> = { ...document };
  for (const field of sharedFields) rest[field] = undefined;
  return rest as StoredDocument;
}

/** The key of the row in `activations` that has the rest of a stored document; undefined if the document is whole. */
export function sharedRowKey(database: DatabaseName, stored: StoredDocument): ViewKey | undefined {
  if (database !== 'activations' || stored.activationId !== undefined || !hasRow(stored)) return undefined;
  return [stored.namespace, stored.start];
}

/** Gives a stored document back what its row has. */
export function addShared(stored: StoredDocument, row: JsonObject): void {
  for (const field of sharedFields) {
    const value = row[field];
    if (value !== undefined) stored[field] = value;
  }
}

function hasRow(document: StoredDocument): document is StoredDocument & { namespace: string; start: number } {
  return typeof document.namespace === 'string' && typeof document.start === 'number';
}
