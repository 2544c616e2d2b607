// Faulty callers: their requests, and the ways in which they disconnect. The platform stays healthy.
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { actionBody } from '../support/api-client.js';
import type { ApiActivation } from '../support/api-client.js';
import { heldConnections } from '../support/process-traces.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

let platform: RunningPlatform;
const hello = 'function main({ name }) { return { greeting: `Hello, ${name}!` }; }';
const slow = `async function main({ ms }) {
  await new Promise((done) => setTimeout(done, ms));
  return { slept: ms };
}`;
const systemAuth =
  '789c46b1-71f6-4ed5-8c54-816aa4f8c502:abczO3xZCLrMN6v2BKK1dXYFpXlPkccOFqm12CdAsMgRU4VrNZ9lyGVCGuMDGIwP';

beforeAll(async () => {
  platform = await startPlatform();
  await platform.api.putAction('hello', hello);
  await platform.api.putAction('slow', slow);
});
afterAll(() => platform.stop());
afterEach(async () => {
  expect(await platform.api.invokeForResult('hello', { name: 'you' })).toMatchObject({
    status: 200,
    body: { greeting: 'Hello, you!' },
  });
});

const refusal = (status: number, error: unknown): object => ({
  status,
  body: { error, code: expect.stringMatching(/^[A-Za-z0-9]{32}$/) },
});
const notAuthorized = 'The supplied authentication is not authorized to access';

test('a wrong key, and none', async () => {
  const wrongKey = platform.auth.slice(0, -1) + (platform.auth.endsWith('X') ? 'Y' : 'X');
  for (const auth of [wrongKey, 'nobody:x', systemAuth.slice(0, 36) + platform.auth.slice(36)]) {
    const answer = await platform.api.as(auth).request('POST', '_/actions/hello?blocking=true', {});
    expect(answer).toMatchObject(refusal(401, 'The supplied authentication is invalid'));
  }
});

describe("another namespace's", () => {
  const others = (method: string, path: string, body?: object) => platform.api.request(method, path, body);

  test('actions are neither seen, changed nor invoked', async () => {
    await platform.api.as(systemAuth).putAction('secret', hello);
    for (const [method, body] of [
      ['GET', undefined],
      ['PUT', actionBody(hello)],
      ['DELETE', undefined],
      ['POST', {}],
    ] as const) {
      expect(await others(method, 'whisk.system/actions/secret', body)).toMatchObject(
        refusal(403, expect.stringContaining(notAuthorized)),
      );
    }
    expect(await platform.api.as(systemAuth).invokeForResult('secret', { name: 'me' })).toMatchObject({ status: 200 });
  });

  test('activations are not seen', async () => {
    const { activationId } = await platform.api.as(systemAuth).invoke('secret');
    await platform.api.as(systemAuth).record(activationId);
    expect(await others('GET', `whisk.system/activations/${activationId}`)).toMatchObject({ status: 403 });
    expect(await others('GET', `_/activations/${activationId}`)).toMatchObject(
      refusal(404, 'The requested resource does not exist.'),
    );
  });
});

test.each<[string, string, string, unknown, number, unknown]>([
  ['an unknown action', 'POST', '_/actions/nothing', {}, 404, 'The requested resource does not exist.'],
  [
    'an unknown activation',
    'GET',
    `_/activations/${'0'.repeat(32)}`,
    undefined,
    404,
    'The requested resource does not exist.',
  ],
  ['a short id', 'GET', '_/activations/1234', undefined, 400, 'Activation id length is 4 but must be 32.'],
  ['a bad name', 'PUT', '_/actions/a%2Ab', actionBody(hello), 400, expect.stringContaining('illegal characters')],
  [
    'an unknown kind',
    'PUT',
    '_/actions/x',
    actionBody(hello, { kind: 'cobol:1' }),
    400,
    expect.stringMatching(
      /^The request content was malformed:\nThe specified runtime 'cobol:1' is not supported by this platform\. Valid values are: 'nodejs:20', /,
    ),
  ],
  ['no code', 'PUT', '_/actions/x', {}, 400, 'exec undefined'],
  ['a taken name', 'PUT', '_/actions/hello', actionBody(hello), 409, 'resource already exists'],
  [
    'a limit beyond the maximum',
    'PUT',
    '_/actions/x',
    actionBody(hello, { limits: { timeout: 300_001 } }),
    400,
    'duration 300001 milliseconds exceeds allowed threshold of 300000 milliseconds (setting: limits.maxTimeoutMs)',
  ],
  ['JSON that breaks off', 'POST', '_/actions/hello', '{"a":', 400, expect.stringMatching(/^The request content was/)],
  ['JSON that is a list', 'POST', '_/actions/hello', [1], 400, expect.stringMatching(/^The request content was/)],
  [
    'JSON that nests too deeply',
    'POST',
    '_/actions/hello?blocking=true',
    `{"a":${'['.repeat(1000)}${']'.repeat(1000)}}`,
    400,
    'The request content was malformed:\nJSON input nested too deeply:JSON input was nested more deeply than the set limit of maxNesting = 1000',
  ],
  [
    'arguments beyond 1 MB',
    'POST',
    '_/actions/hello?blocking=true',
    `{"text":"${'x'.repeat(1_048_576)}"}`,
    413,
    'Request larger than allowed: 1048587 > 1048576 bytes. (setting: limits.maxPayloadBytes)',
  ],
])('%s', async (_, method, path, body, status, error) => {
  expect(await platform.api.request(method, path, body)).toMatchObject(refusal(status, error));
});

