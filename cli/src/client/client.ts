import { messageOf, WskError, usageError, wrapError } from '../errors.js';
import { asMap, asText, type Json, type JsonMap, stringify } from '../json/json.js';
import { parseJson } from '../json/parse.js';
import { userAgent, type Settings } from '../settings.js';
import { stdout } from '../terminal.js';
import { apiBase, encodePath, readEvents, send, tlsOptions } from './transport.js';
import type { HttpRequest, HttpResponse, ServerEvent } from './transport.js';

/** A blocking invocation that failed or is still running, with the server's answer. */
export class InvocationError extends WskError {
  constructor(
    message: string,
    options: ConstructorParameters<typeof WskError>[1],
    readonly answer: Json,
  ) {
    super(message, options);
  }
}

/** Whether the status is one of success. */
export function succeeded(response: HttpResponse): boolean {
  return response.status >= 200 && response.status <= 299;
}

/** @throws WskError if the body is not JSON. */
export function readJson(response: HttpResponse): Json {
  try {
    return parseJson(response.body);
  } catch (error) {
    throw new WskError(`The server's answer is not JSON: ${messageOf(error)}`);
  }
}

/**
 * The error to throw for a failed request. The exit code is the status minus 256, as a byte. A 502 whose body has no `code`, or
 * a 500 to an invocation, is that of an activation that failed.
 */
export function failure(response: HttpResponse, toInvocation = false): WskError {
  const exitCode = response.status - 256;
  const body = bodyOf(response);
  if (body instanceof Map) {
    const code = body.get('code') ?? null;
    const error = body.get('error') ?? null;
    if (code === null && (response.status === 502 || (toInvocation && response.status === 500))) {
      const status = asMap(body.get('response')).get('status') ?? null;
      if (status !== null || error !== null) {
        const options = { exitCode, showMessage: false, outcome: 'application error' } as const;
        return new InvocationError(activationError(body), options, body);
      }
    } else if (code !== null && error !== null) {
      return new WskError(`${asText(error)} (code ${asText(code)})`, { exitCode });
    }
  }
  return new WskError(`The connection failed, or timed out. (HTTP status code ${response.status})`, { exitCode });
}

/** The reason of the activation's failure, from its record or from its bare result. */
function activationError(body: JsonMap): string {
  const response = asMap(body.get('response'));
  if (!response.has('status')) return errorText(body.get('error'));
  const result = response.get('result') ?? null;
  const text = result instanceof Map && result.has('error') ? errorText(result.get('error')) : asText(result);
  return `The following application error was received: ${text}`;
}

/** The texts of an error object, `error` first, or the error itself. */
function errorText(error: Json | undefined): string {
  if (!(error instanceof Map)) return asText(error);
  const texts = ['error', ...[...error.keys()].filter((key) => key !== 'error')].map((key) => error.get(key));
  const strings = texts.filter((text) => typeof text === 'string');
  return strings.length > 0 ? strings.join('; ') : asText(error);
}

function bodyOf(response: HttpResponse): Json {
  try {
    return parseJson(response.body);
  } catch (error) {
    if (error instanceof SyntaxError) return null; // a proxy's page, or nothing: the status tells the failure
    throw error;
  }
}

