import { isJsonObject } from '../json.js';
import type { JsonObject, JsonValue } from '../json.js';
import { MalformedError } from './malformed.js';
import { canonicalFullName, isEntityName } from './names.js';

/** A fully qualified name in parts; `path` is `ns` or `ns/pkg`. */
export interface EntityReference {
  path: string;
  name: string;
}

const malformedText = 'fully qualified name malformed';

/** `"/ns/pkg/a"`, `"ns/a"` or `{"path","name"}`. Throws MalformedError. */
export function readReference(value: JsonValue | undefined): EntityReference {
  if (typeof value === 'string') return parseReference(value);
  if (!isJsonObject(value)) throw new MalformedError(malformedText);
  const { path, name } = value;
  if (typeof path !== 'string' || typeof name !== 'string' || !isEntityName(name)) {
    throw new MalformedError(malformedText);
  }
  const segments = path.split('/').filter((part) => part !== '');
  if (segments.length === 0 || !segments.every(isEntityName)) throw new MalformedError(malformedText);
  return { path: segments.join('/'), name };
}

function parseReference(text: string): EntityReference {
  let fullName: string;
  try {
    fullName = canonicalFullName(text);
  } catch (error) {
    throw new MalformedError((error as Error).message);
  }
  const slash = fullName.lastIndexOf('/');
  return { path: fullName.slice(1, slash), name: fullName.slice(slash + 1) };
}

/** The reference with its namespace filled in where it is `_`. */
export function resolveReference({ path, name }: EntityReference, namespace: string): EntityReference {
  const [root, ...rest] = path.split('/');
  return { path: root === '_' ? [namespace, ...rest].join('/') : path, name };
}

/** `ns/name` or `ns/pkg/name`: also the store's id of the entity. */
export function referenceId({ path, name }: EntityReference): string {
  return `${path}/${name}`;
}

/** The reference as documents have it. */
export function writeReference({ path, name }: EntityReference): JsonObject {
  return { path, name };
}
