import { expect } from '@jest/globals';
import type { Reply, RequestOptions } from '../caller.js';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { echo } from '../functions.js';
import { refused } from '../trial.js';
import type { Trial } from '../trial.js';

type Annotations = Record<string, string | number | boolean>;
type Fields = Record<string, unknown>;

/** A web action and a function that calls a path below its name; by default without credentials. */
interface Site {
  path: string;
  call: (method: string, rest: string, options?: RequestOptions) => Promise<Reply<Fields>>;
}

export async function site(t: Trial, code: string, annotations: Annotations = {}): Promise<Site> {
  const name = await t.action(code, { annotations: { 'web-export': true, final: true, ...annotations } });
  const path = `/api/v1/web/${t.namespace}/default/${name}`;
  return {
    path,
    call: (method, rest, options) => t.user.send(method, path + rest, { authenticated: false, ...options }),
  };
}

const text = (type: string, body: string): RequestOptions => ({ body, headers: { 'content-type': type } });

const methods = 'OPTIONS, GET, DELETE, POST, PUT, HEAD, PATCH';
const headersOfApi = 'Authorization, Origin, X-Requested-With, Content-Type, Accept, User-Agent';
const ownCors = `function main() {
  return { statusCode: 200, headers: {
    'Access-Control-Allow-Origin': 'origin of the action', 'Access-Control-Allow-Methods': 'methods of the action',
    'Access-Control-Allow-Headers': 'headers of the action', Location: 'openwhisk.org', 'Set-Cookie': 'cookie' } };
}`;

