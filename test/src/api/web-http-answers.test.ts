import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { connect } from 'node:net';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { errorOf } from './harness.js';
import type { Reply } from './harness.js';
import { startWebApi } from './web-harness.js';
import type { WebApi } from './web-harness.js';

let web: WebApi;
beforeAll(async () => {
  web = await startWebApi();
  await web.put('hello');
});
afterAll(() => web.api.close());

const answerTo = (result: JsonValue): Promise<Reply> => {
  web.result(result);
  return web.call('GET', 'default/hello.http');
};
const typed = (contentType: string, body: JsonValue): JsonObject => ({
  headers: { 'content-type': contentType },
  body,
});
const base64 = (text: string | Buffer): string => Buffer.from(text).toString('base64');

const html = 'text/html; charset=UTF-8';
const png = base64(Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 0xff]));
const field = '{"field":"value"}';
const printed = '{\n  "field": "value"\n}';

describe('bodies and their types', () => {
  test.each<[JsonObject, number, string | undefined, string]>([
    [{}, 204, undefined, ''],
    [{ body: '' }, 204, undefined, ''],
    [{ body: null }, 204, undefined, ''],
    [{ statusCode: 200 }, 200, undefined, ''],
    [{ statusCode: 201, body: '' }, 201, undefined, ''],
    [{ statusCode: 201, ...typed('application/json', '') }, 201, undefined, ''],
    [{ body: 'hello world' }, 200, html, 'hello world'],
    [{ body: 'grüß 日本' }, 200, html, 'grüß 日本'],
    [{ statusCode: 201, body: field }, 201, html, field],
    [{ body: { field: 'value' } }, 200, 'application/json', printed],
    [{ body: {} }, 200, 'application/json', '{\n\n}'],
    [{ body: [1, 2] }, 200, 'application/json', '[1, 2]'],
    [{ body: 3 }, 200, 'application/json', '3'],
    [{ body: 0 }, 200, 'application/json', '0'],
    [{ body: false }, 200, 'application/json', 'false'],
    [typed('application/json', { field: 'value' }), 200, 'application/json', printed],
    [typed('application/json; charset=utf-8', { field: 'value' }), 200, 'application/json', printed],
    [typed('application/json-patch+json', { field: 'value' }), 200, 'application/json-patch+json', printed],
    [typed('application/hal+json', { field: 'value' }), 200, 'application/hal+json', printed],
    [typed('application/json', field), 200, 'application/json', field],
    [typed('application/json', 'hello world'), 200, 'application/json', 'hello world'],
    [typed('application/json', base64(field)), 200, 'application/json', field],
    [typed('application/json-patch+json', base64(field)), 200, 'application/json-patch+json', field],
    [typed('application/hal+json', field), 200, 'application/hal+json', field],
    [typed('text/plain', 'abcd'), 200, 'text/plain; charset=UTF-8', 'abcd'],
    [typed('text/plain;charset=iso-8859-1', 'é'), 200, 'text/plain; charset=UTF-8', 'é'],
    [typed('TEXT/CSS', 'a{}'), 200, 'text/css; charset=UTF-8', 'a{}'],
    [typed('application/javascript', '1'), 200, 'application/javascript; charset=UTF-8', '1'],
    [typed('text/plain; format="a;b"; charset=x', 'a'), 200, 'text/plain; format="a;b"; charset=UTF-8', 'a'],
    [typed('text/event-stream', 'data: 1'), 200, 'text/event-stream', 'data: 1'],
    [typed('application/x-mine; charset=utf-8', 'abc'), 200, 'application/x-mine; charset=UTF-8', 'abc'],
    [typed('image/svg+xml', base64('<svg/>')), 200, 'image/svg+xml', '<svg/>'],
    [typed('application/x-mine', base64('abc')), 200, 'application/x-mine', 'abc'],
    [typed('application/octet-stream', 'YWI'), 200, 'application/octet-stream', 'ab'],
    [{ headers: { 'Content-Type': ['text/css', 'text/html'] }, body: 'a{}' }, 200, 'text/css; charset=UTF-8', 'a{}'],
    [{ body: 'x', code: 500, unknown: true }, 200, html, 'x'],
  ])('%j', async (result, status, contentType, text) => {
    const reply = await answerTo(result);
    expect([reply.status, reply.headers['content-type'], reply.text]).toEqual([status, contentType, text]);
  });

  test('bytes arrive as they are', async () => {
    web.result(typed('image/png', png));
    const reply = await fetch(`${web.api.url}/api/v1/web/alice/default/hello`);
    expect(Buffer.from(await reply.arrayBuffer()).toString('base64')).toBe(png);
    expect(reply.headers.get('content-type')).toBe('image/png');
  });

  const mismatch = 'Response type in header did not match generated content type.';
  const unknown = 'Response did not specify a known content-type.';
  test.each<[JsonObject, string]>([
    [typed('text/html', { field: 'value' }), mismatch],
    [typed('image/png', [1]), mismatch],
    [typed('xyzbar', { field: 'value' }), mismatch],
    [typed('image/png', 'not base64!'), mismatch],
    [typed('image/png', 'AAA=A'), mismatch],
    [typed('image/png', 'A'), mismatch],
    [typed('image/png', 'AA='), mismatch],
    [typed('application/x-mine', 'a text'), mismatch],
    [typed('xyzbar', 'hello world'), unknown],
    [typed('text/', 'hello world'), unknown],
    [typed('text/html; charset', 'hello world'), unknown],
    [typed('', 'hello world'), unknown],
    [{ headers: { 'content-type': 7 }, body: 'hello world' }, unknown],
  ])('%j is refused', async (result, message) => {
    const reply = await answerTo(result);
    expect([reply.status, errorOf(reply)]).toEqual([400, message]);
  });
});

