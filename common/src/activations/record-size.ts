import { isJsonObject } from '../json.js';
import type { JsonObject, JsonValue } from '../json.js';
import type { StoredDocument } from '../store/artifact-store.js';

/** What a number, a word, a quote or a comma takes, about. */
const bytesOfToken = 8;

/** About how many bytes a value takes as JSON: without making it, since every activation is measured. */
export function approximateBytes(value: JsonValue | undefined): number {
  if (typeof value === 'string') return value.length + bytesOfToken;
  if (value === null || typeof value !== 'object') return bytesOfToken;
  let bytes = bytesOfToken;
  if (Array.isArray(value)) {
    for (const element of value) bytes += approximateBytes(element);
    return bytes;
  }
  for (const name in value) bytes += name.length + approximateBytes(value[name]);
  return bytes;
}

const noLogs = 'The logs were too large to be stored.';
const noResult: JsonObject = { error: 'The result was too large to be stored.' };

/**
 * A record without the larger of its logs and its result, for a store that refuses it for its size; a line stands in their
 * place. Undefined: there is nothing left to leave out.
 */
export function smallerRecord(document: StoredDocument): StoredDocument | undefined {
  const { logs, response } = document;
  const result = isJsonObject(response) ? response.result : undefined;
  const logBytes = isIn(logs, [noLogs]) ? 0 : approximateBytes(logs);
  const resultBytes = isIn(result, noResult) ? 0 : approximateBytes(result);
  if (Math.max(logBytes, resultBytes) <= bytesOfToken) return undefined;
  if (logBytes >= resultBytes) return { ...document, logs: [noLogs] };
  return { ...document, response: { ...(response as JsonObject), result: noResult } };
}

const isIn = (value: JsonValue | undefined, note: JsonValue): boolean => JSON.stringify(value) === JSON.stringify(note);
