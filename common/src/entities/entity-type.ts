import type { StoredDocument } from '../store/artifact-store.js';
import { EntityTypeError } from './action-codec.js';
import { MalformedError } from './malformed.js';

const entityTypes = ['action', 'package', 'trigger', 'rule'] as const;
type EntityType = (typeof entityTypes)[number];

/** The type by the fields that only it has, for old documents that do not name it. */
function guessType(document: StoredDocument): EntityType | undefined {
  if (document.exec !== undefined) return 'action';
  if (document.binding !== undefined) return 'package';
  if (document.trigger !== undefined) return 'rule';
  return document.parameters === undefined ? undefined : 'trigger';
}

/** Throws EntityTypeError for a document of another type, MalformedError for one of no known type. */
export function checkEntityType(document: StoredDocument, expected: EntityType): void {
  const found = document.entityType ?? guessType(document);
  if (found === expected) return;
  if (entityTypes.some((type) => type === found)) {
    throw new EntityTypeError(`'${document._id}' is of type ${String(found)}, not ${expected}`);
  }
  throw new MalformedError(`'${document._id}' is of no known type`);
}
