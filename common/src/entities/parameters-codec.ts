import { isJsonObject } from '../json.js';
import type { JsonValue } from '../json.js';
import { MalformedError } from './malformed.js';
import type { Parameter } from './parameters.js';
import { mergeParameters } from './parameters.js';

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
