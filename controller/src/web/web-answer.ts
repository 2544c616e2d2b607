import { ActivationStatus } from '@gpuwhisk/common/entities/activation';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import {
  invalidWebResponse,
  isApiError,
  notAcceptable,
  propertyNotFound,
  responseNotReady,
  webActionFailed,
  contentTypeMismatch,
  unknownContentType,
} from '@gpuwhisk/common/errors';
import type { ApiError } from '@gpuwhisk/common/errors';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonValue, JsonObject } from '@gpuwhisk/common/json';
import { isBase64Code } from '@gpuwhisk/common/entities/exec-codec';
import { activationIdHeader } from '../http/invocation.js';
import { accepts } from '../http/answer.js';
import type { Answer } from '../http/answer.js';
import type { InvokeOutcome } from '../invoke/invoke-service.js';
import type { WebExtension } from './web-request.js';
import { contentTypeOf, isBinaryType, isJsonType, parseMediaType } from './media-type.js';
import type { MediaType } from './media-type.js';

/** The answer to the caller of a web action. `accept` is the request's Accept header. */
export function webAnswer(
  outcome: InvokeOutcome,
  extension: WebExtension,
  accept: string | undefined,
  transactionId: string,
): Answer {
  const activationId = outcome.type === 'accepted' ? outcome.activationId : outcome.activation.activationId;
  let answer: Answer;
  try {
    if (outcome.type === 'accepted') throw responseNotReady();
    answer = transcoders[extension](webResult(outcome.activation));
    const { contentType } = answer;
    if (contentType && !accepts(accept, contentType)) throw notAcceptable(contentType);
  } catch (error) {
    if (!isApiError(error)) throw error;
    answer = webErrorAnswer(error, transactionId);
  }
  return { ...answer, headers: [activationIdHeader, activationId, ...(answer.headers ?? [])] };
}

/** The answer for an error, in OpenWhisk's layout for web actions. */
export function webErrorAnswer({ status, message, headers }: ApiError, transactionId: string): Answer {
  return {
    status,
    body: prettyJson({ error: message, code: transactionId }),
    headers: Object.entries(headers ?? {}).flat(),
  };
}

/** The value for the answer: the result, or field `error` of an application error. Throws ApiError (400, 404). */
function webResult({ response }: WhiskActivation): JsonValue {
  const { statusCode, result } = response;
  if (statusCode === ActivationStatus.success) return result ?? {};
  if (statusCode !== ActivationStatus.applicationError) throw webActionFailed();
  if (!isJsonObject(result) || result.error === undefined) throw propertyNotFound();
  return result.error;
}

const transcoders: Readonly<Record<WebExtension, (result: JsonValue) => Answer>> = {
  http: httpAnswer,
  json: jsonAnswer,
  html: (result) => stringAnswer(fieldOf(result, 'html'), 'text/html', 'text/html; charset=UTF-8'),
  svg: (result) => stringAnswer(fieldOf(result, 'svg'), 'image/svg+xml', 'image/svg+xml'),
  text: textAnswer,
};

function jsonAnswer(result: JsonValue): Answer {
  if (typeof result !== 'object' || result === null) throw invalidWebResponse('application/json');
  return { status: 200, body: prettyJson(result), contentType: 'application/json' };
}

function stringAnswer(field: JsonValue | undefined, mediaType: string, contentType: string): Answer {
  if (typeof field !== 'string') throw invalidWebResponse(mediaType);
  return { status: 200, body: field, contentType };
}

function textAnswer(result: JsonValue): Answer {
  const field = fieldOf(result, 'text');
  if (field === undefined) throw propertyNotFound();
  const body = typeof field === 'string' ? field : prettyJson(field);
  return { status: 200, body, contentType: 'text/plain; charset=UTF-8' };
}

/** An object's field `body`, or else the named field. Any other value is itself the content. */
function fieldOf(result: JsonValue, name: string): JsonValue | undefined {
  if (!isJsonObject(result)) return result;
  return result.body === undefined ? result[name] : result.body;
}

const invalid = (): Error => invalidWebResponse('message/http');

/**
 * The answer that a result `{statusCode?, headers?, body?}` describes. Throws ApiError (400) for an invalid HTTP response,
 * so that no ambiguous response is sent.
 */
export function httpAnswer(result: JsonValue): Answer {
  if (!isJsonObject(result)) throw invalid();
  const { headers, contentType } = readHeaders(result.headers);
  const status = readStatus(result.statusCode);
  const { body } = result;
  if (body === undefined || body === null || body === '') {
    return { status: status ?? 204, body: '', contentType: null, headers };
  }
  const content = typeof body === 'string' ? textContent(body, contentType) : jsonContent(body, contentType);
  return { status: status ?? 200, headers, ...content };
}

