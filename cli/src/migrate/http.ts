import { Agent as HttpAgent, request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonValue } from '@gpuwhisk/common/json';
import { messageOf } from '../errors.js';

/** A server answered with an error; `message` is its text. */
export class RefusedError extends Error {
  override name = 'RefusedError';
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** A server did not answer, also after repetitions. */
export class UnreachableError extends Error {
  override name = 'UnreachableError';
}

/** Address, credentials and limits of a server. */
interface ServerOptions {
  /** Base of all paths; ends with a slash. */
  base: URL;
  /** `user:password`, or undefined. */
  auth: string | undefined;
  /** Most connections. */
  concurrency: number;
  /** Whether to accept any certificate. */
  insecure: boolean;
  /** Longest silence, ms. */
  timeoutMs: number;
  /** Wait before the first repetition, ms; each further one is twice as long. */
  retryDelayMs: number;
}

/** An HTTP server. All methods throw RefusedError and UnreachableError. */
export interface Server {
  readonly base: URL;
  /** The part of `auth` before the colon. */
  readonly user: string;
  json(method: 'GET' | 'PUT' | 'POST', path: string, body?: JsonValue): Promise<JsonValue>;
  bytes(path: string): Promise<Buffer>;
  close(): void;
}

const attempts = 5;
/** Statuses that a later attempt may not get: too many requests, and a proxy that reached no server. */
const passing = new Set([429, 502, 503, 504]);
/** OpenWhisk's message for a conflict of two concurrent writes. */
const concurrentModification = 'Concurrent modification to resource detected.';

/** Media types of the answer and of the request. */
interface Content {
  accept: string;
  body: string | undefined;
}

interface Reply {
  status: number;
  bytes: Buffer;
}

/** A server whose requests are repeated a few times if their errors may pass. Requests must be repeatable. */
export function connectServer(options: ServerOptions): Server {
  const { base, auth, concurrency, insecure, timeoutMs, retryDelayMs } = options;
  const secure = base.protocol === 'https:';
  const sockets = { keepAlive: true, maxSockets: concurrency };
  const agent = secure ? new HttpsAgent({ ...sockets, rejectUnauthorized: !insecure }) : new HttpAgent(sockets);
  const open = secure ? httpsRequest : httpRequest;
  const authorization = auth === undefined ? {} : { authorization: `Basic ${Buffer.from(auth).toString('base64')}` };

  const once = (method: string, path: string, { accept, body }: Content): Promise<Reply> =>
    new Promise((resolve, reject) => {
      const content =
        body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
      const settings: RequestOptions = {
        method,
        agent,
        timeout: timeoutMs,
        headers: { accept, ...authorization, ...content },
      };
      const outgoing = open(new URL(path, base), settings, (incoming: IncomingMessage) => {
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.on('error', reject);
        incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, bytes: Buffer.concat(chunks) }));
      });
      outgoing.on('timeout', () => outgoing.destroy(new Error(`no answer within ${timeoutMs} ms`)));
      outgoing.on('error', reject);
      outgoing.end(body);
    });

  const send = async (method: string, path: string, content: Content): Promise<Buffer> => {
    for (let attempt = 1; ; attempt += 1) {
      let failure: Error;
      try {
        const { status, bytes } = await once(method, path, content);
        if (status >= 200 && status < 300) return bytes;
        failure = new RefusedError(status, errorText(bytes.toString('utf8'), status));
        if (!passing.has(status) && failure.message !== concurrentModification) throw failure;
      } catch (error) {
        if (error instanceof RefusedError) throw error;
        failure = new UnreachableError(`${base.host} does not answer: ${reasonOf(error)}`);
      }
      if (attempt === attempts) throw failure;
      await sleep(retryDelayMs * 2 ** (attempt - 1));
    }
  };

  return {
    base,
    user: auth?.split(':')[0] ?? '',
    bytes: (path) => send('GET', path, { accept: '*/*', body: undefined }),
    async json(method, path, body) {
      // Without a requested type CouchDB answers documents with attachments in parts (multipart/related).
      const content = { accept: 'application/json', body: body === undefined ? undefined : JSON.stringify(body) };
      const bytes = await send(method, path, content);
      if (bytes.length === 0) return null;
      try {
        return JSON.parse(bytes.toString('utf8')) as JsonValue;
      } catch {
        throw new RefusedError(0, `${base.host} did not answer ${method} ${path} with JSON`);
      }
    },
    close: () => agent.destroy(),
  };
}

/** The text of an error. Node combines the errors of several addresses into one without a text. */
function reasonOf(error: unknown): string {
  return messageOf(error instanceof AggregateError ? error.errors[0] : error);
}

/** The `error` (or CouchDB's `reason`) of an answer, else the beginning of its text. */
function errorText(text: string, status: number): string {
  try {
    const { error, reason } = JSON.parse(text) as { error?: unknown; reason?: unknown };
    if (typeof reason === 'string') return reason;
    if (typeof error === 'string') return error;
  } catch {
    // The answer is not JSON: its text is reported unchanged.
  }
  return `status ${status}${text === '' ? '' : `: ${text.slice(0, 200)}`}`;
}

/**
 * Calls `work` for each item, at most `concurrency` at a time. Rejects with the first error, after all started calls
 * have ended.
 */
export async function each<Item>(
  items: Iterable<Item>,
  concurrency: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const iterator = items[Symbol.iterator]();
  let failed = false;
  const worker = async (): Promise<void> => {
    for (let next = iterator.next(); !failed && next.done !== true; next = iterator.next()) {
      await work(next.value).catch((error: unknown) => {
        failed = true;
        throw error;
      });
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: concurrency }, worker));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}
