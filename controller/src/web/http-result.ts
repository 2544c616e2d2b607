import { contentTypeMismatch, invalidWebResponse, unknownContentType } from '@gpuwhisk/common/errors';
import { isBase64Code } from '@gpuwhisk/common/entities/exec-codec';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import type { Answer } from '../http/answer.js';
import { contentTypeOf, isBinaryType, isJsonType, parseMediaType } from './media-type.js';
import type { MediaType } from './media-type.js';
import { prettyJson } from './pretty-json.js';

const invalid = (): Error => invalidWebResponse('message/http');

/**
 * The answer that a result `{statusCode?, headers?, body?}` describes. Throws ApiError (400) for a result that is no
 * HTTP response: a response that could be read in two ways never leaves.
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

/** Those of 1xx are no answers, and Node's HTTP server refuses more than three digits. */
function readStatus(value: JsonValue | undefined): number | undefined {
  if (value === undefined) return undefined;
  const status = typeof value === 'string' && /^\+?\d{1,9}$/.test(value) ? Number(value) : value;
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 200 || status > 999) throw invalid();
  return status;
}

const namePattern = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
// Control characters would end the header and begin another; what lies beyond Latin-1 has no form on the wire.
const valuePattern = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Headers that only the server can know, or that frame the message; an action's are left out. */
const serverHeaders = new Set([
  ...['connection', 'content-length', 'date', 'keep-alive', 'server', 'trailer', 'transfer-encoding', 'upgrade'],
  ...['x-openwhisk-activation-id', 'x-request-id'],
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

/** A header's values: one, or those of an array, however deep. */
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

/** Bytes from base64. Throws ApiError (400) for what is none, where Buffer would skip it. */
function decode(text: string): Buffer {
  const digits = text.replace(/={1,2}$/, '');
  const isPadded = digits.length < text.length;
  const isBase64 = /^[A-Za-z0-9+/]*$/.test(digits) && (isPadded ? text.length % 4 === 0 : text.length % 4 !== 1);
  if (!isBase64) throw contentTypeMismatch();
  return Buffer.from(text, 'base64');
}