/** Requests of the OpenWhisk API. All throw WskError with wsk's exit code when they fail. */
export interface Client {
  /** `https://host/api`. */
  readonly base: string;
  readonly apiVersion: string;
  /** GET a route below a namespace, such as `actions?limit=30`. */
  get(namespace: string, route: string): Promise<Json>;
  /**
   * GET a stream of events below a namespace, until `take` returns true. The answer of a server that sends no stream, else
   * undefined.
   */
  follow(namespace: string, route: string, take: (event: ServerEvent) => boolean): Promise<Json | undefined>;
  /** PUT `body`; the answer is ignored. */
  put(namespace: string, route: string, body: Json): Promise<void>;
  /** POST `body`, or none; an empty answer (a trigger without rules) is null. */
  post(namespace: string, route: string, body?: Json): Promise<Json>;
  delete(namespace: string, route: string): Promise<void>;
  /** Calls a route below `/api/v1` outside namespaces, such as `web/whisk.system/...`; an empty answer is null. */
  callRoute(method: HttpRequest['method'], route: string, body?: Json): Promise<Json>;
  /** GET a route of a key's own API whose answer is no JSON. */
  readRoute(route: string): Promise<string>;
  /** GET a file that the server offers outside its API, such as `blackbox.tar.gz`. */
  download(file: string): Promise<Buffer>;
  /** `GET /`, which needs no key: name and runtimes of the platform. */
  platform(): Promise<Json>;
  /**
   * POST an invocation.
   * @throws InvocationError if the activation failed or, when `blocking`, is still running.
   */
  invoke(namespace: string, route: string, body: Json, options: { blocking: boolean; result: boolean }): Promise<Json>;
  /** The namespaces that the key may use. */
  namespaces(): Promise<Json>;
  /** `GET /api/v1`, which needs no key. */
  info(): Promise<Json>;
}

/** @throws WskError if the API host or the client certificate is invalid. */
export function createClient(settings: Settings, level: TraceLevel): Client {
  const base = validBase(settings.apiHost);
  const tls = validTls(settings);

  function requestTo(method: HttpRequest['method'], url: string, auth: boolean, body?: Json): HttpRequest {
    const headers: Record<string, string> = {};
    if (auth && settings.auth) headers['Authorization'] = `Basic ${Buffer.from(settings.auth).toString('base64')}`;
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    headers['User-Agent'] = userAgent();
    const text = body === undefined ? {} : { body: `${stringify(body)}\n` };
    const request = { method, url, headers, ...text };
    traceRequest(request, level);
    return request;
  }

  function succeeding(response: HttpResponse, toInvocation = false): HttpResponse {
    traceResponse(response, level);
    if (!succeeded(response)) throw failure(response, toInvocation);
    return response;
  }

  const fetch = async (...given: Parameters<typeof requestTo>): Promise<HttpResponse> =>
    succeeding(await send(requestTo(...given), tls), given[1].includes('?blocking='));

  const exchange = (method: HttpRequest['method'], path: string, auth: boolean, body?: Json): Promise<HttpResponse> =>
    fetch(method, `${base}/${settings.apiVersion}${path}`, auth, body);

  function requireKey(method: string, route?: string): void {
    if (settings.auth) return;
    const error = usageError('Authorization key is not configured (--auth is required)');
    const inHeader = wrapError(error, 'Unable to add the HTTP authentication header');
    throw wrapError(inHeader, `Unable to create HTTP request for ${method}${route === undefined ? '' : ` '${route}'`}`);
  }

  async function call(
    method: HttpRequest['method'],
    namespace: string,
    route: string,
    body?: Json,
  ): Promise<HttpResponse> {
    requireKey(method, route);
    return exchange(method, `/namespaces/${encodePath(namespace)}/${route}`, true, body);
  }

  return {
    base,
    apiVersion: settings.apiVersion,
    get: async (namespace, route) => readJson(await call('GET', namespace, route)),
    async follow(namespace, route, take) {
      requireKey('GET', route);
      const url = `${base}/${settings.apiVersion}/namespaces/${encodePath(namespace)}/${route}`;
      const response = await readEvents(requestTo('GET', url, true), tls, take);
      return response && readJson(succeeding(response));
    },
    put: async (namespace, route, body) => void (await call('PUT', namespace, route, body)),
    post: async (namespace, route, body) => {
      const response = await call('POST', namespace, route, body);
      return response.body === '' ? null : readJson(response);
    },
    delete: async (namespace, route) => void (await call('DELETE', namespace, route)),
    async callRoute(method, route, body) {
      requireKey(method, route);
      const response = await exchange(method, `/${route}`, true, body);
      return response.body === '' ? null : readJson(response);
    },
    async readRoute(route) {
      requireKey('GET', route);
      return (await exchange('GET', `/${route}`, true)).body;
    },
    download: async (file) => (await fetch('GET', `${new URL(base).origin}/${file}`, false)).bytes,
    platform: async () => readJson(await fetch('GET', `${new URL(base).origin}/`, false)),
    async invoke(namespace, route, body, { blocking, result }) {
      const response = await call('POST', namespace, `${route}?blocking=${blocking}&result=${result}`, body);
      const answer = readJson(response);
      if (blocking && response.status === 202) {
        const options = { exitCode: 202, showMessage: false, outcome: 'still running' } as const;
        throw new InvocationError('Request accepted, but processing not completed yet.', options, answer);
      }
      return answer;
    },
    async namespaces() {
      requireKey('GET');
      return readJson(await exchange('GET', '/namespaces', true));
    },
    info: async () => readJson(await exchange('GET', '', false)),
  };
}

