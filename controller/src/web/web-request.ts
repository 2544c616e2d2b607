// Requests to web actions: URL, vanity host, and arguments from query and body.
import type { IncomingHttpHeaders } from 'node:http';
import { isEntityName } from '@gpuwhisk/common/entities/names';
import { parametersNotAllowed } from '@gpuwhisk/common/errors';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { apiRoot } from '../http/route.js';
import type { ActionName } from '../entities/action-name.js';
import { parseJson } from '../http/request.js';
import { formType, isBinaryType, isJsonType, parseMediaType } from './media-type.js';
import type { MediaType } from './media-type.js';

/** The extension of a web action's URL; decides how a result becomes an answer. */
export type WebExtension = 'http' | 'json' | 'html' | 'svg' | 'text';

/** The parts of a web action's URL. */
export interface WebUrl {
  action: ActionName;
  extension: WebExtension;
  /** The path after the action's name as sent: '' or `/…`. */
  path: string;
  /** The query as sent, without the question mark. */
  query: string;
}

const prefix = `${apiRoot}/web/`;
const extensionPattern = /\.(http|json|html|svg|text)$/;

/**
 * Reads `/api/v1/web/{namespace}/{package|default}/{action}[.extension][/path][?query]`; undefined for other URLs. Only the
 * three names are decoded; the action gets dots and encoded slashes of the path unchanged.
 */
export function parseWebUrl(url: string): WebUrl | undefined {
  if (!url.startsWith(prefix)) return undefined;
  const question = url.indexOf('?');
  const path = url.slice(prefix.length, question < 0 ? url.length : question);
  const [namespace, packageName, last] = path.split('/', 3).map(nameOf);
  if (namespace === undefined || packageName === undefined || last === undefined) return undefined;
  const extension = extensionPattern.exec(last)?.[1] as WebExtension | undefined;
  const name = extension === undefined ? last : last.slice(0, -extension.length - 1);
  return {
    action: packageName === 'default' ? { namespace, name } : { namespace, packageName, name },
    extension: extension ?? 'http',
    path: afterThirdSegment(path),
    query: question < 0 ? '' : url.slice(question + 1),
  };
}

/** The name in a segment; undefined for an invalid name. */
function nameOf(segment: string): string | undefined {
  if (!segment.includes('%')) return isEntityName(segment) ? segment : undefined;
  try {
    const decoded = decodeURIComponent(segment);
    return isEntityName(decoded) ? decoded : undefined;
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}

function afterThirdSegment(path: string): string {
  const second = path.indexOf('/', path.indexOf('/') + 1);
  const third = path.indexOf('/', second + 1);
  return third < 0 ? '' : path.slice(third);
}

/**
 * The URL behind a request for `<namespace>.<domain>`, as in OpenWhisk's edge. `/x` leads to the namespace's web actions,
 * `/` to its page `public/index.html`. Undefined for any other host.
 */
export function vanityUrl(host: string | undefined, url: string, domain: string): string | undefined {
  const name = host?.split(':', 1)[0]?.toLowerCase();
  const suffix = `.${domain.toLowerCase()}`;
  if (name === undefined || !name.endsWith(suffix)) return undefined;
  const namespace = name.slice(0, -suffix.length);
  // A namespace with other characters is no label of a host name.
  if (!/^[0-9a-z-]+$/.test(namespace)) return undefined;
  const question = url.indexOf('?');
  const path = question < 0 ? url : url.slice(0, question);
  const query = question < 0 ? '' : url.slice(question);
  return `${apiRoot}/web/${namespace}${path === '/' ? '/public/index.html' : path}${query}`;
}

/** The HTTP request in the form that a web action gets. */
interface WebRequest {
  method: string;
  headers: IncomingHttpHeaders;
  /** The path after the action's name, as sent. */
  path: string;
  /** The query as sent, without the question mark. */
  query: string;
  body: Buffer;
  /** The caller's namespace, if the caller is authenticated. */
  user?: string;
}

/** The arguments of a call of a web action. */
interface WebArguments {
  /** All arguments. */
  payload: JsonObject;
  /** The arguments whose keys the caller chose; they must not override final parameters. */
  chosen: JsonObject;
}

const reservedKeys = ['__ow_method', '__ow_headers', '__ow_path', '__ow_user', '__ow_query', '__ow_body'];
const octets: MediaType = { name: 'application/octet-stream', parameters: '', hasCharset: false };

/** Arguments for an action without `raw-http`: the fields of the query, then those of the body. Throws ApiError (400). */
export function plainArguments(request: WebRequest): WebArguments {
  const body = readPlainBody(request);
  const fields = isJsonObject(body) ? body : {};
  const chosen: JsonObject =
    request.query === '' ? fields : { ...Object.fromEntries(new URLSearchParams(request.query)), ...fields };
  if (reservedKeys.some((key) => Object.hasOwn(chosen, key))) throw parametersNotAllowed();
  const payload: JsonObject = { ...contextOf(request), ...chosen };
  if (body !== undefined && !isJsonObject(body)) payload.__ow_body = body;
  return { payload, chosen };
}

/** Arguments for an action with annotation `raw-http`: query and body as one string each. */
export function rawArguments(request: WebRequest): WebArguments {
  const __ow_body = opaqueBody(request.body, mediaTypeOf(request));
  return { payload: { ...contextOf(request), __ow_query: request.query, __ow_body }, chosen: {} };
}

function contextOf({ method, headers, path, user }: WebRequest): JsonObject {
  const context: JsonObject = {
    __ow_method: method.toLowerCase(),
    __ow_headers: headerFields(headers),
    __ow_path: path,
  };
  if (user !== undefined) context.__ow_user = user;
  return context;
}

function headerFields(headers: IncomingHttpHeaders): JsonObject {
  const fields: JsonObject = {};
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined) fields[name] = typeof value === 'string' ? value : value.join(', ');
  }
  const contentType = headers['content-type'];
  const mediaType = contentType === undefined ? undefined : parseMediaType(contentType);
  // These types are UTF-8 by definition, so that a given charset has no effect.
  if (mediaType !== undefined && (isJsonType(mediaType) || mediaType.name === formType)) {
    fields['content-type'] = mediaType.name + mediaType.parameters;
  }
  return fields;
}

/** The declared type of the body; an invalid declaration counts as bytes. */
function mediaTypeOf({ headers }: WebRequest): MediaType {
  const given = headers['content-type'];
  return (given === undefined ? undefined : parseMediaType(given)) ?? octets;
}

/** The body's fields or single value; undefined without a body. Throws ApiError (400). */
function readPlainBody(request: WebRequest): JsonValue | undefined {
  const { body, headers } = request;
  if (body.length === 0 && headers['content-type'] === undefined) return undefined;
  const mediaType = mediaTypeOf(request);
  if (isJsonType(mediaType)) return body.length === 0 ? undefined : parseJson(body);
  if (mediaType.name === formType) return Object.fromEntries(new URLSearchParams(body.toString('utf8')));
  return opaqueBody(body, mediaType);
}

function opaqueBody(body: Buffer, mediaType: MediaType): string {
  // OpenWhisk encodes raw JSON in base64, although JSON is text.
  return body.toString(isBinaryType(mediaType) || mediaType.name === 'application/json' ? 'base64' : 'utf8');
}
