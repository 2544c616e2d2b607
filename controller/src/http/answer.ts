// Answers: making and writing them, and the content types that a client accepts.
import type { ServerResponse } from 'node:http';
import { internalError, isApiError, storeFull } from '@gpuwhisk/common/errors';
import type { ApiError } from '@gpuwhisk/common/errors';
import { StoreFullError } from '@gpuwhisk/common/store/artifact-store';
import type { JsonValue } from '@gpuwhisk/common/json';
import { transactionLogger } from '@gpuwhisk/common/logging';
import type { Logger } from '@gpuwhisk/common/logging';
import { leavesMuch } from './request.js';

/** An answer of a handler; `body` is written as it is. */
export interface Answer {
  status: number;
  body: string | Buffer;
  /** Default: `application/json` without a charset, as clients compare the whole text. Null for an answer without a body. */
  contentType?: string | null;
  /** Names and values in turn. */
  headers?: readonly string[];
  /** The value of a JSON body. */
  value?: JsonValue;
  /** A long JSON body in pieces, which `stream` writes. They can be read once. */
  pieces?: AsyncGenerator<Uint8Array>;
  /** Writes the body in place of `body`, as it comes, and ends the response. */
  stream?: (response: ServerResponse) => void;
}

/** A 200 (or `status`) with a JSON body. */
export function jsonAnswer(value: JsonValue, status = 200): Answer {
  let text: string | undefined;
  return {
    status,
    value,
    get body() {
      return (text ??= JSON.stringify(value));
    },
  };
}

/** A 200 with a plain text body. */
export function textAnswer(body: string): Answer {
  return { status: 200, body, contentType: 'text/plain; charset=UTF-8' };
}

/** An answer without a body. */
export function emptyAnswer(status: number): Answer {
  return { status, body: '' };
}

/** The CORS headers of an answer: those under /api/v1, those of the server's own routes, or none. */
export type Cors = 'api' | 'server' | 'none';

/** Request headers that browsers may send from pages of other origins. */
export const defaultAllowedHeaders = 'Authorization, Origin, X-Requested-With, Content-Type, Accept, User-Agent';

const shared = [
  'Access-Control-Allow-Origin',
  '*',
  'Access-Control-Allow-Headers',
  defaultAllowedHeaders,
  'Access-Control-Allow-Methods',
];
const corsHeaders: Record<Cors, readonly string[]> = {
  api: [...shared, 'GET, DELETE, POST, PUT, HEAD'],
  server: [...shared, 'OPTIONS, GET, POST'],
  none: [],
};

/** Writes an answer. Does nothing if the client is gone or an answer was begun. */
export function writeAnswer(response: ServerResponse, transactionId: string, answer: Answer, cors: Cors = 'api'): void {
  if (response.headersSent || response.destroyed) {
    void answer.pieces?.return(undefined);
    return;
  }
  const headers = [...corsHeaders[cors], 'X-Request-ID', transactionId];
  // These statuses have no body, and therefore no headers about one.
  if (answer.status !== 204 && answer.status !== 304) {
    if (answer.contentType !== null) headers.push('Content-Type', answer.contentType ?? 'application/json');
    if (answer.stream === undefined) headers.push('Content-Length', String(Buffer.byteLength(answer.body)));
  }
  if (answer.headers !== undefined) headers.push(...answer.headers);
  const endsLater = answer.status >= 400 && answer.stream === undefined && leavesMuch(response.req);
  if (endsLater) headers.push('Connection', 'close');
  response.writeHead(answer.status, headers);
  if (endsLater) endAfterBody(response, answer.body);
  else if (answer.stream === undefined) response.end(answer.body);
  else if (response.req.method === 'HEAD') {
    response.end();
    void answer.pieces?.return(undefined);
  } else answer.stream(response);
}

/**
 * Sends a whole refusal while the request's body still comes, and closes the connection behind that body, which the server
 * awaits for its usual time. A connection that is closed earlier takes the answer from a client that still sends.
 */
function endAfterBody(response: ServerResponse, body: string | Buffer): void {
  response.write(body);
  const { req: request } = response;
  const end = (): void => void response.end();
  request.once('end', end).once('close', end).resume();
}

/** The answer for an error: `{"error","code"}` with the transaction id as code. */
function errorAnswer(error: ApiError, transactionId: string): Answer {
  return {
    status: error.status,
    body: JSON.stringify({ error: error.message, code: transactionId }),
    ...(error.headers !== undefined && { headers: Object.entries(error.headers).flat() }),
  };
}

/** The error to answer with. Any error other than an ApiError is logged and becomes a 500. */
export function knownError(error: unknown, transactionId: string, logger: Logger): ApiError {
  if (isApiError(error)) return error;
  if (error instanceof StoreFullError) return storeFull();
  transactionLogger(logger, transactionId, false).error({ err: error }, 'a request failed');
  return internalError();
}

/** Writes the answer to a failed request. Any error other than an ApiError is logged and answered with 500. */
export function writeError(
  response: ServerResponse,
  error: unknown,
  transactionId: string,
  logger: Logger,
  cors: Cors = 'api',
): void {
  const apiError = knownError(error, transactionId, logger);
  writeAnswer(response, transactionId, errorAnswer(apiError, transactionId), apiError.rejection ? 'none' : cors);
}

/** Whether an Accept header allows JSON; an absent header does. */
export function acceptsJson(accept: string | undefined): boolean {
  return accepts(accept, 'application/json');
}

/** Whether an Accept header allows this Content-Type; an absent header does. The most specific range decides. */
export function accepts(accept: string | undefined, contentType: string): boolean {
  if (accept === undefined || accept === '*/*' || accept.trim() === '') return true;
  const semicolon = contentType.indexOf(';');
  const type = (semicolon < 0 ? contentType : contentType.slice(0, semicolon)).toLowerCase();
  const mainType = `${type.slice(0, type.indexOf('/'))}/*`;
  let closest = -1;
  let isAccepted = false;
  for (const given of accept.split(',')) {
    const [range = '', ...parameters] = given.split(';').map((part) => part.trim().toLowerCase());
    const closeness = ['*/*', mainType, type].indexOf(range);
    if (closeness <= closest) continue;
    closest = closeness;
    isAccepted = !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  }
  return isAccepted;
}
