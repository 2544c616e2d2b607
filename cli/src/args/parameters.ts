import { argumentError, messageOf } from '../errors.js';
import { type Json, type JsonMap } from '../json/json.js';
import { parseJson } from '../json/parse.js';

/**
 * Merges the JSON objects of `-p`, `-P` and their like; of a repeated key the last value counts.
 * @throws WskError if one is no JSON object, naming it `noun` in the message.
 */
export function mergeObjects(texts: string[], noun: 'parameter' | 'annotation'): JsonMap {
  try {
    return new Map(texts.flatMap((text) => [...readObject(text)]));
  } catch (error) {
    const shown = `[]string{${texts.map((text) => JSON.stringify(text)).join(', ')}}`;
    throw argumentError(`Invalid ${noun} argument '${shown}': ${messageOf(error)}`);
  }
}

function readObject(text: string): JsonMap {
  const value = parseJson(text);
  if (value instanceof Map) return value;
  if (value === null) return new Map();
  const type = Array.isArray(value) ? 'array' : typeof value === 'object' ? 'number' : typeof value;
  throw new SyntaxError(`json: cannot unmarshal ${type} into Go value of type map[string]interface {}`);
}

/** The form that entities carry parameters and annotations in: `[{"key": ..., "value": ...}]`. */
export function toKeyValues(object: JsonMap): JsonMap[] {
  return [...object].map(([key, value]) => keyValue(key, value));
}

/** One `{"key": ..., "value": ...}`. */
export function keyValue(key: string, value: Json): JsonMap {
  return new Map<string, Json>([
    ['key', key],
    ['value', value],
  ]);
}

/** The value that a list of key-values holds under `key`. */
export function valueOf(list: JsonMap[], key: string): Json | undefined {
  return list.find((item) => item.get('key') === key)?.get('value');
}
