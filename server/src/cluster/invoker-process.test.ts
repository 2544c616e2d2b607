import { createServer, request } from 'node:http';
import type { IncomingHttpHeaders, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { forwardApi } from './invoker-process.js';

let seen: IncomingHttpHeaders;
const servers: Server[] = [];
const portOf = (server: Server): number => (server.address() as AddressInfo).port;

async function listen(server: Server): Promise<Server> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

beforeAll(async () => {
  const api = await listen(
    createServer(({ headers }, response) => {
      seen = headers;
      response.end('{}');
    }),
  );
  await listen(createServer(forwardApi(`http://127.0.0.1:${portOf(api)}`)));
});
afterAll(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
});

test('a function cannot have a proxy on the way drop what tells the API that a function asks', async () => {
  const headers = { Connection: 'x-gpuwhisk-sandbox', 'X-Gpuwhisk-Sandbox': 'false', 'X-Own': 'kept' };
  await new Promise<void>((resolve, reject) => {
    request({ port: portOf(servers[1] as Server), host: '127.0.0.1', path: '/metrics', headers }, (answer) => {
      answer.resume().on('end', resolve);
    })
      .on('error', reject)
      .end();
  });
  expect(seen).toMatchObject({ 'x-gpuwhisk-sandbox': 'true', 'x-own': 'kept' });
  expect(seen.connection ?? '').not.toContain('sandbox');
});
