import { createServer, request as httpRequest } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

/**
 * How a proxy treats a request: `pass` it on, perhaps after `delayMs`; `hang`: never answer; `break` the connection;
 * answer with a status, or with a status and a body. `breaksOff` ends the connection in the middle of that body.
 */
export type Treatment =
  | 'pass'
  | 'hang'
  | 'break'
  | { delayMs: number }
  | { status: number; error: string }
  | { status: number; type: string; body: string; breaksOff?: boolean };

/** An HTTP proxy between a platform and its CouchDB. */
export interface HttpProxy {
  /** URL with the server's name and password. */
  url: string;
  /** Sets the treatment of later requests; default: all pass. Breaks connections of requests that hang. */
  treat(how: (method: string, url: string) => Treatment): void;
  /** Requests received, by method and path. */
  seen: string[];
  close(): Promise<void>;
}

/** Starts a proxy of the HTTP server at `target`. */
export async function startHttpProxy(target: string): Promise<HttpProxy> {
  const { hostname: host, port, username, password } = new URL(target);
  let treatment: (method: string, url: string) => Treatment = () => 'pass';
  const hanging = new Set<ServerResponse>();
  const seen: string[] = [];

  function pass(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { method, url, headers } = incoming;
    const onward = httpRequest({ host, port, method, path: url, headers, agent: false }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    // Break the connection, as happens without a proxy.
    onward.on('error', () => outgoing.destroy());
    incoming.pipe(onward);
  }

  const server = createServer((incoming, outgoing) => {
    const { method = '', url = '' } = incoming;
    seen.push(`${method} ${url}`);
    const how = treatment(method, url);
    if (how === 'pass') pass(incoming, outgoing);
    else if (how === 'hang') hanging.add(outgoing);
    else if (how === 'break') outgoing.destroy();
    else if ('delayMs' in how) setTimeout(() => pass(incoming, outgoing), how.delayMs);
    else if ('body' in how) {
      const { status, type, body, breaksOff = false } = how;
      const length = Buffer.byteLength(body) + (breaksOff ? 1 : 0);
      outgoing.writeHead(status, { 'content-type': type, 'content-length': length });
      outgoing.write(body, () => (breaksOff ? outgoing.destroy() : outgoing.end()));
    } else {
      incoming.resume();
      const body = JSON.stringify({ error: how.error, reason: how.error });
      incoming.on('end', () => outgoing.writeHead(how.status, { 'content-type': 'application/json' }).end(body));
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const user = username === '' ? '' : `${username}:${password}@`;
  return {
    url: `http://${user}127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    treat(how) {
      treatment = how;
      for (const response of hanging) response.destroy();
      hanging.clear();
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
