import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, RequestOptions } from 'node:http';
import { argumentError, messageOf, exitCodes, WskError } from '../errors.js';
import type { Settings } from '../settings.js';

/**
 * The base of all URLs, `https://host/api`. A host without `http://` or `https://` gets `https://`.
 * @throws WskError if the host is missing or does not make a URL.
 */
export function apiBase(apiHost: string): string {
  if (apiHost === '') throw argumentError('An API host must be provided.\n');
  const base = `${/^https?:\/\//.test(apiHost) ? '' : 'https://'}${apiHost}/api`;
  try {
    new URL(base);
  } catch (error) {
    throw argumentError(`parse ${JSON.stringify(base)}: ${messageOf(error)}`);
  }
  return base;
}

/** A path in which characters are escaped that would end the path or have another meaning. */
export function encodePath(path: string): string {
  return encodeURIComponent(path)
    .replace(/%(24|26|2B|2C|2F|3A|3B|3D|40)/g, decodeURIComponent)
    .replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** `?name=value&...` in the order of the names; undefined and empty values are left out. */
export function query(options: Record<string, string | number | boolean | undefined>): string {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined && value !== '');
  const sorted = entries
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]): [string, string] => [name, String(value)]);
  return `?${new URLSearchParams(sorted).toString()}`;
}

/** A request as it is sent. */
export interface HttpRequest {
  method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  url: string;
  headers: Record<string, string>;
  body?: string;
}

/** A whole answer. */
export interface HttpResponse {
  status: number;
  /** Names and values alternate, in the order of the answer. */
  rawHeaders: string[];
  bytes: Buffer;
  /** The bytes as text. */
  body: string;
}

const connectTimeoutMs = 30_000;
/** Longest silence on a connection; a blocking invocation is answered within a shorter time. */
const idleTimeoutMs = 600_000;

/** Client certificate and certificate checking, for node:https. */
type TlsOptions = Pick<
  RequestOptions & { cert?: Buffer; key?: Buffer; rejectUnauthorized?: boolean },
  'cert' | 'key' | 'rejectUnauthorized'
>;

/** @throws WskError if only one of certificate and key is configured, or they cannot be used. */
export function tlsOptions(settings: Settings): TlsOptions {
  const { cert, key, insecure } = settings;
  if (cert && key) return { ...loadKeyPair(cert, key), rejectUnauthorized: !insecure };
  const missing = key ? 'Cert' : cert ? 'Key' : undefined;
  if (missing && !insecure) {
    throw new WskError(`The ${missing} file is not configured. Please configure the missing ${missing} file.\n`);
  }
  return { rejectUnauthorized: !insecure };
}

/**
 * Sends one request, follows redirects, and reads the whole last answer.
 * @throws WskError with exit code 3 if there is no answer.
 */
export async function send(request: HttpRequest, tls: TlsOptions): Promise<HttpResponse> {
  let current = request;
  try {
    for (let sent = 1; ; sent++) {
      const response = await exchange(current, tls);
      const next = redirected(request, current, response);
      if (next === undefined) return response;
      current = next;
      if (sent === mostRequests) throw new Error(`stopped after ${mostRequests} redirects`);
    }
  } catch (error) {
    const verb = current.method.charAt(0) + current.method.slice(1).toLowerCase();
    const message = `${verb} "${current.url}": ${reasonOf(error, new URL(current.url))}`;
    throw new WskError(message, { exitCode: exitCodes.network });
  }
}

/** An event of a stream: its name and the text of its data. */
export interface ServerEvent {
  event: string;
  data: string;
}

/** Longest silence of a stream of events, which has a sign of life every few seconds, ms. */
const streamIdleMs = 30_000;
/** Longest event, characters. */
const longestEvent = 32 * 1024 * 1024;

/**
 * Sends one request and calls `take` for each server-sent event of its answer, until `take` returns true. Resolves with the
 * answer if it is no stream of events, else with undefined.
 * @throws WskError with exit code 3 if there is no answer, or the stream breaks off.
 */
export async function readEvents(
  request: HttpRequest,
  tls: TlsOptions,
  take: (event: ServerEvent) => boolean,
): Promise<HttpResponse | undefined> {
  try {
    const incoming = await responseTo(request, tls, streamIdleMs);
    if (incoming.headers['content-type']?.startsWith('text/event-stream') !== true) return await wholeOf(incoming);
    let text = '';
    for await (const chunk of incoming.setEncoding('utf8') as AsyncIterable<string>) {
      text += chunk;
      for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
        const isOver = take(eventOf(text.slice(0, end)));
        text = text.slice(end + 2);
        // Leaving the loop closes the connection.
        if (isOver) return undefined;
      }
      if (text.length > longestEvent) throw new Error(`an event is longer than ${longestEvent} characters`);
    }
    throw new Error('the stream broke off');
  } catch (error) {
    const message = `Get "${request.url}": ${reasonOf(error, new URL(request.url))}`;
    throw new WskError(message, { exitCode: exitCodes.network });
  }
}

function eventOf(text: string): ServerEvent {
  const fields = new Map(text.split('\n').map((line) => [line.split(':', 1)[0] ?? '', line.replace(/^[^:]*: ?/, '')]));
  return { event: fields.get('event') ?? '', data: fields.get('data') ?? '' };
}

async function exchange(request: HttpRequest, tls: TlsOptions): Promise<HttpResponse> {
  return wholeOf(await responseTo(request, tls, idleTimeoutMs));
}

function wholeOf(incoming: IncomingMessage): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('error', reject);
    incoming.on('end', () => {
      const bytes = Buffer.concat(chunks);
      const { statusCode: status = 0, rawHeaders } = incoming;
      resolve({ status, rawHeaders, bytes, body: bytes.toString('utf8') });
    });
  });
}

