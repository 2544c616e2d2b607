import type { JsonObject, JsonValue } from '../json.js';

/** A parameter or annotation as OpenWhisk stores it; `init` parameters reach the action as environment. */
export interface Parameter {
  key: string;
  value: JsonValue;
  init?: boolean;
  /** The cipher's name where the value is encrypted. */
  encryption?: string;
  /** With `encryption`: id of the document that it is stored in, which its value may be bound to. Not stored itself. */
  lockedIn?: string;
}

/** Looks an annotation or parameter up by key; undefined if absent. */
export function parameterValue(parameters: readonly Parameter[], key: string): JsonValue | undefined {
  for (const parameter of parameters) if (parameter.key === key) return parameter.value;
  return undefined;
}

/** OpenWhisk's truthiness of an annotation: `true`, a number other than 0, a non-empty string, any array or object. */
export function isTruthyAnnotation(parameters: readonly Parameter[], key: string): boolean {
  const value = parameterValue(parameters, key);
  return Boolean(value);
}

/** `over` merged onto `base`: an overridden key keeps its place, new keys follow in their order. */
export function mergeParameters(base: readonly Parameter[], over: readonly Parameter[]): Parameter[] {
  const merged = new Map<string, Parameter>();
  for (const parameter of base) merged.set(parameter.key, parameter);
  for (const parameter of over) merged.set(parameter.key, parameter);
  return [...merged.values()];
}

/** The parameters as one object, without those marked `init`. */
export function parametersToObject(parameters: readonly Parameter[]): JsonObject {
  const object: JsonObject = {};
  for (const { key, value, init } of parameters) if (init !== true) object[key] = value;
  return object;
}
