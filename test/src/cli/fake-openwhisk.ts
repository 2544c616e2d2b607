import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';

/** A canned answer: status, body and further headers. A body that is a string is sent unchanged, any other as JSON. */
export type Answer = [status: number, body: unknown, headers?: Record<string, string>];

export interface RecordedRequest {
  /** `PUT /api/v1/namespaces/_/actions/hello?overwrite=false {"namespace":...}` */
  line: string;
  headers: IncomingMessage['headers'];
  /** Common name of the client's certificate, if it showed one. */
  clientCertificate?: string;
}

/** A server that sends canned answers in order and remembers the requests. */
export interface FakeOpenWhisk {
  url: string;
  requests: RecordedRequest[];
  /** Forgets the requests and sets the answers. After the last answer, the server answers 200 and `{}`. */
  expect(answers: Answer[]): void;
  close(): Promise<void>;
}

/** Listens on a free port of the loopback; with `tls` over HTTPS, asking for a client certificate. */
export async function startFakeOpenWhisk(tls?: ServerOptions): Promise<FakeOpenWhisk> {
  const requests: RecordedRequest[] = [];
  let answers: Answer[] = [];

  function handle(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const line = `${request.method} ${request.url} ${Buffer.concat(chunks).toString()}`.trim();
      const name = tls && (request.socket as TLSSocket).getPeerCertificate().subject?.CN;
      requests.push({ line, headers: request.headers, ...(name ? { clientCertificate: String(name) } : {}) });
      const [status, body, more] = answers.shift() ?? [200, {}];
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      const length = Buffer.byteLength(text);
      response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': length, ...more });
      response.end(text);
    });
  }

  const server = tls
    ? createHttpsServer({ ...tls, requestCert: true, rejectUnauthorized: false }, handle)
    : createHttpServer(handle);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls ? 'https' : 'http'}://localhost:${port}`,
    requests,
    expect(next) {
      requests.length = 0;
      answers = [...next];
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
