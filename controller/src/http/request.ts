// Requests: body, PUT fields, query, transaction id, and the debug line at the end.
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  malformedContent,
  nestedTooDeeply,
  tooLarge,
  unsupportedContentType,
  contentExpected,
  malformedQuery,
} from '@gpuwhisk/common/errors';
import type { ByteBound } from '@gpuwhisk/common/entities/limits';
import { gather } from '@gpuwhisk/common/gathered-bytes';
import { isJsonObject, isNestedTooDeeply, maxJsonDepth } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { MalformedError } from '@gpuwhisk/common/entities/malformed';
import { newTransactionId } from '@gpuwhisk/common/ids';
import { transactionLogger } from '@gpuwhisk/common/logging';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { nextPiece, pieceBytes } from '@gpuwhisk/common/system/pieces';
import type { Random } from '@gpuwhisk/common/system/random';

/** Thrown when the client has left before its request was complete; no answer can be sent. */
export class ClientGoneError extends Error {
  override name = 'ClientGoneError';
}

/** OpenWhisk's limit on the length of a URI. */
export const maxUriLength = 8192;

const MiB = 1024 * 1024;
/** Most bytes of a refused body that are read and discarded. A client that is still sending cannot read the answer. */
const maxDiscardedBytes = 1024 * MiB;
/** Most bytes of a refused body that are awaited for the connection's next request. */
const maxAwaitedBytes = 64 * MiB;

/** Reads and discards the rest of a body; closes the connection if the body is too long. */
export function discard(request: IncomingMessage): void {
  let bytes = 0;
  // Not resume() alone, which does nothing while an iterator of the body is being closed.
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxDiscardedBytes) request.destroy();
  });
  request.resume();
}

/** Whether so much of a request's body may still come that its connection is not worth keeping. */
export function leavesMuch({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > maxAwaitedBytes;
}

/** Refuses a body whose Content-Length exceeds the bound. Throws ApiError (413). */
export function checkDeclaredLength(request: IncomingMessage, { bytes, setBy }: ByteBound): void {
  const declared = request.headers['content-length'];
  if (declared === undefined || Number(declared) <= bytes) return;
  discard(request);
  throw tooLarge('Request', Number(declared), bytes, setBy);
}

/**
 * Reads the whole body. Throws ApiError (413) as soon as the body exceeds the bound, and ClientGoneError. With a clock, a large one is
 * given out in a turn of its own: 1 MiB of short fields is parsed in 25 ms, and many bodies may come in one turn.
 */
export function readBody(request: IncomingMessage, bound: ByteBound, clock?: Clock): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // A body that came with its headers is there once Node's parser returns; read at once, it needs no listeners.
    process.nextTick(() => {
      if (request.destroyed || !request.complete || request.readableLength > bound.bytes) {
        const give = (body: Buffer): void => {
          if (clock === undefined || body.length <= pieceBytes) resolve(body);
          else void nextPiece(clock).then(() => resolve(body));
        };
        listenForBody(request, bound, give, reject);
      } else resolve((request.read() as Buffer | null) ?? noBytes);
    });
  });
}

const noBytes = Buffer.alloc(0);

function listenForBody(
  request: IncomingMessage,
  { bytes: maxBytes, setBy }: ByteBound,
  resolve: (body: Buffer) => void,
  reject: (error: Error) => void,
): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const onData = (chunk: Buffer): void => {
    bytes += chunk.length;
    if (bytes <= maxBytes) {
      gather(chunks, chunk);
      return;
    }
    request.off('data', onData);
    discard(request);
    reject(tooLarge('Request', bytes, maxBytes, setBy));
  };
  let complete = false;
  const onGone = (): void => {
    if (!complete) reject(new ClientGoneError('the client left before its request was complete'));
  };
  // The client left before the listeners were added, so that no event will follow.
  if (request.destroyed) onGone();
  request.on('data', onData);
  request.on('end', () => {
    complete = true;
    resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks));
  });
  request.on('error', onGone);
  request.on('close', onGone);
}

/** Refuses a body that is not declared as JSON, unless the body is empty. Throws ApiError (415). */
export function checkContentType(contentType: string | undefined, bodyBytes: number): void {
  if (contentType === undefined) {
    if (bodyBytes > 0) throw unsupportedContentType('application/octet-stream');
    return;
  }
  const semicolon = contentType.indexOf(';');
  const mediaType = semicolon < 0 ? contentType : contentType.slice(0, semicolon);
  if (mediaType.trim().toLowerCase() !== 'application/json') throw unsupportedContentType(contentType);
}

/** Parses a body as JSON. Throws ApiError (400). */
export function parseJson(body: Buffer): JsonValue {
  const text = body.toString('utf8');
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch (error) {
    throw malformedContent((error as Error).message);
  }
  if (isNestedTooDeeply(text)) throw nestedTooDeeply(maxJsonDepth);
  return value;
}

