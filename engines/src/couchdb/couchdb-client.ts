import nano from 'nano';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';

/** A request of CouchDB's HTTP interface. */
export interface CouchRequest {
  /** Of the database, with its prefix. */
  database: string;
  method?: 'GET' | 'PUT' | 'POST' | 'DELETE';
  /** Below the database, encoded. */
  path?: string;
  query?: Record<string, JsonValue>;
  body?: JsonObject;
}

/** CouchDB refused a request, gave no proper answer, or could not be reached: `status` is 0 then. */
export class CouchError extends Error {
  override name = 'CouchError';
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

/** Between tries of a request that only reads, ms. */
const retryAfterMs = [100, 400];

/** A CouchDB server. */
export interface CouchClient {
  /** Its address, without user and password. */
  readonly address: string;
  /**
   * Sends a request, one that only reads again where the server is not reached or fails (three times in all). Rejects
   * with CouchError.
   */
  send(request: CouchRequest): Promise<JsonObject | JsonValue[]>;
}

/** Speaks with the CouchDB at `url` (user and password may be in it); each request is given up after `timeoutMs`. */
export function couchClient(url: string, timeoutMs: number, clock: Clock): CouchClient {
  // Its types lack it: without, the last part of a path would be taken for a database.
  const options: nano.Configuration & { parseUrl: boolean } = { url, parseUrl: false };
  const server = nano(options);
  const { origin, pathname } = new URL(url);

  async function once({ database, method = 'GET', path, query, body }: CouchRequest): Promise<unknown> {
    const signal = AbortSignal.timeout(timeoutMs);
    const options = {
      db: database,
      method,
      qs: query ?? {},
      signal,
      ...(path !== undefined && { path }),
      ...(body && { body }),
    };
    try {
      return await server.request(options as nano.RequestOptions);
    } catch (error) {
      const { statusCode = 0, message } = error as Error & { statusCode?: number };
      throw new CouchError(signal.aborted ? `no answer within ${timeoutMs} ms` : message, statusCode);
    }
  }

  return {
    address: `${origin}${pathname.replace(/\/$/, '')}`,
    async send(request) {
      const reads = request.method === undefined || request.method === 'GET';
      for (let attempt = 0; ; attempt++) {
        try {
          const answer = await once(request);
          if (isJsonObject(answer as JsonValue) || Array.isArray(answer)) return answer as JsonObject | JsonValue[];
          throw new CouchError('the answer is incomplete', 0);
        } catch (error) {
          const waitMs = retryAfterMs[attempt];
          const { status } = error as CouchError;
          if (!reads || waitMs === undefined || (status > 0 && status < 500)) throw error;
          await sleep(clock, waitMs);
        }
      }
    },
  };
}