function validBase(apiHost: string): string {
  try {
    return apiBase(apiHost);
  } catch (error) {
    throw wrapError(error, 'The API host is not valid');
  }
}

/** @throws WskError if the client certificate is invalid. */
export function validTls(settings: Settings): ReturnType<typeof tlsOptions> {
  try {
    return tlsOptions(settings);
  } catch (error) {
    throw wrapError(error, 'Unable to initialize server connection', { showUsage: true });
  }
}

/** `-v` prints requests and answers with bodies cut at 1,000 bytes, `-d` prints them whole. */
export type TraceLevel = 'off' | 'verbose' | 'debug';

const shownBytes = 1000;

/** Prints the request as wsk -v does. */
export function traceRequest(request: HttpRequest, level: TraceLevel): void {
  if (level === 'off') return;
  stdout.print(`REQUEST:\n[${request.method}]\t${request.url}\nReq Headers\n`);
  printHeaders(Object.entries(request.headers));
  if (request.body !== undefined) stdout.print(`Req Body\n${hidePasswords(shown(request.body, level))}\n`);
}

/** Prints the answer as wsk -v does. */
export function traceResponse(response: HttpResponse, level: TraceLevel): void {
  if (level === 'off') return;
  stdout.print(`RESPONSE:Got response with code ${response.status}\nResp Headers\n`);
  const names = response.rawHeaders.filter((_, index) => index % 2 === 0);
  printHeaders(names.map((name, index) => [name, response.rawHeaders[2 * index + 1] ?? '']));
  stdout.print(`Response body size is ${Buffer.byteLength(response.body)} bytes\n`);
  const body = hidePasswords(shown(response.body, level));
  stdout.print(`Response body received:\n${body}\n`);
}

function printHeaders(headers: [string, string][]): void {
  const byName = new Map<string, Json[]>();
  for (const [name, value] of headers) {
    if (name.toLowerCase() === 'transfer-encoding') continue; // a header of the transfer, not of the content
    const canonical = name.toLowerCase().replace(/(^|-)[a-z]/g, (start) => start.toUpperCase());
    byName.set(canonical, [...(byName.get(canonical) ?? []), value]);
  }
  const sorted = [...byName].sort(([a], [b]) => (a < b ? -1 : 1));
  stdout.print(`${stringify(new Map<string, Json>(sorted), 2)}\n`);
}

function shown(body: string, level: TraceLevel): string {
  const bytes = Buffer.from(body);
  if (level === 'debug' || bytes.length <= shownBytes) return body;
  stdout.print(`Body exceeds ${shownBytes} bytes and will be truncated\n`);
  return `${bytes.subarray(0, shownBytes).toString('utf8')}...`;
}

function hidePasswords(text: string): string {
  return text.replace(/"[Pp]assword":\s*".*"/g, '"password": "******"');
}
