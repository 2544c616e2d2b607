import type { JsonObject, JsonValue } from '../json.js';
import { isJsonObject } from '../json.js';

/** Thrown by codecs for JSON that is not what it should be; `message` is OpenWhisk's text where it has one. */
export class MalformedError extends Error {
  override name = 'MalformedError';
}

/** `value` as an object. Throws MalformedError. */
export function asObject(value: JsonValue | undefined, text = 'JSON object expected'): JsonObject {
  if (isJsonObject(value)) return value;
  throw new MalformedError(text);
}

/** `value` as a string. Throws MalformedError. */
export function asString(value: JsonValue | undefined, text: string): string {
  if (typeof value === 'string') return value;
  throw new MalformedError(text);
}

/** `value` as a finite number. Throws MalformedError. */
export function asNumber(value: JsonValue | undefined, text: string): number {
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw new MalformedError(text);
}

/** `value` as an array. Throws MalformedError. */
export function asArray(value: JsonValue | undefined, text: string): JsonValue[] {
  if (Array.isArray(value)) return value;
  throw new MalformedError(text);
}

/** `value` as a boolean. Throws MalformedError. */
export function asBoolean(value: JsonValue | undefined): boolean {
  if (typeof value === 'boolean') return value;
  throw new MalformedError(`Expected JsBoolean, but got ${JSON.stringify(value ?? null)}`);
}
