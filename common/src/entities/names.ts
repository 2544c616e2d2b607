// Names of entities, references to them, their types in documents, and their versions.
import { isJsonObject } from '../json.js';
import type { JsonObject, JsonValue } from '../json.js';
import { MalformedError } from './malformed.js';
import type { StoredDocument } from '../store/artifact-store.js';

/** Characters of a namespace's or entity's name, at most. */
const maxNameLength = 256;

/** OpenWhisk's EntityName: ASCII word characters, and inside also `@ . & -` and space; no space at the end. */
export const entityNamePattern = /^(?:\w|\w[\w@ .&-]{0,254}[\w@.&-])$/;

/** Whether `name` can name an entity, a package or a namespace. */
export function isEntityName(name: string): boolean {
  return entityNamePattern.test(name);
}

/** Why `name` cannot name an entity, in OpenWhisk's words (its spelling too); undefined if it can. */
export function entityNameProblem(name: string): string | undefined {
  if (isEntityName(name)) return undefined;
  return name.length > maxNameLength
    ? `Name segement longer than allowed: ${name.length} > ${maxNameLength}.`
    : 'The name of the entity contains illegal characters.';
}

/** Why `name` cannot name a namespace, in OpenWhisk's words; undefined if it can. */
export function namespaceNameProblem(name: string): string | undefined {
  if (isEntityName(name)) return undefined;
  return name.length > maxNameLength
    ? `Namespace longer than allowed: ${name.length} > ${maxNameLength}.`
    : 'The namespace contains illegal characters.';
}

const fullNameText =
  'requirement failed: The fully qualified name of the entity must contain at least the namespace and the name of the entity.';

/** `/ns/pkg/a` or `ns/pkg/a` → `/ns/pkg/a`. Throws Error with OpenWhisk's text. */
export function canonicalFullName(text: string): string {
  const parts = text.split('/').filter((part) => part !== '');
  if (parts.length < 2) throw new Error(fullNameText);
  if (!parts.every(isEntityName)) throw new Error('fully qualified name malformed');
  return `/${parts.join('/')}`;
}

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

/** Thrown for a document that is of another type than the one asked for. */
export class EntityTypeError extends Error {
  override name = 'EntityTypeError';
}

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

/** The version of an entity that was written once. */
export const firstVersion = '0.0.1';

/** A version as OpenWhisk reads it: up to three numbers, missing ones 0, not all 0. Throws MalformedError. */
export function readVersion(value: JsonValue): string {
  const text = typeof value === 'string' ? value : '';
  const parts = text === '' ? [] : text.split('.');
  const numbers = [0, 1, 2].map((index) => (index < parts.length ? wholeNumber(parts[index]) : 0));
  if (numbers.some((number) => number === undefined) || numbers.every((number) => number === 0)) {
    throw new MalformedError('semantic version malformed');
  }
  return numbers.join('.');
}

function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

/** The next patch version: `0.0.1` → `0.0.2`. */
export function bumpPatch(version: string): string {
  const [major = '0', minor = '0', patch = '0'] = version.split('.');
  return `${major}.${minor}.${Number(patch) + 1}`;
}
