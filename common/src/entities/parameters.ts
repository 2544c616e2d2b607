import type { JsonObject, JsonValue } from '../json.js';
import { isJsonObject } from '../json.js';
import { MalformedError } from './malformed.js';

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

const malformedText = 'parameters malformed!';

function readParameter(value: JsonValue, documentId: string | undefined): Parameter {
  if (!isJsonObject(value)) throw new MalformedError(malformedText);
  const { key, init, encryption } = value;
  if (typeof key !== 'string' || value.value === undefined) throw new MalformedError(malformedText);
  const parameter: Parameter = { key, value: value.value };
  if (init !== undefined) {
    if (typeof init !== 'boolean') throw new MalformedError(malformedText);
    if (init) parameter.init = true;
  }
  if (encryption !== undefined && encryption !== null) {
    if (typeof encryption !== 'string') throw new MalformedError(malformedText);
    parameter.encryption = encryption;
    if (documentId !== undefined) parameter.lockedIn = documentId;
  }
  return parameter;
}

/**
 * `[{"key","value","init"?,"encryption"?}]`; of two with one key the last counts, at the first's place.
 * `documentId` is that of the document whose parameters they are. Throws MalformedError.
 */
export function readParameters(value: JsonValue | undefined, documentId?: string): Parameter[] {
  if (!Array.isArray(value)) throw new MalformedError(malformedText);
  return mergeParameters(
    [],
    value.map((one) => readParameter(one, documentId)),
  );
}

/** The size that limits apply to: keys and compact values, in bytes. */
export function parametersBytes(parameters: readonly Parameter[]): number {
  let bytes = 0;
  for (const { key, value } of parameters) bytes += Buffer.byteLength(key) + Buffer.byteLength(JSON.stringify(value));
  return bytes;
}

/** Parameters as JSON, in their order. */
export function writeParameters(parameters: readonly Parameter[]): JsonValue[] {
  return parameters.map(({ key, value, init, encryption }) => {
    // Nearly all, and every annotation of every record.
    if (init !== true && encryption === undefined) return { key, value };
    return { key, value, ...(init === true && { init }), ...(encryption !== undefined && { encryption }) };
  });
}
