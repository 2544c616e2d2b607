import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { echo, sleep } from '../functions.js';
import { refused } from '../trial.js';
import { site } from './web-actions.js';

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=';

const returning = (result: unknown): string => `function main() { return ${JSON.stringify(result)}; }`;

interface Answer {
  status: number;
  type?: string | undefined;
  text: string;
}

/** The answer that an extension makes of a function's result. */
function mapped(fact: string, extension: string, result: unknown, expected: Partial<Answer>): Row {
  return {
    fact,
    run: async (t) => {
      const { call } = await site(t, returning(result));
      const { status, headers, text } = await call('GET', extension);
      expect({ status, type: headers['content-type'], text }).toMatchObject(expected);
    },
  };
}

/** A result that an extension refuses. */
function refusal(fact: string, extension: string, result: unknown, status: number, message: string): Row {
  return {
    fact,
    run: async (t) => refused(await (await site(t, returning(result))).call('GET', extension), status, message),
  };
}

const notHttp = "Response is not valid 'message/http'.";
const html = 'text/html; charset=UTF-8';

const http: Row[] = [
  {
    fact: 'an Accept that the answer is not of: 406 with its type',
    stands: 'WskWebActionsTests: reject invocation of web action with invalid accept header',
    run: async (t) => {
      const { call } = await site(t, returning({ headers: { 'Content-Type': 'text/html' }, body: 'plain text' }));
      const reply = await call('GET', '.http', { headers: { accept: 'application/json' } });
      refused(reply, 406, /^Resource representation is only available with these types:\ntext\/html/);
    },
  },
  {
    fact: 'an array of values is a header several times',
    stands: 'WskWebActionsTests: support multiple response header values',
    run: async (t) => {
      const result = { statusCode: 200, headers: { 'Set-Cookie': ['a=b', 'c=d'] } };
      const { call } = await site(t, returning(result), { 'web-custom-options': true });
      const { status, headers } = await call('OPTIONS', '.http');
      expect([status, headers['set-cookie']]).toEqual([200, ['a=b', 'c=d']]);
    },
  },
  {
    fact: 'JSON as a text, declared JSON',
    stands: 'WskWebActionsTests: handle http web action returning JSON as string',
    run: async (t) => {
      const result = {
        statusCode: 200,
        headers: { 'content-type': 'application/json' },
        body: '{"status": "success"}',
      };
      const { call } = await site(t, returning(result), { 'raw-http': true });
      const { status, headers, body } = await call('GET', '.http');
      expect([status, headers['content-type'], body]).toEqual([200, 'application/json', { status: 'success' }]);
    },
  },
  {
    fact: 'bytes as base64, declared binary',
    stands: 'WskWebActionsTests: handle http web action with base64 encoded binary response',
    run: async (t) => {
      const { call } = await site(t, returning({ headers: { 'Content-Type': 'image/png' }, body: png }));
      const { status, headers, bytes } = await call('GET', '.http');
      expect([status, headers['content-type'], bytes.toString('base64')]).toEqual([200, 'image/png', png]);
    },
  },
  mapped('nothing: 204', '.http', {}, { status: 204, type: undefined, text: '' }),
  mapped('an empty body: 204', '.http', { body: '' }, { status: 204, text: '' }),
  mapped('a text without a type is HTML', '.http', { body: '<p>' }, { status: 200, type: html, text: '<p>' }),
  mapped('without an extension the same', '', { body: '<p>' }, { status: 200, type: html, text: '<p>' }),
  mapped('any other JSON is JSON', '.http', { body: { a: 1 } }, { status: 200, type: 'application/json' }),
  mapped('a status may be a text', '.http', { statusCode: '201', body: 'x' }, { status: 201 }),
  mapped(
    'an error has a status of its own',
    '.http',
    { error: { statusCode: 418, body: 'tea' } },
    { status: 418, text: 'tea' },
  ),
  refusal('a status that is none: 400', '.http', { statusCode: 'teapot' }, 400, notHttp),
  refusal('headers that are none: 400', '.http', { headers: 1 }, 400, notHttp),
  refusal(
    'a type that is none: 400',
    '.http',
    { headers: { 'content-type': 'nonsense' }, body: 'x' },
    400,
    'Response did not specify a known content-type.',
  ),
  refusal(
    'a binary type and no base64: 400',
    '.http',
    { headers: { 'content-type': 'image/png' }, body: 'no base64!' },
    400,
    'Response type in header did not match generated content type.',
  ),
];

const others: Row[] = [
  mapped('.json: an object', '.json', { a: 1 }, { status: 200, type: 'application/json', text: '{\n  "a": 1\n}' }),
  mapped('.json: an array', '.json', [1], { status: 200, type: 'application/json' }),
  mapped('.html: the field body, then html', '.html', { html: '<p>' }, { status: 200, type: html, text: '<p>' }),
  mapped('.svg: the field body, then svg', '.svg', { svg: '<svg/>' }, { status: 200, text: '<svg/>' }),
  mapped('.text: the field body, then text', '.text', { text: 'x' }, { status: 200, text: 'x' }),
  mapped('.text: JSON is pretty', '.text', { text: { a: 1 } }, { status: 200, text: '{\n  "a": 1\n}' }),
  refusal('.text without either: 404', '.text', { a: 1 }, 404, 'Response does not include requested property.'),
  refusal('.html that is no text: 400', '.html', { html: 1 }, 400, "Response is not valid 'text/html'."),
  {
    fact: 'a function that fails otherwise: 400',
    run: async (t) => {
      const { call } = await site(t, "function main() { throw 'x'; }");
      refused(await call('GET', '.json'), 400, 'There was an error processing your request.');
    },
  },
  {
    fact: 'POST, PUT, PATCH and DELETE are methods',
    run: async (t) => {
      const { call } = await site(t, echo);
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
        expect((await call(method, '.json')).body.__ow_method).toBe(method.toLowerCase());
    },
  },
  {
    fact: 'an activation that runs over its time: 400',
    run: async (t) => {
      const name = await t.action(sleep, { limits: { timeout: 200 }, annotations: { 'web-export': true } });
      const path = `/api/v1/web/${t.namespace}/default/${name}.json?sleepMs=5000`;
      refused(
        await t.user.send('GET', path, { authenticated: false }),
        400,
        'There was an error processing your request.',
      );
    },
  },
];

/** Sheet 5: answers made of results. */
export const webAnswerCases = table('web answers', 'core/controller/.../core/controller/WebActions.scala', [
  ...http,
  ...others,
]);