/** Parses the arguments of an invocation: an object, or {} for an empty body. Throws ApiError (400). */
export function parseArguments(body: Buffer): JsonObject {
  if (body.length === 0) return {};
  const value = parseJson(body);
  if (!isJsonObject(value)) throw malformedContent('JSON object expected');
  return value;
}

/** Reads the JSON body of a PUT; `most`: a bound, or bytes where it is fixed. Throws ApiError (400, 413, 415), ClientGoneError. */
export async function readPutBody(request: IncomingMessage, most: ByteBound | number): Promise<JsonValue> {
  const bound = typeof most === 'number' ? { bytes: most } : most;
  checkDeclaredLength(request, bound);
  const body = await readBody(request, bound);
  checkContentType(request.headers['content-type'], body.length);
  if (body.length === 0) throw contentExpected();
  return parseJson(body);
}

/** Reads a PUT's fields with `read`, whose MalformedError becomes ApiError (400). */
export function readFields<Fields>(read: () => Fields): Fields {
  try {
    return read();
  } catch (error) {
    if (error instanceof MalformedError) throw malformedContent(error.message);
    throw error;
  }
}

/** A field's value, or undefined for absent and null. Throws as `read` does. */
export function optionalField<T>(value: JsonValue | undefined, read: (value: JsonValue) => T): T | undefined {
  return value === undefined || value === null ? undefined : read(value);
}

/** Refuses a field that exceeds its bound. Throws ApiError (413). */
export function checkFieldSize(field: string, bytes: number, allowed: ByteBound): void {
  if (bytes > allowed.bytes) throw tooLarge(field, bytes, allowed.bytes, allowed.setBy);
}

/** The fields without absent ones. */
export function withoutAbsent<Fields extends object>(fields: {
  [Field in keyof Fields]: Fields[Field] | undefined;
}): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields;
}

/** Prefix of the platform's own transaction ids, which clients must not use. */
const systemPrefix = 'sid_';

/** Longest transaction id of a client, characters; longer ones would only enlarge messages and logs. Our own have 32. */
const maxGivenLength = 256;

/** The transaction id of a request: the client's `X-Request-ID`, or a new one. */
export function transactionIdOf(request: IncomingMessage, random: Random): string {
  const given = request.headers['x-request-id'];
  const usable =
    typeof given === 'string' && given !== '' && given.length <= maxGivenLength && !given.startsWith(systemPrefix);
  return usable ? given : newTransactionId(random);
}

/** Whether the client requests debug lines about this request. */
export function wantsExtraLogging(request: IncomingMessage): boolean {
  const given = request.headers['x-ow-extra-logging'];
  return typeof given === 'string' && given.toLowerCase() === 'on';
}

/** Logs an answered request at debug level. */
export function logAnswered(
  logger: Logger,
  { req: request, statusCode }: ServerResponse<IncomingMessage>,
  transactionId: string,
  elapsedMs: number,
): void {
  const extraLogging = wantsExtraLogging(request);
  if (!extraLogging && !logger.isLevelEnabled('debug')) return;
  const { method, url = '' } = request;
  const line = { method, path: url.split('?', 1)[0], status: statusCode, durationMs: Math.round(elapsedMs) };
  transactionLogger(logger, transactionId, extraLogging).debug(line, 'answered');
}

const truths = new Set(['true', 'yes', 'on', '1']);
const falsehoods = new Set(['false', 'no', 'off', '0']);

/** A boolean query parameter; `otherwise` if it is absent or empty. Throws ApiError (400). */
export function booleanParameter(query: URLSearchParams, name: string, otherwise: boolean): boolean {
  const text = query.get(name);
  if (text === null || text === '') return otherwise;
  const lower = text.toLowerCase();
  if (truths.has(lower)) return true;
  if (falsehoods.has(lower)) return false;
  throw malformedQuery(name, `'${text}' is not a valid Boolean value`);
}

const maxInt32 = 2 ** 31 - 1;

/** A 32-bit integer in Java's range, or undefined. */
export function parseInt32(text: string): number | undefined {
  if (!/^[+-]?\d{1,10}$/.test(text)) return undefined;
  const value = Number(text);
  return value >= -maxInt32 - 1 && value <= maxInt32 ? value : undefined;
}

/** Most rows of a list, as in OpenWhisk. */
const maxListLimit = 200;
const defaultListLimit = 30;

/** Query parameters `skip` and `limit` of a list. Errors name `collection`. Throws ApiError (400). */
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

/** A time in epoch ms, or undefined for an absent parameter. Throws ApiError (400). */
export function timeParameter(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const value = /^[+-]?\d{1,19}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(value)) {
    throw malformedQuery(name, `Parameter is not a valid value for epoch seconds: ${text}`);
  }
  return value;
}

/** Sorts after every time and every name in the keys of views. */
export const afterAll = '\ufff0';
