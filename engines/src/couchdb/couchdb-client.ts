import { isJsonObject, withoutHalfPairs } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';

/** A request of CouchDB's HTTP interface. */
export interface CouchRequest {
  /** Of the database, with its prefix; absent: the server itself is asked. */
  database?: string;
  method?: 'GET' | 'PUT' | 'POST' | 'DELETE';
  /** Below the database or the server, encoded. */
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

/** Values of these are JSON; those of others are words and numbers. */
const isJson = (name: string): boolean => /^(start_?|end_?)?keys?$/.test(name);

function queryText(query: Record<string, JsonValue>): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    parameters.append(name, isJson(name) ? JSON.stringify(value) : String(value));
  }
  return parameters.size === 0 ? '' : `?${parameters.toString()}`;
}

/** Undefined: it is no object and no list. */
function parsed(text: string): JsonObject | JsonValue[] | undefined {
  try {
    const answer = JSON.parse(text) as JsonValue;
    return isJsonObject(answer) || Array.isArray(answer) ? answer : undefined;
  } catch {
    return undefined;
  }
}

/** Speaks with the CouchDB at `url` (user and password may be in it); each request is given up after `timeoutMs`. */
export function couchClient(url: string, timeoutMs: number, clock: Clock): CouchClient {
  const { origin, pathname, username, password } = new URL(url);
  const address = `${origin}${pathname.replace(/\/$/, '')}`;
  const user = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  const headers = {
    accept: 'application/json',
    'content-type': 'application/json',
    // Within a cluster, packing an answer takes longer than sending it.
    'accept-encoding': 'identity',
    ...(username !== '' && { authorization: `Basic ${Buffer.from(user).toString('base64')}` }),
  };
  const turns = new Turns(maxAtOnce, maxWaiting);
  const underWay = new Set<(why: string) => void>();

  async function once({ database, method = 'GET', path, query = {}, body }: CouchRequest, signal: AbortSignal) {
    const below = [database === undefined ? undefined : encodeURIComponent(database), path];
    const place = [address, ...below.filter((part) => part !== undefined)].join('/');
    const options = {
      method,
      headers,
      signal,
      redirect: 'error',
      ...(body && { body: withoutHalfPairs(JSON.stringify(body)) }),
    } as const;
    const response = await fetch(`${place}${queryText(query)}`, options).catch((error: Error) => {
      throw new CouchError(`it cannot be reached: ${String(error.cause ?? error.message)}`, 0);
    });
    const answer = parsed(await response.text());
    if (response.ok && answer !== undefined) return answer;
    if (response.ok) throw new CouchError('the answer is incomplete', 0);
    const { reason, error } = (answer ?? {}) as JsonObject;
    const text = String(reason ?? error ?? `it answered ${response.status}`);
    throw new CouchError(text, response.status, typeof error === 'string' ? error : undefined);
  }

  async function tryAll(request: CouchRequest, signal: AbortSignal): Promise<JsonObject | JsonValue[]> {
    const reads = request.method === undefined || request.method === 'GET';
    for (let attempt = 0; ; attempt++) {
      try {
        return await once(request, signal);
      } catch (error) {
        const waitMs = retryAfterMs[attempt];
        const { status = 0, word } = error instanceof CouchError ? error : {};
        const isFinal = !reads || waitMs === undefined || (status > 0 && status < 500);
        if (isFinal || signal.aborted) throw new CouchError((error as Error).message, status, word);
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
    address,
    abort: () => {
      for (const giveUp of underWay) giveUp('the store is closed');
    },
    async send(request) {
      const limitMs = Math.min(request.timeoutMs ?? timeoutMs, timeoutMs);
      const abort = new AbortController();
      let giveUp: (why: string) => void = () => undefined;
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

/**
 * CouchDB refused a request, gave no proper answer, or could not be reached: `status` is 0 then. `word` is CouchDB's own name
 * of the error, such as `bad_request`; undefined if something between answered.
 */
export class CouchError extends Error {
  override name = 'CouchError';
  constructor(
    message: string,
    readonly status: number,
    readonly word?: string,
  ) {
    super(message);
  }
}

/** Lets so many go on at once; others wait for their turn, up to a number. */
export class Turns {
  private taken = 0;
  private readonly waiting = new Set<() => void>();

  constructor(
    private readonly maxAtOnce: number,
    private readonly maxWaiting: number,
  ) {}

  /** Resolves, first come first served, with what ends the turn. Rejects if too many wait, or once `signal` is aborted. */
  async take(signal: AbortSignal): Promise<() => void> {
    if (this.taken >= this.maxAtOnce) {
      if (this.waiting.size >= this.maxWaiting) throw new CouchError(`${this.maxWaiting} requests wait already`, 0);
      await new Promise<void>((resolve, reject) => {
        const begin = (): void => {
          signal.removeEventListener('abort', leave);
          resolve();
        };
        const leave = (): void => {
          this.waiting.delete(begin);
          reject(new CouchError('no turn in time', 0));
        };
        this.waiting.add(begin);
        signal.addEventListener('abort', leave, { once: true });
      });
    } else this.taken++;
    return () => this.end();
  }

  /** Hands the turn on. */
  private end(): void {
    const [next] = this.waiting;
    if (next === undefined) {
      this.taken--;
      return;
    }
    this.waiting.delete(next);
    next();
  }
}