const invalid = [400, "Response is not valid 'message/http'."];

describe('statuses', () => {
  test.each<[JsonValue, number]>([
    [200, 200],
    ['200', 200],
    ['444', 444],
    [444, 444],
    [200.0, 200],
    [302, 302],
    [304, 304],
    [500, 500],
    [599, 599],
  ])('%j', async (statusCode, status) => {
    expect((await answerTo({ statusCode })).status).toBe(status);
  });

  test.each<JsonValue>([
    'xyz',
    '',
    ' 200',
    '2e2',
    '200.0',
    200.5,
    null,
    true,
    [200],
    {},
    0,
    -1,
    99,
    100,
    101,
    1000,
    1e9,
    '1',
  ])('%j is none', async (statusCode) => {
    const reply = await answerTo({ statusCode, body: 'x' });
    expect([reply.status, errorOf(reply)]).toEqual(invalid);
  });

  test.each([204, 304])('with %d the body stays behind', async (statusCode) => {
    const reply = await answerTo({ statusCode, body: 'x', headers: { etag: '"1"' } });
    expect([reply.status, reply.text, reply.headers.etag]).toEqual([statusCode, '', '"1"']);
    expect(reply.headers).not.toHaveProperty('content-length');
    expect(reply.headers).not.toHaveProperty('content-type');
  });
});

