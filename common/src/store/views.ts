import type { JsonObject, JsonValue } from '../json.js';
import { isJsonObject } from '../json.js';
import type { DatabaseName, StoredDocument, ViewKey, ViewName, ViewQuery } from './artifact-store.js';

/** A row that a document has in a view. */
interface EmittedRow {
  view: ViewName;
  key: ViewKey;
  /** The list row; undefined where the same document's row in the view's `sharesValueOf` has it. */
  value?: JsonValue;
}

/** Views whose rows have the value that the document has in another view, where it is stored once. */
export const sharesValueOf: Partial<Record<ViewName, ViewName>> = { 'activations-by-name': 'activations' };

/** The views that a database has. */
export const viewsOf: Record<DatabaseName, readonly ViewName[]> = {
  subjects: ['identities', 'blocked-namespaces'],
  whisks: ['actions', 'packages', 'packages-public', 'rules', 'triggers'],
  activations: ['activations', 'activations-by-name'],
  gpu: ['apis'],
};

/**
 * The rows that OpenWhisk's design documents (`whisks.v2.1.0`, `whisks-filters.v2.1.1`, `subjects.v2.0.0`,
 * `namespaceThrottlings`) emit, and those of our own database.
 */
export function emitRows(database: DatabaseName, document: StoredDocument): EmittedRow[] {
  switch (database) {
    case 'subjects':
      return [...emitIdentities(document), ...emitBlocked(document)];
    case 'whisks':
      return emitEntities(document);
    case 'activations':
      return emitActivations(document);
    case 'gpu':
      return emitApis(document);
  }
}

/** APIs of the gateway, by the namespace that owns them and by the tenant in their URLs. */
function emitApis(document: StoredDocument): EmittedRow[] {
  const { kind, namespace, tenant } = document;
  if (kind !== 'api' || typeof namespace !== 'string' || typeof tenant !== 'string') return [];
  return [
    { view: 'apis', key: ['namespace', namespace], value: null },
    { view: 'apis', key: ['tenant', tenant], value: null },
  ];
}

const limitsSuffix = '/limits';

function emitIdentities(document: StoredDocument): EmittedRow[] {
  const { subject, namespaces, blocked } = document;
  if (typeof subject !== 'string' || !Array.isArray(namespaces) || blocked === true) return [];
  return namespaces.filter(isJsonObject).flatMap(({ name, uuid, key }): EmittedRow[] => {
    if (typeof name !== 'string' || typeof uuid !== 'string' || typeof key !== 'string') return [];
    const value = { _id: `${name}/limits`, namespace: name, uuid, key };
    return [
      { view: 'identities', key: [name], value },
      { view: 'identities', key: [uuid, key], value },
    ];
  });
}

/** Namespaces that may not invoke: their limits are 0, or their subject is blocked. */
function emitBlocked({ _id: id, subject, namespaces, blocked, ...limits }: StoredDocument): EmittedRow[] {
  const row = (name: string): EmittedRow => ({ view: 'blocked-namespaces', key: [name], value: 1 });
  if (id.endsWith(limitsSuffix)) {
    const isBlocked = limits.concurrentInvocations === 0 || limits.invocationsPerMinute === 0;
    return isBlocked ? [row(id.slice(0, -limitsSuffix.length))] : [];
  }
  if (typeof subject !== 'string' || !Array.isArray(namespaces) || blocked !== true) return [];
  return namespaces.flatMap((owned) =>
    isJsonObject(owned) && typeof owned.name === 'string' ? [row(owned.name)] : [],
  );
}

function emitEntities(document: StoredDocument): EmittedRow[] {
  const { namespace, updated } = document;
  if (typeof namespace !== 'string' || typeof updated !== 'number') return [];
  const found = entityRow(document);
  if (!found) return [];
  const { view, value } = found;
  const rows: EmittedRow[] = [{ view, key: [namespace, updated], value }];
  if (view === 'packages' && document.publish === true && isJsonObject(value) && value.binding === false) {
    rows.push({ view: 'packages-public', key: [namespace, updated], value });
  }
  const root = namespace.split('/', 1)[0] ?? namespace;
  if (root !== namespace) rows.push({ view, key: [root, updated], value });
  return rows;
}

function entityRow(document: StoredDocument): { view: ViewName; value: JsonValue } | undefined {
  const { exec, binding, trigger, parameters, limits } = document;
  if (exec !== undefined) {
    const binary = isJsonObject(exec) && exec.binary === true;
    return { view: 'actions', value: { ...commonRow(document), ...present({ limits }), exec: { binary } } };
  }
  if (isJsonObject(binding)) {
    const isBinding = Object.keys(binding).length > 0;
    return { view: 'packages', value: { ...commonRow(document), binding: isBinding ? binding : false } };
  }
  if (trigger !== undefined) return { view: 'rules', value: 1 };
  if (parameters !== undefined) return { view: 'triggers', value: commonRow(document) };
  return undefined;
}

