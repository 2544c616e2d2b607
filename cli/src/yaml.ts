import { messageOf, WskError } from './errors.js';
import { asNumber, NumberLiteral, type Json } from './json/json.js';

// The library is loaded only when there is YAML to read or write, so that wsk starts quickly.

/**
 * Reads YAML 1.1, as OpenWhisk's tools do (`yes` is true, `<<` merges).
 * @throws WskError if it is malformed or uses aliases excessively.
 */
export async function parseYaml(text: string): Promise<Json> {
  const { parse } = await import('yaml');
  try {
    return toJson(parse(text, { version: '1.1', mapAsMap: true, prettyErrors: true }));
  } catch (error) {
    throw new WskError(messageOf(error));
  }
}

/** What the YAML library made of a document, as JSON: keys are text, dates are as ISO writes them. */
export function toJson(value: unknown): Json {
  if (Array.isArray(value)) return value.map(toJson);
  if (value instanceof Map) return new Map([...value].map(([key, item]) => [String(key), toJson(item)]));
  if (value instanceof Date) return value.toISOString();
  if (typeof value === 'bigint') return new NumberLiteral(String(value));
  if (typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number') return value;
  return null;
}

/** YAML as OpenWhisk's tools write it: keys in order, lists not indented, lines not folded. */
export async function stringifyYaml(value: Json): Promise<string> {
  const { stringify } = await import('yaml');
  return stringify(toPlain(value), { version: '1.1', sortMapEntries: true, indentSeq: false, lineWidth: 0 });
}

function toPlain(value: Json): unknown {
  if (Array.isArray(value)) return value.map(toPlain);
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, item]) => [key, toPlain(item)]));
  return value instanceof NumberLiteral ? asNumber(value) : value;
}
