import { apiBase } from '../client/api-host.js';
import { send, tlsOptions, type HttpRequest } from '../client/transport.js';
import { messageOf } from '../errors.js';
import type { Settings } from '../settings.js';

/** A value of JSON. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** An answer other than success; `message` is the server's text, or why there was none. */
export class RequestError extends Error {
  constructor(
    /** HTTP status; 0 where the server did not answer. */
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Requests of /api/v1/admin. All throw RequestError. */
export interface AdminClient {
  request(method: HttpRequest['method'], path: string, body?: Json): Promise<Json>;
}

/** A client for the operator whose key `settings` has. Throws WskError for an impossible host or certificate. */
export function createAdminClient(settings: Settings): AdminClient {
  const base = `${apiBase(settings.apiHost)}/${settings.apiVersion}/admin/`;
  const tls = tlsOptions(settings);
  const headers = { Authorization: `Basic ${Buffer.from(settings.auth).toString('base64')}` };
  return {
    async request(method, path, body) {
      const content = body === undefined ? {} : { body: JSON.stringify(body) };
      const typed = body === undefined ? headers : { ...headers, 'Content-Type': 'application/json' };
      const response = await send({ method, url: base + path, headers: typed, ...content }, tls).catch(
        (error: unknown) => {
          throw new RequestError(0, messageOf(error));
        },
      );
      const answer = parse(response.body);
      if (response.status >= 200 && response.status < 300) return answer;
      const text = isObject(answer) && typeof answer.error === 'string' ? answer.error : response.body;
      throw new RequestError(response.status, text);
    },
  };
}

/** Whether a value is a JSON object. */
export function isObject(value: Json | undefined): value is { [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parse(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    // Whoever answered is no such server: its status and text are told.
    return null;
  }
}