describe('headers', () => {
  test('of every sort of value', async () => {
    const headers = {
      location: 'http://openwhisk.org',
      'X-Number': 1.5,
      'x-bool': false,
      'X-Empty': '',
      'x-latin': 'é',
    };
    expect((await answerTo({ statusCode: 302, headers })).headers).toMatchObject({
      location: 'http://openwhisk.org',
      'x-number': '1.5',
      'x-bool': 'false',
      'x-empty': '',
      'x-latin': 'é',
    });
  });

  test('arrays are several headers', async () => {
    const headers = { 'Set-Cookie': ['a=b', ['c=d; Path = /']], 'set-cookie': 'e=f', 'X-None': [] };
    const reply = await answerTo({ headers });
    expect(reply.headers['set-cookie']).toEqual(['a=b', 'c=d; Path = /', 'e=f']);
    expect(reply.headers).not.toHaveProperty('x-none');
  });

  test.each<JsonValue>([null, 'x', [], 1, { a: null }, { a: {} }, { a: ['b', null] }])(
    '%j are none',
    async (headers) => {
      const reply = await answerTo({ headers, body: 'x' });
      expect([reply.status, errorOf(reply)]).toEqual(invalid);
    },
  );

  test.each<JsonObject>([
    { 'x-a': 'b\r\nSet-Cookie: c=d' },
    { 'x-a': 'b\nc' },
    { 'x-a': 'b\rc' },
    { 'x-a': 'b\0c' },
    { 'x-a': ['fine', 'b\r\n\r\n<script>'] },
    { 'x-a\r\nSet-Cookie': 'c=d' },
    { 'x-a: b': 'c' },
    { 'x a': 'b' },
    { '': 'b' },
    { 'x-ä': 'b' },
    { 'x-a': '日本' },
    { 'content-type': 'text/html\r\nx: y' },
    { location: 'http://a/\u0085\u2028\r' },
  ])('%j would split the answer or break it', async (headers) => {
    for (const body of ['x', null]) {
      const reply = await answerTo({ headers, body });
      expect([reply.status, errorOf(reply)]).toEqual(invalid);
      expect(reply.headers).not.toHaveProperty('set-cookie');
    }
  });

  test('those that reach other pages of the server are left out', async () => {
    const reply = await answerTo({ headers: { 'Service-Worker-Allowed': '/', 'x-kept': 'yes' }, body: 'hello' });
    expect(reply.headers).toMatchObject({ 'x-kept': 'yes' });
    expect(reply.headers).not.toHaveProperty('service-worker-allowed');
  });

  test.each([
    ['Clear-Site-Data', '"*"'],
    ['NEL', '{"report_to":"own","max_age":31536000}'],
    ['Report-To', '{"group":"own","max_age":31536000,"endpoints":[{"url":"https://own.example"}]}'],
    ['Alt-Svc', 'h2="own.example:443"; ma=86400; persist=1'],
    ['strict-transport-security', 'max-age=31536000; includeSubDomains'],
  ])('%s, which holds for all of the origin, is left out', async (name, value) => {
    const reply = await answerTo({ headers: { [name]: value, 'x-kept': 'yes', 'Set-Cookie': 'own=1' }, body: 'hello' });
    expect(reply.headers).toMatchObject({ 'x-kept': 'yes' });
    expect(reply.headers).toHaveProperty('set-cookie');
    expect(reply.headers).not.toHaveProperty(name.toLowerCase());
  });

  test('those that frame the message are the server’s', async () => {
    const headers = {
      'Content-Length': '1',
      'transfer-encoding': 'chunked',
      Connection: 'upgrade',
      upgrade: 'x',
      trailer: 'x',
      date: 'never',
      server: 'x',
      'X-Request-ID': 'x',
      'x-openwhisk-activation-id': 'x',
    };
    const whole = await rawAnswer({ headers, body: 'hello' });
    expect(whole).toMatch(/\r\n\r\nhello$/);
    const lines = whole.split('\r\n').map((line) => line.toLowerCase());
    for (const name of Object.keys(headers)) {
      const values = lines.filter((line) => line.startsWith(`${name.toLowerCase()}:`));
      expect([name, values.length <= 1, values.some((line) => line.endsWith(': x'))]).toEqual([name, true, false]);
    }
    expect(lines).toContain('content-length: 5');
  });
});

/** The raw bytes of an answer, read over a connection of its own. */
function rawAnswer(result: JsonValue): Promise<string> {
  web.result(result);
  return new Promise((resolve, reject) => {
    const socket = connect(web.api.port, '127.0.0.1');
    let received = '';
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => (received += chunk));
    socket.on('error', reject);
    socket.on('close', () => resolve(received));
    socket.write('GET /api/v1/web/alice/default/hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  });
}
