import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { alice, bob, errorOf } from './harness.js';
import type { RequestOptions } from './harness.js';
import { startWebApi } from './web-harness.js';
import type { WebApi } from './web-harness.js';

let web: WebApi;
beforeAll(async () => {
  web = await startWebApi();
  const parameters = { x: 'X', empty: null };
  await web.put('plain');
  await web.put('raw', { 'web-export': true, 'raw-http': true });
  await web.put('final', { 'web-export': true, final: true }, parameters);
  await web.put('rawFinal', { 'web-export': true, 'raw-http': true, final: true }, parameters);
  await web.put('rawByWord', { 'web-export': true, 'raw-http': 'true' });
});
afterAll(() => web.api.close());

/** Calls the web action and returns its arguments without method, headers and path. */
async function argumentsOf(path: string, options: RequestOptions = {}, method = 'POST'): Promise<JsonObject> {
  const reply = await web.call(method, `default/${path}`, options);
  expect([reply.status, reply.text]).toEqual([200, expect.anything()]);
  const { __ow_method, __ow_headers, __ow_path, ...rest } = web.arguments();
  expect([__ow_method, typeof __ow_headers, typeof __ow_path]).toEqual([method.toLowerCase(), 'object', 'string']);
  return rest;
}

const typed = (contentType: string, body: string | Buffer): RequestOptions => ({
  body,
  headers: { 'content-type': contentType },
});
const json = (body: JsonValue): RequestOptions => typed('application/json', JSON.stringify(body));
const base64 = (body: string | Buffer): string => Buffer.from(body).toString('base64');
const bytes = Buffer.from([0x89, 0x50, 0, 0xff]);
const object = '{"a":"A","b":[1]}';

describe('bodies', () => {
  test.each<[string, RequestOptions, JsonObject, JsonObject]>([
    ['none', {}, {}, { __ow_body: '' }],
    ['a JSON object', typed('application/json', object), { a: 'A', b: [1] }, { __ow_body: base64(object) }],
    [
      'JSON with a charset',
      typed('application/json; charset=utf-8', object),
      { a: 'A', b: [1] },
      { __ow_body: base64(object) },
    ],
    [
      'JSON by another name',
      typed('application/cloudevents+json', object),
      { a: 'A', b: [1] },
      { __ow_body: base64(object) },
    ],
    ['JSON that is always text', typed('application/problem+json', object), { a: 'A', b: [1] }, { __ow_body: object }],
    ['an empty JSON object', json({}), {}, { __ow_body: base64('{}') }],
    ['no JSON where it is declared', typed('application/json', ''), {}, { __ow_body: '' }],
    ['a JSON array', json([1, 's', false]), { __ow_body: [1, 's', false] }, { __ow_body: base64('[1,"s",false]') }],
    ['an empty JSON array', json([]), { __ow_body: [] }, { __ow_body: base64('[]') }],
    ['a JSON string', json('s'), { __ow_body: 's' }, { __ow_body: base64('"s"') }],
    ['JSON true', json(true), { __ow_body: true }, { __ow_body: base64('true') }],
    ['a JSON number', json(99), { __ow_body: 99 }, { __ow_body: base64('99') }],
    ['JSON null', json(null), { __ow_body: null }, { __ow_body: base64('null') }],
    [
      'a form',
      typed('application/x-www-form-urlencoded', 'f=1+2&g=%C3%A9'),
      { f: '1 2', g: 'é' },
      { __ow_body: 'f=1+2&g=%C3%A9' },
    ],
    [
      'a form with a charset',
      typed('application/x-www-form-urlencoded; charset=UTF-8', 'f=1'),
      { f: '1' },
      { __ow_body: 'f=1' },
    ],
    ['an empty form', typed('application/x-www-form-urlencoded', ''), {}, { __ow_body: '' }],
    ['a text', typed('text/plain', 'grüß'), { __ow_body: 'grüß' }, { __ow_body: 'grüß' }],
    ['HTML', typed('text/html; charset=UTF-8', '1,2,3'), { __ow_body: '1,2,3' }, { __ow_body: '1,2,3' }],
    ['XML', typed('application/xml', '<a/>'), { __ow_body: '<a/>' }, { __ow_body: '<a/>' }],
    ['an empty text', typed('text/plain', ''), { __ow_body: '' }, { __ow_body: '' }],
    ['a picture', typed('image/png', bytes), { __ow_body: base64(bytes) }, { __ow_body: base64(bytes) }],
    ['SVG', typed('image/svg+xml', '<svg/>'), { __ow_body: base64('<svg/>') }, { __ow_body: base64('<svg/>') }],
    ['bytes', typed('application/octet-stream', bytes), { __ow_body: base64(bytes) }, { __ow_body: base64(bytes) }],
    [
      'parts',
      typed('multipart/form-data; boundary=x', '--x--'),
      { __ow_body: base64('--x--') },
      { __ow_body: base64('--x--') },
    ],
    [
      'a type that nobody knows',
      typed('application/x-mine', 'abc'),
      { __ow_body: base64('abc') },
      { __ow_body: base64('abc') },
    ],
    [
      'such a type with a charset',
      typed('application/x-mine; charset=utf-8', 'abc'),
      { __ow_body: 'abc' },
      { __ow_body: 'abc' },
    ],
    ['what is no type', typed('nonsense', 'abc'), { __ow_body: base64('abc') }, { __ow_body: base64('abc') }],
  ])('%s', async (_, options, plain, raw) => {
    expect(await argumentsOf('plain.json', options)).toEqual(plain);
    expect(await argumentsOf('raw.json', options)).toEqual({ __ow_query: '', ...raw });
  });

  test.each(['GET', 'DELETE', 'PUT', 'PATCH'])('of %s', async (method) => {
    // Node's client sends no Content-Length with GET and DELETE by itself.
    const headers = { 'content-type': 'application/json', 'content-length': '7' };
    expect(await argumentsOf('plain.json', { body: '{"a":1}', headers }, method)).toEqual({ a: 1 });
  });

  test('in pieces, of no declared length', async () => {
    expect(await argumentsOf('plain.json', { chunks: ['{"a":', '1}'] })).toEqual({ a: 1 });
  });

  test('raw is raw only where the annotation is true itself', async () => {
    expect(await argumentsOf('rawByWord.json?a=b', json({ c: 'd' }))).toEqual({ a: 'b', c: 'd' });
  });
});

