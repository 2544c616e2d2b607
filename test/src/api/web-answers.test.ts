import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { JsonValue } from '@gpuwhisk/common/json';
import { errorOf } from './harness.js';
import type { Reply } from './harness.js';
import { activationId, startWebApi } from './web-harness.js';
import type { WebApi } from './web-harness.js';

let web: WebApi;
beforeAll(async () => {
  web = await startWebApi();
  await web.put('hello');
});
afterAll(() => web.api.close());
beforeEach(() => web.result(undefined));

const get = (extension: string, accept?: string): Promise<Reply> =>
  web.call('GET', `default/hello.${extension}`, accept === undefined ? {} : { headers: { accept } });

const invalid = (type: string): [number, string] => [400, `Response is not valid '${type}'.`];
const noProperty: [number, string] = [404, 'Response does not include requested property.'];

/** Expected status, and the expected text of the body or of its error. */
type Expected = [number, string, string?];

const html = 'text/html; charset=UTF-8';
const svg = 'image/svg+xml';
const text = 'text/plain; charset=UTF-8';
const json = 'application/json';

describe('results by extension', () => {
  test.each<[string, JsonValue, Expected]>([
    ['json', { foobar: 'foobar' }, [200, '{\n  "foobar": "foobar"\n}', json]],
    [
      'json',
      { a: { b: [1, { c: null }], d: [] }, é: '"' },
      [200, '{\n  "a": {\n    "b": [1, {\n      "c": null\n    }],\n    "d": []\n  },\n  "é": "\\""\n}', json],
    ],
    ['json', {}, [200, '{\n\n}', json]],
    ['json', [1, 'a'], [200, '[1, "a"]', json]],
    ['json', { statusCode: 404, body: 'x' }, [200, '{\n  "statusCode": 404,\n  "body": "x"\n}', json]],
    ['html', { html: '<p>hi</p>' }, [200, '<p>hi</p>', html]],
    ['html', { body: '<b/>', html: '<p/>' }, [200, '<b/>', html]],
    ['html', { body: '' }, [200, '', html]],
    ['html', { html: '<p>grüß</p>' }, [200, '<p>grüß</p>', html]],
    ['html', { body: null, html: '<p/>' }, invalid('text/html')],
    ['html', { html: 1 }, invalid('text/html')],
    ['html', { text: 'hi' }, invalid('text/html')],
    ['html', ['<p/>'], invalid('text/html')],
    ['svg', { svg: '<svg/>' }, [200, '<svg/>', svg]],
    ['svg', { body: '<svg/>', svg: 1 }, [200, '<svg/>', svg]],
    ['svg', { html: '<p/>' }, invalid('image/svg+xml')],
    ['text', { text: 'default text' }, [200, 'default text', text]],
    ['text', { body: 'b', text: 't' }, [200, 'b', text]],
    ['text', { body: { a: 'A' } }, [200, '{\n  "a": "A"\n}', text]],
    ['text', { body: ['a'] }, [200, '["a"]', text]],
    ['text', { body: true }, [200, 'true', text]],
    ['text', { body: 1 }, [200, '1', text]],
    ['text', { body: null }, [200, 'null', text]],
    ['text', { body: '' }, [200, '', text]],
    ['text', [1], [200, '[1]', text]],
    ['text', { html: '<p/>' }, noProperty],
    ['http', [1], invalid('message/http')],
  ])('.%s of %j', async (extension, result, [status, body, contentType]) => {
    web.result(result);
    const reply = await get(extension);
    expect(reply.status).toBe(status);
    expect(reply.headers).toMatchObject({
      'content-type': contentType ?? 'application/json',
      'x-openwhisk-activation-id': activationId,
      'access-control-allow-origin': '*',
    });
    expect(contentType === undefined ? errorOf(reply) : reply.text).toBe(body);
    if (contentType === undefined) expect(reply.text.split('\n')).toHaveLength(4);
  });
});

describe('application errors are mapped as results are', () => {
  test.each<[string, JsonValue, Expected]>([
    ['http', { statusCode: 200, body: 'no hello for you' }, [200, 'no hello for you', html]],
    ['http', { statusCode: 404, headers: { 'content-type': 'text/plain' }, body: 'gone' }, [404, 'gone', text]],
    ['http', 'a word', invalid('message/http')],
    ['json', { reason: 1 }, [200, '{\n  "reason": 1\n}', json]],
    ['json', 'bad response type', invalid('application/json')],
    ['html', '<p>no</p>', [200, '<p>no</p>', html]],
    ['text', 'a word', [200, 'a word', text]],
    ['text', { body: 'b' }, [200, 'b', text]],
    ['svg', {}, invalid('image/svg+xml')],
  ])('.%s of %j', async (extension, error, [status, body, contentType]) => {
    web.result({ error }, 1);
    const reply = await get(extension);
    expect([reply.status, reply.headers['content-type']]).toEqual([status, contentType ?? json]);
    expect(contentType === undefined ? errorOf(reply) : reply.text).toBe(body);
  });
});

