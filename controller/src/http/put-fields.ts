import type { IncomingMessage } from 'node:http';
import { contentExpected, malformedContent, tooLarge } from '@gpuwhisk/common/errors';
import { MalformedError } from '@gpuwhisk/common/entities/malformed';
import type { JsonValue } from '@gpuwhisk/common/json';
import { checkContentType, checkDeclaredLength, parseJson, readBody } from './body.js';

/** The JSON that a PUT must carry. Throws ApiError (400, 413, 415), ClientGoneError. */
export async function readPutBody(request: IncomingMessage, maxBytes: number): Promise<JsonValue> {
  checkDeclaredLength(request, maxBytes);
  const body = await readBody(request, maxBytes);
  checkContentType(request.headers['content-type'], body.length);
  if (body.length === 0) throw contentExpected();
  return parseJson(body);
}

/** What `read` makes of a PUT's fields; its MalformedError becomes ApiError (400). */
export function readFields<Fields>(read: () => Fields): Fields {
  try {
    return read();
  } catch (error) {
    if (error instanceof MalformedError) throw malformedContent(error.message);
    throw error;
  }
}

/** A field's value, or undefined where it is absent or null. Throws as `read` does. */
export function optionalField<T>(value: JsonValue | undefined, read: (value: JsonValue) => T): T | undefined {
  return value === undefined || value === null ? undefined : read(value);
}

/** Refuses a field that is larger than allowed. Throws ApiError (413). */
export function checkFieldSize(field: string, bytes: number, allowedBytes: number): void {
  if (bytes > allowedBytes) throw tooLarge(field, bytes, allowedBytes);
}

/** The fields that have a value. */
export function withoutAbsent<Fields extends object>(fields: {
  [Field in keyof Fields]: Fields[Field] | undefined;
}): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields;
}