/** The status, 200 to 999. Interim statuses (1xx) are no answers, and Node's HTTP server refuses more than three digits. */
function readStatus(value: JsonValue | undefined): number | undefined {
  if (value === undefined) return undefined;
  const status = typeof value === 'string' && /^\+?\d{1,9}$/.test(value) ? Number(value) : value;
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 200 || status > 999) throw invalid();
  return status;
}

const namePattern = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
// Control characters would end the header and begin another one. Characters beyond Latin-1 cannot be sent.
const valuePattern = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Headers that only the server knows, that frame the message, or that hold for the whole origin or host; those of an action
 * are dropped.
 */
const serverHeaders = new Set([
  // Browsers would go elsewhere for all paths of the server.
  'alt-svc',
  // What other pages of the server, or of other ports of the host, keep in the browser would be gone.
  'clear-site-data',
  'connection',
  'content-length',
  'date',
  'keep-alive',
  // Browsers would report the requests of all pages of the server to the action's address.
  'nel',
  'report-to',
  'server',
  // A worker would answer for other paths of the server.
  'service-worker-allowed',
  // Browsers would refuse plain HTTP to all ports of the host.
  'strict-transport-security',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-openwhisk-activation-id',
  'x-request-id',
]);

interface GivenHeaders {
  /** Names and values in turn. */
  headers: string[];
  contentType: string | undefined;
}

function readHeaders(value: JsonValue | undefined): GivenHeaders {
  if (value === undefined) return { headers: [], contentType: undefined };
  if (!isJsonObject(value)) throw invalid();
  const headers: string[] = [];
  let contentType: string | undefined;
  for (const [name, text] of pairsOf(value)) {
    if (!namePattern.test(name) || !valuePattern.test(text)) throw invalid();
    const lower = name.toLowerCase();
    if (lower === 'content-type') contentType ??= text;
    else if (!serverHeaders.has(lower)) headers.push(name, text);
  }
  return { headers, contentType };
}

function pairsOf(headers: JsonObject): [name: string, text: string][] {
  return Object.entries(headers).flatMap(([name, value]) =>
    valuesOf(value).map((text): [string, string] => [name, text]),
  );
}

/** The values of a header: a single one, or those of nested arrays. */
function valuesOf(value: JsonValue): string[] {
  if (Array.isArray(value)) return value.flatMap(valuesOf);
  if (typeof value === 'object') throw invalid();
  return [String(value)];
}

type Content = Pick<Answer, 'body' | 'contentType'>;

const html: MediaType = { name: 'text/html', parameters: '', hasCharset: false };

function textContent(text: string, contentType: string | undefined): Content {
  const mediaType = contentType === undefined ? html : parseMediaType(contentType);
  if (mediaType === undefined) throw unknownContentType();
  const encoded = isJsonType(mediaType) ? isBase64Code(text) : isBinaryType(mediaType);
  return { contentType: contentTypeOf(mediaType), body: encoded ? decode(text) : text };
}

function jsonContent(value: JsonValue, contentType: string | undefined): Content {
  const mediaType = parseMediaType(contentType ?? 'application/json');
  if (mediaType === undefined || !isJsonType(mediaType)) throw contentTypeMismatch();
  return { contentType: contentTypeOf(mediaType), body: prettyJson(value) };
}

/** Decodes base64. Throws ApiError (400) for invalid characters, which Buffer would skip. */
function decode(text: string): Buffer {
  const digits = text.replace(/={1,2}$/, '');
  const isPadded = digits.length < text.length;
  const isBase64 = /^[A-Za-z0-9+/]*$/.test(digits) && (isPadded ? text.length % 4 === 0 : text.length % 4 !== 1);
  if (!isBase64) throw contentTypeMismatch();
  return Buffer.from(text, 'base64');
}

/** JSON in the layout of OpenWhisk's printer (spray-json): one line for each field of an object, arrays in one line. */
function prettyJson(value: JsonValue, indent = ''): string {
  if (Array.isArray(value)) return `[${value.map((item) => prettyJson(item, indent)).join(', ')}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const deeper = `${indent}  `;
  const fields = Object.entries(value).map(
    ([key, field]) => `${deeper}${JSON.stringify(key)}: ${prettyJson(field, deeper)}`,
  );
  return `{\n${fields.join(',\n')}\n${indent}}`;
}
