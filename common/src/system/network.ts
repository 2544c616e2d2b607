import { createServer, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterEarlier, refuseSmallChunks } from './http-bounds.js';

/** Handles one HTTP request; must not throw. */
export type HttpHandler = (request: IncomingMessage, response: ServerResponse) => void;

/** A server that listens. */
export interface HttpServer {
  /** The IP address in use. */
  readonly address: string;
  /** The port in use (the one picked where 0 was asked for). */
  readonly port: number;
  /** Accepts nothing new, lets requests under way end for up to `graceMs`, then cuts what is left. */
  close(graceMs: number): Promise<void>;
}

/** Where a server listens: an address, or a socket that listens already, by its descriptor in this process. */
export type ListenAddress = { host: string; port: number } | { descriptor: number };

/** An HTTP request to another server. */
export interface ClientRequest {
  method: string;
  url: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | Uint8Array;
  /** Until the whole response is there, ms. */
  timeoutMs: number;
  /** Bytes of the response that are accepted. Default 64 MiB. */
  maxResponseBytes?: number;
}

/** A whole response. */
export interface ClientResponse {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** Sockets, as far as HTTP goes. */
export interface Network {
  /** Rejects with the system's error (EADDRINUSE) if the address cannot be had. */
  listen(handler: HttpHandler, address: ListenAddress): Promise<HttpServer>;
  /** Rejects if there is no whole response in time. */
  request(request: ClientRequest): Promise<ClientResponse>;
}

/** Time for a whole request to arrive, ms: OpenWhisk's request timeout. */
export const requestTimeoutMs = 65_000;
/** Time that an idle connection is kept: OpenWhisk's idle timeout. */
const idleTimeoutMs = 70_000;
/** How often a server that closes looks for connections that have become idle. */
const idleSweepMs = 20;
/** A request line of 8 KiB and as much for the header fields. */
const maxHeaderBytes = 16 * 1024;

/** Answers a request that is no HTTP, or too slow, and ends its connection. */
function refuse(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  let status = '400 Bad Request';
  if (error.code === 'HPE_HEADER_OVERFLOW') status = '431 Request Header Fields Too Large';
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') status = '408 Request Timeout';
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}

function listening(server: Server, address: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen('descriptor' in address ? { fd: address.descriptor } : address, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** Has a connection end with this answer: its client sends further requests on a new one. */
function endWith(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('connection', 'close');
}

function closed(server: Server, open: ReadonlySet<ServerResponse>, graceMs: number): Promise<void> {
  for (const response of open) endWith(response);
  return new Promise((resolve) => {
    const cut = setTimeout(() => server.closeAllConnections(), graceMs);
    // A connection that is kept alive would be held open after its last answer, too.
    const sweep = setInterval(() => server.closeIdleConnections(), idleSweepMs);
    server.close(() => {
      clearTimeout(cut);
      clearInterval(sweep);
      resolve();
    });
    server.closeIdleConnections();
  });
}

/** The machine's network. */
export const systemNetwork: Network = {
  async listen(handler, address) {
    const open = new Set<ServerResponse>();
    let isClosing = false;
    const server = createServer(
      {
        requestTimeout: requestTimeoutMs,
        headersTimeout: requestTimeoutMs,
        keepAliveTimeout: idleTimeoutMs,
        maxHeaderSize: maxHeaderBytes,
        noDelay: true,
      },
      (request, response) => {
        open.add(response);
        response.once('close', () => open.delete(response));
        if (isClosing) endWith(response);
        refuseSmallChunks(request, response);
        afterEarlier(request, response, handler);
      },
    );
    server.on('clientError', refuse);
    await listening(server, address);
    const { address: ip, port } = server.address() as AddressInfo;
    return {
      address: ip,
      port,
      close: (graceMs) => {
        isClosing = true;
        return closed(server, open, graceMs);
      },
    };
  },

  request({ method, url, headers, body, timeoutMs, maxResponseBytes = 64 * 1024 * 1024 }) {
    return new Promise((resolve, reject) => {
      const send = url.startsWith('https:') ? httpsRequest : httpRequest;
      const outgoing = send(url, { method, headers: { ...headers } }, (response) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > maxResponseBytes) fail(new Error(`the response is longer than ${maxResponseBytes} bytes`));
          else chunks.push(chunk);
        });
        response.on('error', fail);
        response.on('end', () => {
          clearTimeout(timer);
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) });
        });
      });
      const fail = (error: Error): void => {
        clearTimeout(timer);
        reject(error);
        outgoing.destroy();
      };
      const timer = setTimeout(() => {
        fail(new Error(`${method} ${url}: no whole response within ${timeoutMs} ms`));
      }, timeoutMs);
      outgoing.on('error', fail);
      outgoing.end(body);
    });
  },
};