/** The answer to a request, whose body has yet to be read; a silence of `idleMs` ends the connection. */
async function responseTo(request: HttpRequest, tls: TlsOptions, idleMs: number): Promise<IncomingMessage> {
  const secure = request.url.startsWith('https:');
  const { request: open } = secure ? await import('node:https') : await import('node:http');
  return new Promise((resolve, reject) => {
    const options = {
      method: request.method,
      headers: request.headers,
      timeout: idleMs,
      ...(secure ? tls : {}),
    };
    const outgoing = open(request.url, options, (incoming) => {
      // A refusal may come before the body is sent: what is left of it is of no use.
      incoming.once('end', () => outgoing.writableFinished || outgoing.destroy());
      resolve(incoming);
    });
    const connecting = setTimeout(() => outgoing.destroy(new Error('dial tcp: i/o timeout')), connectTimeoutMs);
    outgoing.on('socket', (socket) => {
      if (socket.connecting) socket.once('connect', () => clearTimeout(connecting));
      else clearTimeout(connecting);
    });
    outgoing.on('close', () => clearTimeout(connecting));
    outgoing.on('timeout', () => outgoing.destroy(new Error('timeout awaiting response')));
    outgoing.on('error', reject);
    if (request.body !== undefined) outgoing.setHeader('Content-Length', Buffer.byteLength(request.body));
    outgoing.end(request.body);
  });
}

interface SocketError extends Error {
  code?: string;
  address?: string;
  port?: number;
}

/** Why there was no answer, in the Go CLI's words if it has them. */
function reasonOf(error: unknown, url: URL): string {
  const cause = (error instanceof AggregateError ? (error.errors[0] as unknown) : error) as SocketError;
  switch (cause.code) {
    case 'ECONNREFUSED':
      return `dial tcp ${cause.address?.includes(':') ? `[${cause.address}]` : cause.address}:${cause.port}: connect: connection refused`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `dial tcp: lookup ${url.hostname}: no such host`;
    case 'ECONNRESET':
      return 'EOF';
    case 'EPROTO':
      return `http: server gave HTTP response to HTTPS client (for plain HTTP, write --apihost http://${url.host})`;
    default:
      return messageOf(cause) + (cause.code?.includes('CERT') ? ' (-i bypasses certificate checking)' : '');
  }
}

/** Most requests of one call of `send`, the first included, as in Go's client. */
const mostRequests = 10;

/**
 * The request that follows a redirect, or undefined if the answer is no redirect. As in Go's client, 301, 302 and 303
 * are followed with GET and no body, 307 and 308 with the request's own method and body. The key is sent only to the
 * `first` host and hosts below it.
 * @throws Error if the answer's location is no URL.
 */
function redirected(first: HttpRequest, last: HttpRequest, response: HttpResponse): HttpRequest | undefined {
  const location = headerOf(response, 'location');
  if (location === undefined || ![301, 302, 303, 307, 308].includes(response.status)) return undefined;
  const url = resolve(location, last.url);
  const keepsBody = response.status >= 307;
  const dropped = new Set([
    ...(isBelow(url.hostname, new URL(first.url).hostname) ? [] : ['authorization']),
    ...(keepsBody ? [] : ['content-type']),
  ]);
  const headers = Object.fromEntries(Object.entries(last.headers).filter(([name]) => !dropped.has(name.toLowerCase())));
  if (!keepsBody) return { method: 'GET', url: url.href, headers };
  return { ...last, url: url.href, headers };
}

function resolve(location: string, base: string): URL {
  const url = URL.canParse(location, base) ? new URL(location, base) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    throw new Error(`failed to parse Location header ${JSON.stringify(location)}`);
  }
  return url;
}

function headerOf({ rawHeaders }: HttpResponse, name: string): string | undefined {
  const at = rawHeaders.findIndex((text, index) => index % 2 === 0 && text.toLowerCase() === name);
  return at < 0 ? undefined : rawHeaders[at + 1];
}

const isBelow = (host: string, parent: string): boolean => host === parent || host.endsWith(`.${parent}`);

/**
 * The client certificate and its key, which the connection needs as PEM.
 * @throws WskError in the words of OpenWhisk's client if a file cannot be read, holds no PEM, or the two are no pair.
 */
function loadKeyPair(certFile: string, keyFile: string): { cert: Buffer; key: Buffer } {
  try {
    const cert = read(certFile);
    const key = read(keyFile);
    check(cert, key);
    return { cert, key };
  } catch (error) {
    throw new WskError(`Unable to load the X509 key pair due to the following reason: ${messageOf(error)}`);
  }
}

const systemTexts: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or directory',
  EACCES: 'permission denied',
  ENOTDIR: 'not a directory',
  EISDIR: 'is a directory',
};

function read(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    const reason = systemTexts[code] ?? messageOf(error);
    throw new Error(`${code === 'EISDIR' ? 'read' : 'open'} ${file}: ${reason}`, { cause: error });
  }
}

function check(cert: Buffer, key: Buffer): void {
  if (!/-----BEGIN CERTIFICATE-----/.test(cert.toString('latin1'))) {
    throw new Error('tls: failed to find any PEM data in certificate input');
  }
  if (!/-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/.test(key.toString('latin1'))) {
    throw new Error('tls: failed to find any PEM data in key input');
  }
  let parsed: KeyObject;
  try {
    parsed = createPrivateKey(key);
  } catch {
    throw new Error('tls: failed to parse private key');
  }
  if (!certificateOf(cert).checkPrivateKey(parsed)) throw new Error('tls: private key does not match public key');
}

function certificateOf(cert: Buffer): X509Certificate {
  try {
    return new X509Certificate(cert);
  } catch {
    throw new Error('x509: malformed certificate');
  }
}