describe('queries', () => {
  test.each<[string, JsonObject]>([
    ['a=b&c=d', { a: 'b', c: 'd' }],
    ['a=b&a=c', { a: 'c' }],
    ['a&b=', { a: '', b: '' }],
    ['a=x+y%20z%26', { a: 'x y z&' }],
    ['name=%E6%97%A5%E6%9C%AC', { name: '日本' }],
    ['', {}],
  ])('?%s', async (query, expected) => {
    expect(await argumentsOf(`plain.json?${query}`)).toEqual(expected);
    expect(await argumentsOf(`raw.json?${query}`)).toEqual({ __ow_query: query, __ow_body: '' });
  });

  test('the body wins over the query, the query over the action', async () => {
    await web.put('both', { 'web-export': true }, { a: 'action', b: 'action', c: 'action' });
    expect(await argumentsOf('both.json?a=query&b=query', json({ a: 'body' }))).toEqual({ a: 'body', b: 'query' });
    const { action } = web.api.invocations.at(-1) ?? {};
    expect(action?.parameters.map(({ key }) => key)).toEqual(['a', 'b', 'c']);
  });

  test('a key that objects inherit is a key like others', async () => {
    const sent = await argumentsOf('plain.json?__proto__=q&constructor=c', typed('application/json', '{"toString":1}'));
    expect(Object.entries(sent)).toEqual(
      expect.arrayContaining([
        ['__proto__', 'q'],
        ['constructor', 'c'],
        ['toString', 1],
      ]),
    );
  });
});

describe('headers', () => {
  const headersOf = async (options: RequestOptions): Promise<JsonObject> => {
    await web.call('POST', 'default/plain.json', options);
    return web.arguments().__ow_headers as JsonObject;
  };

  test('have lower-case names', async () => {
    expect(await headersOf({ headers: { 'X-Custom': 'Value', 'User-Agent': 'me' } })).toMatchObject({
      'x-custom': 'Value',
      'user-agent': 'me',
    });
  });

  test('have a content-type only if one was sent', async () => {
    expect(await headersOf({})).not.toHaveProperty('content-type');
    expect(await headersOf(json({}))).toMatchObject({ 'content-type': 'application/json' });
    const withCharset = typed('application/json; charset=ISO-8859-1', '{}');
    expect(await headersOf(withCharset)).toMatchObject({ 'content-type': 'application/json' });
    expect(await headersOf(typed('text/html; charset=UTF-8', ''))).toMatchObject({
      'content-type': 'text/html; charset=UTF-8',
    });
  });
});