function commonRow({ namespace, name, version, publish, annotations, updated }: StoredDocument): JsonObject {
  return present({ namespace, name, version, publish, annotations, updated });
}

function emitActivations(document: StoredDocument): EmittedRow[] {
  const { namespace, activationId, start } = document;
  if (typeof namespace !== 'string' || typeof activationId !== 'string' || typeof start !== 'number') return [];
  const summary: EmittedRow = { view: 'activations', key: [namespace, start], value: activationRow(document, start) };
  const byName: EmittedRow = {
    view: 'activations-by-name',
    key: [`${namespace}/${pathOfName(document)}`, start],
  };
  return [summary, byName];
}

/** Of every activation, so without copies. Absent fields are undefined, which JSON leaves out. */
function activationRow(document: StoredDocument, start: number): JsonObject {
  const { namespace, name, version, publish, annotations, activationId, cause, end, response } = document;
  // A trigger's activation never ends: it is stored with `end: 0`.
  const ended = typeof end === 'number' && end !== 0;
  const row: Record<string, JsonValue | undefined> = {
    namespace,
    name,
    version,
    publish,
    annotations,
    activationId,
    start,
    cause,
    end: ended ? end : undefined,
    duration: ended ? (document.duration ?? end - start) : undefined,
    statusCode: ended && isJsonObject(response) ? response.statusCode : undefined,
  };
  return row as JsonObject;
}

/** `name`, or `pkg/name`: the package of the binding that was invoked, else of the action's path. */
function pathOfName({ name, annotations }: StoredDocument): string {
  const within = annotation(annotations, 'binding') ?? annotation(annotations, 'path');
  const segments = within?.split('/') ?? [];
  // A binding is `ns/pkg`; a path is `ns/name` or `ns/pkg/name`.
  const isPackaged = annotation(annotations, 'binding') !== undefined ? segments.length >= 2 : segments.length === 3;
  return isPackaged ? `${segments[1] ?? ''}/${String(name)}` : String(name);
}

function annotation(annotations: JsonValue | undefined, key: string): string | undefined {
  if (!Array.isArray(annotations)) return undefined;
  for (const each of annotations) {
    if (isJsonObject(each) && each.key === key && typeof each.value === 'string') return each.value;
  }
  return undefined;
}

function present(fields: Record<string, JsonValue | undefined>): JsonObject {
  const object: JsonObject = {};
  for (const key in fields) {
    const value = fields[key];
    if (value !== undefined) object[key] = value;
  }
  return object;
}

/**
 * Rows of expired records at which one list or count looks for records that have not expired: those that started before
 * and ended later. Where more of a namespace wait for their removal, records that started before these are left out.
 */
export const lookedAt = 20_000;

/** The ends of a range of rows by start. */
type StartRange = Pick<ViewQuery, 'startKey' | 'endKey'>;

/**
 * A range of rows of activations in two: records that started since `endedSince`, none of which has ended before, and the
 * older ones, which are looked at one by one. A part is absent if it is empty.
 */
export function partsByStart(
  { startKey, endKey }: StartRange,
  endedSince: number,
): { younger?: StartRange; older?: StartRange } {
  const since = Math.ceil(endedSince);
  const path = startKey[0] ?? '';
  const startsBefore = typeof startKey[1] !== 'number' || startKey[1] < since;
  const endsBefore = typeof endKey[1] === 'number' && endKey[1] < since;
  return {
    ...(!endsBefore && { younger: { startKey: startsBefore ? [path, since] : startKey, endKey } }),
    ...(startsBefore && { older: { startKey, endKey: endsBefore ? endKey : [path, since - 1] } }),
  };
}

/** Whether a record ended before `endedSince`; no other document does. */
export function endedBefore({ start, end }: JsonObject, endedSince = -Infinity): boolean {
  return typeof start === 'number' && hasExpired({ end: end ?? null }, start, endedSince);
}

/**
 * Whether a record, of which this is the row in view `activations`, ended before `beforeMs` (ms since the epoch). One that has no
 * end, such as a trigger's, ended when it started.
 */
export function hasExpired(row: JsonValue | undefined, startMs: number, beforeMs: number): boolean {
  const end = isJsonObject(row) && typeof row.end === 'number' ? row.end : startMs;
  return Math.max(startMs, end) < beforeMs;
}
