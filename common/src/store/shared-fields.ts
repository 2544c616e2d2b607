import type { JsonObject } from '../json.js';
import type { DatabaseName, StoredDocument, ViewKey } from './artifact-store.js';

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