describe('the caller', () => {
  test('is known by valid credentials only', async () => {
    expect(await argumentsOf('plain.json', { as: alice })).toEqual({ __ow_user: 'alice' });
    expect(await argumentsOf('plain.json', { as: bob })).toEqual({ __ow_user: 'bob' });
    expect(await argumentsOf('plain.json')).toEqual({});
    for (const authorization of ['Basic nonsense', 'Bearer x', `Basic ${base64(`x:${'k'.repeat(64)}`)}`]) {
      expect(await argumentsOf('plain.json', { headers: { authorization } })).toEqual({});
    }
  });
});

describe('keys that a request may not choose', () => {
  const refused = 'Request defines parameters that are not allowed (e.g., reserved properties).';
  const reserved = ['__ow_method', '__ow_headers', '__ow_path', '__ow_user', '__ow_query', '__ow_body'];

  test.each<[string, string, RequestOptions]>([
    ...reserved.map((key): [string, string, RequestOptions] => [key, `plain.json?${key}=Y`, {}]),
    ...reserved.map((key): [string, string, RequestOptions] => [key, 'plain.json', json({ [key]: 'Y' })]),
    ['a form’s', 'plain.json', typed('application/x-www-form-urlencoded', '__ow_user=me')],
    ['a final parameter', 'final.json?x=Y', {}],
    ['a final parameter', 'final.json', json({ x: 'Y' })],
    ['a final parameter', 'final.http/path?x=Y', json({ empty: 'Y' })],
  ])('%s (%s)', async (_, path, options) => {
    const before = web.api.invocations.length;
    const reply = await web.call('POST', `default/${path}`, options);
    expect([reply.status, errorOf(reply)]).toEqual([400, refused]);
    expect(reply.headers['access-control-allow-origin']).toBe('*');
    expect(web.api.invocations).toHaveLength(before);
  });

  test('a final parameter without a value may be given one', async () => {
    expect(await argumentsOf('final.json?empty=Y')).toEqual({ empty: 'Y' });
  });

  test('raw actions read them where they cannot override', async () => {
    const query = 'x=overridden&__ow_user=me';
    expect(await argumentsOf(`rawFinal.json?${query}`)).toEqual({ __ow_query: query, __ow_body: '' });
    const body = { x: 'overridden', __ow_path: 'mine' };
    expect(await argumentsOf('rawFinal.json', json(body))).toEqual({
      __ow_query: '',
      __ow_body: base64(JSON.stringify(body)),
    });
  });
});

describe('bodies that are refused', () => {
  test('what is no JSON', async () => {
    const reply = await web.call('POST', 'default/plain.json', typed('application/json', '{"a":'));
    expect([reply.status, errorOf(reply)]).toEqual([
      400,
      expect.stringMatching(/^The request content was malformed:\n/),
    ]);
    expect(await argumentsOf('raw.json', typed('application/json', '{"a":'))).toMatchObject({
      __ow_body: base64('{"a":'),
    });
  });

  test('what nests too deeply', async () => {
    const nested = '['.repeat(5000) + ']'.repeat(5000);
    expect((await web.call('POST', 'default/plain.json', typed('application/json', nested))).status).toBe(400);
  });

  test('over a megabyte, declared or not', async () => {
    const text = 'a'.repeat(1024 * 1024 + 1);
    const declared = await web.call('POST', 'default/plain.json', typed('text/plain', text));
    expect([declared.status, errorOf(declared)]).toEqual([
      413,
      'Request larger than allowed: 1048577 > 1048576 bytes. (setting: limits.maxPayloadBytes)',
    ]);
    const pieces = await web.call('POST', 'default/raw.http', { chunks: [text] });
    expect([pieces.status, errorOf(pieces)]).toEqual([413, expect.stringContaining('larger than allowed')]);
    expect(await argumentsOf('plain.json', typed('text/plain', text.slice(1)))).toEqual({ __ow_body: text.slice(1) });
  });

  test("over the namespace's own limit", async () => {
    const small = await startWebApi();
    await small.api.store.put('subjects', { _id: 'alice/limits', maxPayloadSize: '1 KB' });
    await small.put('plain');
    const reply = await small.call('POST', 'default/plain.json', typed('text/plain', 'a'.repeat(1025)));
    expect([reply.status, errorOf(reply)]).toEqual([
      413,
      'Request larger than allowed: 1025 > 1024 bytes. (limit of the namespace: maxPayloadSize)',
    ]);
    await small.api.close();
  });
});
