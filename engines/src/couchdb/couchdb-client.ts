import nano from 'nano';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { CouchError } from './couch-error.js';
import { Turns } from './turns.js';

/** A request of CouchDB's HTTP interface. */
export interface CouchRequest {
  /** Of the database, with its prefix. */
  database: string;
  method?: 'GET' | 'PUT' | 'POST' | 'DELETE';
  /** Below the database, encoded. */
  path?: string;
  query?: Record<string, JsonValue>;
  body?: JsonObject;
  /** After which it is given up, ms; at most, and by default, the client's. */
  timeoutMs?: number;
}

/** Between tries of a request that only reads, ms. */
const retryAfterMs = [100, 400];
/** Requests under way at once; so many more may wait for their turn, the next fail at once. */
const maxAtOnce = 64;
const maxWaiting = 1000;

/** A CouchDB server. */
export interface CouchClient {
  /** Its address, without user and password. */
  readonly address: string;
  /**
   * Sends a request, one that only reads again where the server is not reached or fails (three times in all, within the
   * time-out). Rejects with CouchError.
   */
  send(request: CouchRequest): Promise<JsonObject | JsonValue[]>;
  /** Gives up what is under way. */
  abort(): void;
}

/** Speaks with the CouchDB at `url` (user and password may be in it); each request is given up after `timeoutMs`. */
export function couchClient(url: string, timeoutMs: number, clock: Clock): CouchClient {
  // Its types lack it: without, the last part of a path would be taken for a database.
  const options: nano.Configuration & { parseUrl: boolean } = {
    ...{ url, parseUrl: false },
    // Within a cluster, packing an answer takes longer than sending it.
    headers: { 'Accept-Encoding': 'identity' },
  };
  const server = nano(options);
  const { origin, pathname } = new URL(url);
  const turns = new Turns(maxAtOnce, maxWaiting);
  const underWay = new Set<(why: string) => void>();

  async function once({ database, method = 'GET', path, query, body }: CouchRequest, signal: AbortSignal) {
    const options = {
      db: database,
      method,
      qs: query ?? {},
      signal,
      ...(path !== undefined && { path }),
      ...(body && { body }),
    };
    const answer = (await server.request(options as nano.RequestOptions)) as JsonValue;
    if (isJsonObject(answer) || Array.isArray(answer)) return answer;
    throw new Error('the answer is incomplete');
  }

  async function tryAll(request: CouchRequest, signal: AbortSignal): Promise<JsonObject | JsonValue[]> {
    const reads = request.method === undefined || request.method === 'GET';
    for (let attempt = 0; ; attempt++) {
      try {
        return await once(request, signal);
      } catch (error) {
        const waitMs = retryAfterMs[attempt];
        const { statusCode = 0, message } = error as Error & { statusCode?: number };
        const isFinal = !reads || waitMs === undefined || (statusCode > 0 && statusCode < 500);
        if (isFinal || signal.aborted) throw new CouchError(message, statusCode);
        await sleep(clock, waitMs);
      }
    }
  }

  async function tryInTurn(request: CouchRequest, signal: AbortSignal): Promise<JsonObject | JsonValue[]> {
    const end = await turns.take(signal);
    try {
      return await tryAll(request, signal);
    } finally {
      end();
    }
  }

  return {
    address: `${origin}${pathname.replace(/\/$/, '')}`,
    abort: () => {
      for (const giveUp of underWay) giveUp('the store is closed');
    },
    async send(request) {
      const limitMs = Math.min(request.timeoutMs ?? timeoutMs, timeoutMs);
      const abort = new AbortController();
      let giveUp: (why: string) => void = () => undefined;
      // nano never settles where a body breaks off that is no JSON.
      const givenUp = new Promise<never>((_, reject) => {
        giveUp = (why) => {
          reject(new CouchError(why, 0));
          abort.abort();
        };
      });
      const timer = clock.setTimer(limitMs, () => giveUp(`no answer within ${limitMs} ms`));
      underWay.add(giveUp);
      try {
        return await Promise.race([tryInTurn(request, abort.signal), givenUp]);
      } finally {
        timer.cancel();
        underWay.delete(giveUp);
      }
    },
  };
}
