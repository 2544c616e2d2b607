import { malformedQuery } from '@gpuwhisk/common/errors';

const truths = new Set(['true', 'yes', 'on', '1']);
const falsehoods = new Set(['false', 'no', 'off', '0']);

/** A boolean query parameter; absent or empty: `otherwise`. Throws ApiError (400). */
export function booleanParameter(query: URLSearchParams, name: string, otherwise: boolean): boolean {
  const text = query.get(name);
  if (text === null || text === '') return otherwise;
  const lower = text.toLowerCase();
  if (truths.has(lower)) return true;
  if (falsehoods.has(lower)) return false;
  throw malformedQuery(name, `'${text}' is not a valid Boolean value`);
}

const maxInt32 = 2 ** 31 - 1;

/** An integer as Java's 32 bits hold it; undefined for anything else. */
export function parseInt32(text: string): number | undefined {
  if (!/^[+-]?\d{1,10}$/.test(text)) return undefined;
  const value = Number(text);
  return value >= -maxInt32 - 1 && value <= maxInt32 ? value : undefined;
}

/** Rows of a list, at most: OpenWhisk's. */
const maxListLimit = 200;
const defaultListLimit = 30;

/** Query parameters `skip` and `limit` of a list. `collection` is named in errors. Throws ApiError (400). */
export function listRange(query: URLSearchParams, collection: string): { skip: number; limit: number } {
  const skip = integerParameter(query, 'skip', collection) ?? 0;
  if (skip < 0) {
    throw malformedQuery('skip', `The value '${skip}' is not greater than or equal to 0 for ${collection}.`);
  }
  const limit = integerParameter(query, 'limit', collection) ?? defaultListLimit;
  if (limit < 0 || limit > maxListLimit) {
    throw malformedQuery(
      'limit',
      `The value '${limit}' is not in the range of 0 to ${maxListLimit} for ${collection}.`,
    );
  }
  return { skip, limit: limit === 0 ? maxListLimit : limit };
}

function integerParameter(query: URLSearchParams, name: string, collection: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const value = parseInt32(text);
  if (value === undefined) throw malformedQuery(name, `The value '${text}' is not an integer for ${collection}.`);
  return value;
}

/** A time in epoch ms; absent: undefined. Throws ApiError (400). */
export function timeParameter(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const value = /^[+-]?\d{1,19}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(value)) {
    throw malformedQuery(name, `Parameter is not a valid value for epoch seconds: ${text}`);
  }
  return value;
}

/** Sorts after every time and every name of a view's key. */
export const afterAll = '\ufff0';