test('of writers at once each wins or is told of the conflict, and none is lost', async () => {
  await platform.api.putAction('contested', hello);
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      platform.api.request('PUT', '_/actions/contested?overwrite=true', actionBody(`${hello} // ${i}`)),
    ),
  );
  const won = answers.filter(({ status }) => status === 200);
  const lost = answers.filter(({ status }) => status !== 200);
  expect(won.length).toBeGreaterThan(0);
  for (const answer of lost) {
    expect(answer).toMatchObject(refusal(409, 'Concurrent modification to resource detected.'));
  }
  expect(new Set(won.map(({ body }) => body.version)).size).toBe(won.length);
  const { body } = await platform.api.request('GET', '_/actions/contested');
  expect(body.version).toBe(`0.0.${won.length + 1}`);
  expect((await platform.api.invokeForResult('contested', { name: 'you' })).status).toBe(200);
});

/** Opens a new connection and sends the beginning of an invocation. */
function send(path: string, body: string, contentLength: number): Promise<Socket> {
  const { hostname, port } = new URL(platform.url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => {
      const authorization = `Basic ${Buffer.from(platform.auth).toString('base64')}`;
      const head = `POST /api/v1/namespaces/_/actions/${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n`;
      socket.write(
        `${head}Content-Type: application/json\r\nContent-Length: ${contentLength}\r\n\r\n${body}`,
        (error) => (error ? reject(error) : resolve(socket)),
      );
    });
    socket.on('error', reject);
  });
}

async function activationsOf(name: string): Promise<ApiActivation[]> {
  const { body } = await platform.api.request<ApiActivation[]>('GET', `_/activations?name=${name}&docs=true`);
  return body;
}

describe('a client that disconnects', () => {
  test('half-way through its request leaves nothing', async () => {
    await platform.api.putAction('half', hello);
    const sockets = await Promise.all(Array.from({ length: 20 }, () => send('half?blocking=true', '{"name":', 1000)));
    const ports = sockets.map((socket) => socket.localPort ?? 0);
    const serverPort = Number(new URL(platform.url).port);
    await until('connections are open', () => heldConnections(serverPort, ports) === 20);
    for (const [i, socket] of sockets.entries()) {
      if (i % 2 === 0) socket.destroy();
      else socket.resetAndDestroy();
    }
    await until('connections are closed', () => heldConnections(serverPort, ports) === 0);
    expect(await activationsOf('half')).toEqual([]);
  });

  test('while it waits for the result: the function runs to its end and is recorded', async () => {
    const body = '{"ms":400}';
    const socket = await send('slow?blocking=true', body, body.length);
    await new Promise((done) => setTimeout(done, 200));
    socket.destroy();
    await until('the record is there', async () => (await activationsOf('slow')).length === 1);
    const [record] = await activationsOf('slow');
    expect(record?.response).toMatchObject({ success: true, result: { slept: 400 } });
    expect(platform.output()).not.toMatch(/"level":(50|60)/);
  });

  test('having waited as long as it said: it gets the id, and later the record', async () => {
    const answer = await platform.api.invoke('slow', { ms: 600 }, 'blocking=true&timeout=100');
    expect(answer).toMatchObject({ status: 202, body: { activationId: answer.activationId } });
    expect((await platform.api.record(answer.activationId)).response.result).toEqual({ slept: 600 });
  });
});
