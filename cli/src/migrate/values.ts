import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';

/** Whether a value is a JSON object. */
export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The objects of a list; empty if the value is no list. */
export function objectsOf(value: JsonValue | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** A text, or '' if the value is no text. */
export function textOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

/** The value of a parameter or annotation with this key. */
export function valueIn(list: JsonValue | undefined, key: string): JsonValue | undefined {
  return objectsOf(list).findLast((one) => one.key === key)?.value;
}

/** Whether two values are the same JSON, the order of fields aside. */
export function sameJson(one: JsonValue | undefined, other: JsonValue | undefined): boolean {
  if (one === other) return true;
  if (Array.isArray(one)) {
    return Array.isArray(other) && one.length === other.length && one.every((value, at) => sameJson(value, other[at]));
  }
  if (!isObject(one) || !isObject(other)) return false;
  const fields = Object.keys(one);
  return (
    fields.length === Object.keys(other).length &&
    fields.every((field) => Object.hasOwn(other, field) && sameJson(one[field], other[field]))
  );
}