const calls: Row[] = [
  {
    fact: 'content-type is among the headers only where it is sent',
    stands: 'WskWebActionsTests: ensure __ow_headers contains the proper content-type',
    run: async (t) => {
      const { call } = await site(t, echo);
      const sent = await call('POST', '.json', { body: { key: 'value' } });
      expect([sent.status, sent.headers['content-type']]).toEqual([200, 'application/json']);
      expect(sent.body).toMatchObject({ key: 'value', __ow_headers: { 'content-type': 'application/json' } });
      const { status, headers, body } = await call('GET', '.json');
      expect([status, headers['content-type']]).toEqual([200, 'application/json']);
      expect(body.__ow_headers).not.toHaveProperty('content-type');
    },
  },
  {
    fact: 'a URL of 8 KiB is taken, one longer is 414',
    stands: 'WskWebActionsTests: create a web action accessible via HTTPS',
    source: 'ansible/roles/nginx/templates/nginx.conf.j2',
    run: async (t) => {
      const { path, call } = await site(t, echo);
      const room = 8192 - (t.user.url + path).length - '.json/a?a='.length;
      for (const value of ['A', 'A'.repeat(room)])
        expect((await call('GET', `.json/a?a=${value}`)).body).toMatchObject({ a: value, __ow_path: '/a' });
      const tooLong = await call('GET', `.json/a?a=${'A'.repeat(room + 100)}`);
      expect([tooLong.status, tooLong.text.includes('414 Request-URI Too Large')]).toEqual([414, true]);
    },
  },
  {
    fact: 'require-whisk-auth true wants an identity, which the function is told',
    stands: 'WskWebActionsTests: create a web action requiring authentication accessible via HTTPS',
    run: async (t) => {
      const { call } = await site(t, echo, { 'require-whisk-auth': true });
      expect((await call('GET', '.json')).status).toBe(401);
      const let_in = await call('GET', '.json', { authenticated: true });
      expect([let_in.status, let_in.body.__ow_user]).toEqual([200, t.namespace]);
    },
  },
  {
    fact: 'require-whisk-auth false wants none',
    stands: 'WskWebActionsTests: create a web action not requiring authentication accessible via HTTPS',
    run: async (t) => {
      const { call } = await site(t, echo, { 'require-whisk-auth': false });
      expect((await call('GET', '.json')).status).toBe(200);
    },
  },
  {
    fact: 'require-whisk-auth of another value wants it in X-Require-Whisk-Auth',
    run: async (t) => {
      const { call } = await site(t, echo, { 'require-whisk-auth': 'secret' });
      const statuses = [];
      for (const given of ['secret', 'wrong'])
        statuses.push((await call('GET', '.json', { headers: { 'x-require-whisk-auth': given } })).status);
      expect([...statuses, (await call('GET', '.json')).status]).toEqual([200, 401, 401]);
    },
  },
  {
    fact: 'without web-export there is nothing: 404',
    run: async (t) => {
      const { call } = await site(t, echo, { 'web-export': false });
      refused(await call('GET', '.json'), 404, 'The requested resource does not exist.');
    },
  },
  {
    fact: 'web-custom-options: the function answers OPTIONS, CORS headers too',
    stands: 'WskWebActionsTests: ensure that CORS header is preserved for custom options',
    run: async (t) => {
      const { call } = await site(t, ownCors, { 'web-custom-options': true });
      const { status, headers } = await call('OPTIONS', '.http');
      expect({ status, headers }).toMatchObject({
        status: 200,
        headers: {
          'access-control-allow-origin': 'origin of the action',
          'access-control-allow-methods': 'methods of the action',
          'access-control-allow-headers': 'headers of the action',
          location: 'openwhisk.org',
          'set-cookie': ['cookie'],
        },
      });
    },
  },
  {
    fact: "else CORS headers are the platform's, which lets in the headers that a browser asks for",
    stands: 'WskWebActionsTests: ensure that default CORS header is preserved',
    run: async (t) => {
      const { call } = await site(t, ownCors);
      for (const [asked, allowed] of [
        [{ 'access-control-request-headers': 'x-custom-header' }, 'x-custom-header'],
        [{}, headersOfApi],
      ] as const)
        for (const [method, rest] of [
          ['OPTIONS', '.http'],
          ['GET', '.json'],
        ] as const) {
          const { status, headers } = await call(method, rest, { headers: { ...asked } as Record<string, string> });
          expect({ status, headers }).toMatchObject({
            status: 200,
            headers: {
              'access-control-allow-origin': '*',
              'access-control-allow-methods': methods,
              'access-control-allow-headers': allowed,
            },
          });
          expect([headers.location, headers['set-cookie']]).toEqual([undefined, undefined]);
        }
    },
  },
  {
    fact: 'a text is the body as it is',
    stands: 'WskWebActionsTests: invoke web action to ensure the returned body argument is correct',
    run: async (t) => {
      const { call } = await site(t, echo);
      for (const body of ['key=value', 'This is the body'])
        expect((await call('POST', '.json', text('text/html', body))).body.__ow_body).toBe(body);
    },
  },
  {
    fact: 'a form is fields; a JSON object is, over the query; a JSON array is the body; bytes are base64',
    run: async (t) => {
      const { call } = await site(t, echo);
      const form = await call('POST', '.json', text('application/x-www-form-urlencoded', 'a=1&b=2'));
      expect(form.body).toMatchObject({ a: '1', b: '2' });
      expect((await call('POST', '.json?a=1&b=1', { body: { b: 2 } })).body).toMatchObject({ a: '1', b: 2 });
      expect((await call('POST', '.json', { body: [1] })).body.__ow_body).toEqual([1]);
      const bytes = { body: Buffer.from([0, 255]), headers: { 'content-type': 'application/octet-stream' } };
      expect((await call('POST', '.json', bytes)).body.__ow_body).toBe('AP8=');
    },
  },
  {
    fact: 'raw-http: query and body as they came',
    run: async (t) => {
      const { call } = await site(t, echo, { 'raw-http': true });
      const { body } = await call('POST', '.json/x/y?a=1', { body: { b: 2 } });
      expect(body).toMatchObject({ __ow_query: 'a=1', __ow_method: 'post', __ow_path: '/x/y' });
      expect(Buffer.from(String(body.__ow_body), 'base64').toString()).toBe('{"b":2}');
      expect((await call('GET', '.json')).body).toMatchObject({ __ow_body: '', __ow_query: '' });
      expect((await call('POST', '.json', text('text/plain', 'as it is'))).body.__ow_body).toBe('as it is');
    },
  },
  {
    fact: 'fields of the platform, and final ones, are not given by callers: 400',
    run: async (t) => {
      const { call } = await site(t, echo);
      const forbidden = 'Request defines parameters that are not allowed (e.g., reserved properties).';
      refused(await call('GET', '.json?__ow_method=x'), 400, forbidden);
      refused(await call('POST', '.json', { body: { __ow_user: 'x' } }), 400, forbidden);
    },
  },
  {
    fact: 'a body of more than 1 MiB: 413',
    run: async (t) => {
      const { call } = await site(t, echo);
      expect((await call('POST', '.json', { body: { a: 'x'.repeat(1_048_577) } })).status).toBe(413);
    },
  },
  {
    fact: 'HEAD has headers and no body',
    stands: 'WskWebActionsTests: create a web action making a HEAD request',
    run: async (t) => {
      const code = "function main(args) { return { statusCode: 200, headers: { 'Request-type': args.__ow_method } }; }";
      const { call } = await site(t, code);
      const { status, text: body, headers } = await call('HEAD', '', { authenticated: true });
      expect([status, body, headers['request-type']]).toEqual([200, '', 'head']);
    },
  },
  {
    fact: 'a namespace may have a host of its own',
    needs: 'vanityDomain',
    stands: [
      'WskWebActionsTests: test subdomain should have conforming parts',
      'WskWebActionsTests: access a web action via namespace subdomain',
    ],
    source: 'ansible/roles/nginx/templates/nginx.conf.j2',
    run: async (t) => {
      const { path } = await site(t, echo);
      const name = path.split('/').at(-1);
      const host = `${t.namespace}.${t.host.vanityDomain}`;
      expect(t.namespace).toMatch(/^[A-Za-z0-9-]{1,63}$/);
      const reply = await t.user.send('GET', `/default/${name}.json/a?a=A`, {
        authenticated: false,
        headers: { host },
      });
      expect([reply.status, reply.body]).toEqual([200, expect.objectContaining({ a: 'A', __ow_path: '/a' })]);
    },
  },
];

/** Sheet 5: arguments of web actions, and access to web actions. */
export const webActionCases = table('web actions', 'core/controller/.../core/controller/WebActions.scala', calls);
