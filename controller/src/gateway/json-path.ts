import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';

/** The value that lies below `value` at these keys; undefined where there is none. */
export function valueAt(value: JsonValue | undefined, ...keys: string[]): JsonValue | undefined {
  let found = value;
  for (const key of keys) found = isJsonObject(found) && Object.hasOwn(found, key) ? found[key] : undefined;
  return found;
}

/** As valueAt; undefined for what is no object. */
export function objectAt(value: JsonValue | undefined, ...keys: string[]): JsonObject | undefined {
  const found = valueAt(value, ...keys);
  return isJsonObject(found) ? found : undefined;
}

/** As valueAt; undefined for what is no string. */
export function textAt(value: JsonValue | undefined, ...keys: string[]): string | undefined {
  const found = valueAt(value, ...keys);
  return typeof found === 'string' ? found : undefined;
}

/** As valueAt; the objects of an array, and none for what is no array. */
export function objectsAt(value: JsonValue | undefined, ...keys: string[]): JsonObject[] {
  const found = valueAt(value, ...keys);
  return Array.isArray(found) ? found.filter(isJsonObject) : [];
}

/** The object of that name in `parent`, put there if it is missing. */
export function childObject(parent: JsonObject, key: string): JsonObject {
  const found = objectAt(parent, key);
  if (found !== undefined) return found;
  const made: JsonObject = {};
  parent[key] = made;
  return made;
}

/** The array of that name in `parent`, put there if it is missing. */
export function childArray(parent: JsonObject, key: string): JsonValue[] {
  const found = valueAt(parent, key);
  if (Array.isArray(found)) return found;
  const made: JsonValue[] = [];
  parent[key] = made;
  return made;
}
