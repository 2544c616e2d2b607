import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { IncomingHttpHeaders } from 'node:http';

/** An answer over HTTP. */
export interface Reply<Body = unknown> {
  status: number;
  headers: IncomingHttpHeaders;
  bytes: Buffer;
  text: string;
  /** The body as JSON, or undefined if it is not JSON. */
  body: Body;
}

/** Options of a request, besides its method and path. */
export interface RequestOptions {
  /** Text or bytes are sent unchanged, other values as JSON with its content type. */
  body?: unknown;
  headers?: Record<string, string>;
  /** Whether credentials are sent; default true. */
  authenticated?: boolean;
}

const requestMs = 90_000;
const agents = { http: new HttpAgent({ keepAlive: true }), https: new HttpsAgent({ keepAlive: true }) };

/** Ends the keep-alive connections of callers. */
export function closeConnections(): void {
  agents.http.destroy();
  agents.https.destroy();
}

/** A client of an API host, with its own credentials. */
export class Caller {
  constructor(
    readonly url: string,
    /** `uuid:key` */
    readonly auth: string,
    /** The namespace that `_` stands for in paths. */
    readonly namespace: string,
  ) {}

  /** Sends a request for any path of the host; rejects if there is no answer. */
  send<Body>(method: string, path: string, options: RequestOptions = {}): Promise<Reply<Body>> {
    const { body } = options;
    const content =
      body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
    const headers: Record<string, string | number> = {};
    if (options.authenticated !== false) headers.authorization = `Basic ${Buffer.from(this.auth).toString('base64')}`;
    if (content !== undefined) {
      if (content !== body) headers['content-type'] = 'application/json';
      headers['content-length'] = Buffer.byteLength(content);
    }
    const secure = this.url.startsWith('https:');
    const request = secure ? httpsRequest : httpRequest;
    const requestOptions = {
      method,
      headers: { ...headers, ...options.headers },
      agent: secure ? agents.https : agents.http,
      timeout: requestMs,
    };
    return new Promise((resolve, reject) => {
      const outgoing = request(this.url + path, requestOptions, (response) => {
        const parts: Buffer[] = [];
        response.on('data', (part: Buffer) => parts.push(part));
        response.on('error', reject);
        response.on('end', () => {
          const bytes = Buffer.concat(parts);
          const text = bytes.toString('utf8');
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            bytes,
            text,
            body: parsed<Body>(text),
          });
        });
      });
      outgoing.on('timeout', () => outgoing.destroy(new Error(`No answer to ${method} ${path}.`)));
      outgoing.on('error', reject);
      outgoing.end(content);
    });
  }

  /** Sends a request for a path below `/api/v1/namespaces/`; encodes spaces in the path. */
  api<Body = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<Reply<Body>> {
    return this.send<Body>(method, `/api/v1/namespaces/${path.replaceAll(' ', '%20')}`, { body });
  }
}

function parsed<Body>(text: string): Body {
  try {
    return JSON.parse(text) as Body;
  } catch {
    return undefined as Body;
  }
}
