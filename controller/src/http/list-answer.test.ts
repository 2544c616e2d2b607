// Answers in pieces, over real connections.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createLogger } from '@gpuwhisk/common/logging';
import { writeAnswer } from './answer.js';
import { streamedAnswer } from './list-answer.js';

const logger = createLogger({ level: 'fatal' });
/** More than sockets hold for a client that does not read. */
const manyPieces = 1000;
const stalledMs = 300;

let server: Server;
/** Answers that were begun and have not released what they hold. */
let open = 0;

beforeEach(async () => {
  open = 0;
  async function* pieces(count: number): AsyncGenerator<Uint8Array> {
    open += 1;
    try {
      yield Buffer.alloc(0);
      for (let piece = 0; piece < count; piece += 1) yield Buffer.alloc(64 * 1024, 'x');
    } finally {
      open -= 1;
    }
  }
  server = createServer((asked, response) => {
    const count = asked.url === '/short' ? 3 : manyPieces;
    void streamedAnswer(pieces(count), logger, stalledMs).then((answer) => writeAnswer(response, 'id', answer));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});

afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

async function ask(path: string): Promise<IncomingMessage> {
  const { port } = server.address() as AddressInfo;
  const outgoing = request({ host: '127.0.0.1', port, path, agent: false });
  outgoing.end();
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
  incoming.on('error', () => undefined);
  return incoming;
}

async function bytesOf(path: string): Promise<number> {
  let bytes = 0;
  for await (const piece of await ask(path)) bytes += (piece as Buffer).length;
  return bytes;
}

async function untilReleased(): Promise<void> {
  for (let tries = 0; open > 0 && tries < 500; tries += 1) await new Promise((done) => setTimeout(done, 10));
  expect(open).toBe(0);
}

test('a client that leaves in the middle ends the reading, and the next request is answered', async () => {
  for (let client = 0; client < 3; client += 1) {
    const incoming = await ask('/long');
    await once(incoming, 'data');
    expect(open).toBe(1);
    incoming.destroy();
    await untilReleased();
  }
  expect(await bytesOf('/short')).toBe(3 * 64 * 1024);
  await untilReleased();
});

test('a client that reads nothing is cut off, and one that reads slowly is not', async () => {
  const stalled = await ask('/long');
  stalled.pause();
  const closed = new Promise((resolve) => stalled.socket.once('close', resolve));
  await untilReleased();
  stalled.resume();
  await closed;
  expect(stalled.complete).toBe(false);

  const slow = await ask('/long');
  let bytes = 0;
  for await (const piece of slow) {
    const before = Math.floor(bytes / (8 * 1024 * 1024));
    bytes += (piece as Buffer).length;
    if (Math.floor(bytes / (8 * 1024 * 1024)) > before) await new Promise((done) => setTimeout(done, stalledMs / 6));
  }
  expect(bytes).toBe(manyPieces * 64 * 1024);
});
