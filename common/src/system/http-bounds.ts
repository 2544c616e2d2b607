// Bounds on what one read of a connection, of 64 KiB or more, has the thread do.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Pieces of a chunked body that may come however small they are, and the bytes that pieces must have on average beyond them. A
 * piece takes the thread a microsecond and some hundred bytes of memory, and a connection brings 100,000 of a byte in a turn.
 */
const [freePieces, meanBytes] = [2048, 32];

const refusal = 'The request comes in too small chunks.';

/** Ends the connection of a request whose body comes in too small chunks, with an answer (400) if it has none. */
export function refuseSmallChunks(request: IncomingMessage, response: ServerResponse): void {
  if (request.headers['transfer-encoding'] === undefined) return;
  const { socket } = request;
  // Else Node.js drops what comes after the answer, and asks for it nowhere.
  response.once('prefinish', () => {
    if (!request.complete) request.resume();
  });
  const push = request.push.bind(request);
  let pieces = 0;
  let bytes = 0;
  let isRefused = false;
  request.push = (chunk: Buffer | null, ...more): boolean => {
    if (isRefused) return false;
    if (chunk === null) return push(chunk, ...more);
    pieces += 1;
    bytes += chunk.length;
    if (pieces <= freePieces || bytes >= (pieces - freePieces) * meanBytes) return push(chunk, ...more);
    isRefused = true;
    const head = 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n';
    if (socket.writable && !response.headersSent) {
      socket.write(`${head}Content-Length: ${refusal.length}\r\n\r\n${refusal}`);
    }
    socket.destroySoon();
    return false;
  };
}

/** Requests of a connection that wait for earlier ones; with more it is ended. A read brings 2,000. */
const mostWaiting = 256;

const waiting = new WeakMap<Socket, number>();

/** Handles a request once those that came before it on its connection are answered, in a turn of its own. */
export function afterEarlier(
  request: IncomingMessage,
  response: ServerResponse,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): void {
  // Node.js gives a response its socket when those before it are sent.
  if (response.socket !== null) {
    handle(request, response);
    return;
  }
  const { socket } = request;
  const count = (waiting.get(socket) ?? 0) + 1;
  waiting.set(socket, count);
  if (count > mostWaiting) socket.destroy();
  response.once('socket', () => {
    waiting.set(socket, (waiting.get(socket) ?? 1) - 1);
    setImmediate(handle, request, response);
  });
}