test.each(['http', 'json', 'text', 'html', 'svg'])(
  'developer and platform errors show nothing of themselves (.%s)',
  async (extension) => {
    for (const code of [2, 3] as const) {
      web.result({ error: 'a stack trace' }, code);
      const reply = await get(extension);
      expect([reply.status, errorOf(reply)]).toEqual([400, 'There was an error processing your request.']);
      expect(reply.headers['x-openwhisk-activation-id']).toBe(activationId);
      expect(reply.text).not.toContain('stack');
    }
  },
);

test('what is not done in time is a 202', async () => {
  const slow = await startWebApi();
  await slow.put('hello');
  const id = 'd'.repeat(32);
  slow.api.onInvoke(() => ({ type: 'accepted', activationId: id }));
  for (const extension of ['http', 'json', 'html']) {
    const reply = await slow.call('GET', `default/hello.${extension}`);
    expect([reply.status, errorOf(reply)]).toEqual([202, 'Response not yet ready.']);
    expect(reply.headers['x-openwhisk-activation-id']).toBe(id);
    expect(reply.json).toEqual({ error: 'Response not yet ready.', code: reply.headers['x-request-id'] });
  }
  await slow.api.close();
});

describe('content that the client does not take', () => {
  test.each<[string, string, JsonValue, string]>([
    ['http', 'application/json', { body: 'Plain text' }, html],
    ['http', 'text/plain', { body: { a: 1 } }, json],
    ['http', 'image/*;q=0, text/html', { headers: { 'content-type': 'image/png' }, body: 'AAAA' }, 'image/png'],
    ['html', 'text/xml', { html: '<p/>' }, html],
    ['html', '*/*, text/html;q=0', { html: '<p/>' }, html],
    ['json', 'text/html', {}, json],
    ['svg', 'image/png', { svg: '<svg/>' }, svg],
    ['text', 'application/json', { text: 't' }, text],
  ])('.%s as %s', async (extension, accept, result, offered) => {
    web.result(result);
    const before = web.api.invocations.length;
    const reply = await get(extension, accept);
    const message = `Resource representation is only available with these types:\n${offered}`;
    expect([reply.status, errorOf(reply)]).toEqual([406, message]);
    expect(web.api.invocations).toHaveLength(before + 1);
  });

  test.each<[string, string, JsonValue]>([
    ['html', 'text/html', { html: '<p/>' }],
    ['html', 'text/*;q=0.5', { html: '<p/>' }],
    ['html', 'text/xml, */*;q=0.1', { html: '<p/>' }],
    ['html', 'TEXT/HTML', { html: '<p/>' }],
    ['http', 'image/png', { headers: { 'content-type': 'image/png' }, body: 'AAAA' }],
    ['http', 'image/*', { headers: { 'content-type': 'image/png' }, body: 'AAAA' }],
    ['json', 'application/json;q=0.9', {}],
  ])('.%s as %s is taken', async (extension, accept, result) => {
    web.result(result);
    expect((await get(extension, accept)).status).toBe(200);
  });

  test('an answer without a body suits everybody', async () => {
    for (const result of ['{}', '{"body":""}', '{"body":null}', '{"headers":{"location":"x"}}']) {
      web.result(JSON.parse(result) as JsonValue);
      expect((await get('http', 'application/json')).status).toBe(204);
    }
  });

  test('errors are told in JSON all the same', async () => {
    const reply = await web.call('GET', 'default/nothing.http', { headers: { accept: 'text/html' } });
    expect([reply.status, reply.headers['content-type']]).toEqual([404, json]);
  });
});

test('HEAD is answered as GET would be, without the body', async () => {
  web.result({ headers: { location: 'http://openwhisk.org' }, body: 'hello' });
  const reply = await web.call('HEAD', 'default/hello.http');
  expect([reply.status, reply.text]).toEqual([200, '']);
  expect(reply.headers).toMatchObject({
    location: 'http://openwhisk.org',
    'content-length': '5',
    'content-type': html,
  });
});
