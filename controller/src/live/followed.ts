// What a client follows, and what has changed of it.
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';

/** An answer at one time: as JSON, or by the keys of its entries, each as JSON, where it is a list whose entries have keys. */
export type Snapshot = { text: string } | { entries: ReadonlyMap<string, string> };

/** The fields by which entries of the API's lists are told apart, the first that an entry has. */
const keyFields = ['uuid', 'activationId', 'id', 'container', 'invoker', 'name'] as const;

/** The key of an entry of a list; undefined if it has none. */
function keyOf(entry: JsonValue): string | undefined {
  if (!isJsonObject(entry)) return undefined;
  for (const field of keyFields) {
    const value = entry[field];
    if (typeof value !== 'string') continue;
    const { namespace } = entry;
    return field === 'name' && typeof namespace === 'string' ? `${namespace}/${value}` : value;
  }
  return undefined;
}

/** The snapshot of an answer. */
export function snapshotOf(value: JsonValue): Snapshot {
  if (!Array.isArray(value)) return { text: JSON.stringify(value) };
  const entries = new Map<string, string>();
  for (const entry of value) {
    const key = keyOf(entry);
    if (key === undefined || entries.has(key)) return { text: JSON.stringify(value) };
    entries.set(key, JSON.stringify(entry));
  }
  return { entries };
}

/** Characters of an answer's JSON, keys of entries included. */
export function charactersOf(snapshot: Snapshot): number {
  if ('text' in snapshot) return snapshot.text.length;
  let total = 0;
  for (const [key, text] of snapshot.entries) total += key.length + text.length;
  return total;
}

/** A whole answer as JSON. */
function textOf(snapshot: Snapshot): string {
  return 'text' in snapshot ? snapshot.text : `[${[...snapshot.entries.values()].join(',')}]`;
}

/** A message about followed data: its fields but for values, and the values as JSON. */
export interface Message {
  event: 'value' | 'changes';
  /** Members of the message, as JSON. */
  members: Readonly<Record<string, string>>;
}

/**
 * What is to be told of `after` where `before` was told last; undefined if nothing is. Of a list with keys, entries that are
 * new or have changed, and the keys of those that are gone.
 */
export function messageOf(before: Snapshot | undefined, after: Snapshot): Message | undefined {
  if (before === undefined || 'text' in before || 'text' in after) {
    const text = textOf(after);
    return before !== undefined && textOf(before) === text ? undefined : { event: 'value', members: { value: text } };
  }
  const set: string[] = [];
  for (const [key, text] of after.entries) if (before.entries.get(key) !== text) set.push(text);
  const gone: string[] = [];
  for (const key of before.entries.keys()) if (!after.entries.has(key)) gone.push(key);
  if (set.length === 0 && gone.length === 0) return undefined;
  return { event: 'changes', members: { set: `[${set.join(',')}]`, gone: JSON.stringify(gone) } };
}

/** The text of a server-sent event. */
export function eventText(event: string, fields: JsonObject, members: Readonly<Record<string, string>> = {}): string {
  const known = Object.entries(fields).map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
  const given = Object.entries(members).map(([name, text]) => `${JSON.stringify(name)}:${text}`);
  // JSON has no line ends of its own.
  return `event: ${event}\ndata: {${[...known, ...given].join(',')}}\n\n`;
}
