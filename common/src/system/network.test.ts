import type { ServerResponse } from 'node:http';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import { until } from '../testing/until.js';
import { systemNetwork } from './network.js';
import type { HttpHandler, HttpServer } from './network.js';

const host = '127.0.0.1';
const echo: HttpHandler = (request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    response.writeHead(201, { 'x-method': request.method ?? '', 'x-given': String(request.headers['x-given']) });
    response.end(Buffer.concat(chunks));
  });
};

async function serving<T>(handler: HttpHandler, use: (server: HttpServer, url: string) => Promise<T>): Promise<T> {
  const server = await systemNetwork.listen(handler, { host, port: 0 });
  try {
    return await use(server, `http://${host}:${server.port}/`);
  } finally {
    await server.close(0);
  }
}

test('a request arrives and is answered', async () => {
  await serving(echo, async (_, url) => {
    const headers = { 'x-given': 'yes' };
    const reply = await systemNetwork.request({ method: 'POST', url, headers, body: 'héllo', timeoutMs: 1000 });
    expect([reply.status, reply.body.toString(), reply.headers['x-method'], reply.headers['x-given']]).toEqual([
      201,
      'héllo',
      'POST',
      'yes',
    ]);
  });
});

test('a busy port is an error', async () => {
  await serving(echo, async ({ port }) => {
    await expect(systemNetwork.listen(echo, { host, port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });
});

test('an answer that does not come in time is an error', async () => {
  await serving(
    () => undefined,
    async (_, url) => {
      const request = systemNetwork.request({ method: 'GET', url, timeoutMs: 50 });
      await expect(request).rejects.toThrow('no whole response within 50 ms');
    },
  );
});

test('an answer that stops half-way is an error in time', async () => {
  await serving(
    (_, response) => {
      response.writeHead(200, { 'content-length': '10' });
      response.write('half');
    },
    async (_, url) => {
      await expect(systemNetwork.request({ method: 'GET', url, timeoutMs: 100 })).rejects.toThrow();
    },
  );
});

test('an answer that is too long is an error', async () => {
  await serving(
    (_, response) => response.end('x'.repeat(1000)),
    async (_, url) => {
      const request = systemNetwork.request({ method: 'GET', url, timeoutMs: 1000, maxResponseBytes: 100 });
      await expect(request).rejects.toThrow('longer than 100 bytes');
    },
  );
});

test('an address without a server is an error', async () => {
  const unused = createServer().listen(0, host);
  await new Promise((resolve) => unused.once('listening', resolve));
  const { port } = unused.address() as AddressInfo;
  await new Promise((resolve) => unused.close(resolve));
  const request = systemNetwork.request({ method: 'GET', url: `http://${host}:${port}/`, timeoutMs: 1000 });
  await expect(request).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});

test('closing lets a request end, and cuts it after the grace', async () => {
  const slow: HttpHandler = (request, response) => {
    setTimeout(() => response.end('done'), request.url === '/quick' ? 50 : 60_000).unref();
  };
  const server = await systemNetwork.listen(slow, { host, port: 0 });
  const get = (path: string): Promise<string> =>
    systemNetwork.request({ method: 'GET', url: `http://${host}:${server.port}${path}`, timeoutMs: 5000 }).then(
      (reply) => reply.body.toString(),
      (error: NodeJS.ErrnoException) => error.code ?? 'cut',
    );
  const answers = Promise.all([get('/quick'), get('/slow')]);
  await new Promise((resolve) => setTimeout(resolve, 20));
  await server.close(200);
  expect(await answers).toEqual(['done', 'ECONNRESET']);
});

test('a closing server ends connections with their answers, also of requests that came before and after', async () => {
  const answers: ServerResponse[] = [];
  const server = await systemNetwork.listen((_, response) => void answers.push(response), { host, port: 0 });
  const sockets = [1, 2].map(() => connect(server.port, host));
  const told = sockets.map(async (socket) => {
    let text = '';
    for await (const part of socket) text += String(part);
    return text;
  });
  const request = 'GET / HTTP/1.1\r\nhost: test\r\n';
  sockets[0]?.write(`${request}\r\n`);
  sockets[1]?.write(request);
  await until(() => answers.length === 1);
  const closed = server.close(5000);
  sockets[1]?.write('\r\n');
  await until(() => answers.length === 2);
  for (const response of answers) response.end('done');
  for (const text of await Promise.all(told)) expect(text).toMatch(/\r\nconnection: close\r\n[^]*done/i);
  await closed;
});

test('header fields over the limit are refused', async () => {
  await serving(echo, async (_, url) => {
    const headers = { 'x-given': 'x'.repeat(20_000) };
    const reply = await systemNetwork.request({ method: 'GET', url, headers, timeoutMs: 1000 });
    expect(reply.status).toBe(431);
  });
});
