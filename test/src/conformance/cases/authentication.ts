import { expect } from '@jest/globals';
import type { Reply } from '../caller.js';
import { Caller } from '../caller.js';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { refused } from '../trial.js';

const controller = 'core/controller/.../core/controller';
const framing = 'common/scala/.../http/BasicHttpService.scala';
const cors = 'common/scala/.../http/CorsSettings.scala';

const missing = 'The resource requires authentication, which was not supplied with the request';
const wrong = 'The supplied authentication is invalid';

function challenged(reply: Reply, message: string): void {
  refused(reply, 401, message);
  expect(reply.headers['www-authenticate']).toBe('Basic realm="OpenWhisk secure realm",charset=UTF-8');
  expect(reply.headers['access-control-allow-origin']).toBeUndefined();
}

const anonymous = { authenticated: false } as const;

const authentication: Row[] = [
  {
    fact: 'no credentials: 401 with a challenge',
    run: async ({ user }) => challenged(await user.send('GET', '/api/v1/namespaces', anonymous), missing),
  },
  {
    fact: 'a wrong key: 401 with a challenge',
    stands: 'WskRestBasicTests: reject unauthenticated access',
    run: async ({ user }) => {
      const stranger = new Caller(user.url, `${user.auth.split(':')[0]}:${'x'.repeat(64)}`, '_');
      challenged(await stranger.send('GET', '/api/v1/namespaces'), wrong);
    },
  },
  {
    fact: 'credentials that are none count as wrong',
    run: async ({ user }) =>
      challenged(await user.send('GET', '/api/v1/namespaces', { headers: { authorization: 'Basic xxx' } }), wrong),
  },
  {
    fact: 'a key that is not 64 characters counts as wrong',
    run: async ({ user }) =>
      challenged(await new Caller(user.url, `${user.auth}x`, '_').send('GET', '/api/v1/namespaces'), wrong),
  },
  {
    fact: 'authentication precedes routing: an unknown path is 401 without credentials, 404 with them',
    source: `${controller}/RestAPIs.scala`,
    run: async ({ user }) => {
      challenged(await user.send('GET', '/api/v1/nowhere', anonymous), missing);
      refused(await user.send('GET', '/api/v1/nowhere'), 404, 'The requested resource could not be found.');
    },
  },
  {
    fact: '_ is the own namespace, which is one',
    stands: 'WskRestBasicTests: return a list of exactly one namespace',
    source: `${controller}/Namespaces.scala`,
    run: async ({ user, namespace }) => {
      for (const path of ['/api/v1/namespaces', '/api/v1/namespaces/']) {
        const { status, body } = await user.send('GET', path);
        expect({ status, body }).toEqual({ status: 200, body: [namespace] });
      }
      const [own, named] = [await user.api('GET', '_/actions'), await user.api('GET', `${namespace}/actions`)];
      expect([own.status, named.status]).toEqual([200, 200]);
    },
  },
  {
    fact: "another's namespace is refused before it is looked for",
    source: 'core/controller/.../core/entitlement/Entitlement.scala',
    run: async ({ user, other }) => {
      for (const ns of [other.namespace, 'no-such-namespace']) {
        const reply = await user.api('GET', `${ns}/actions/missing`);
        refused(reply, 403, `The supplied authentication is not authorized to access '${ns}/missing'.`);
      }
    },
  },
  {
    fact: 'the limits of a namespace, by GET alone',
    source: `${controller}/Limits.scala`,
    run: async ({ user }) => {
      const { status, body } = await user.api('GET', '_/limits');
      expect(status).toBe(200);
      for (const field of ['invocationsPerMinute', 'concurrentInvocations', 'firesPerMinute', 'minActionMemory']) {
        expect(body[field]).toEqual(expect.any(Number));
      }
      expect((await user.api('PUT', '_/limits', {})).status).toBe(405);
    },
  },
];

const corsOfApi = {
  'access-control-allow-origin': '*',
  'access-control-allow-headers': 'Authorization, Origin, X-Requested-With, Content-Type, Accept, User-Agent',
  'access-control-allow-methods': 'GET, DELETE, POST, PUT, HEAD',
};

const http: Row[] = [
  {
    fact: 'a transaction id of the caller is kept, and is the code of errors',
    run: async ({ user }) => {
      const { headers, body } = await user.send<{ code: string }>('GET', '/api/v1/namespaces/_/actions/missing', {
        headers: { 'x-request-id': 'conformance-7' },
      });
      expect([headers['x-request-id'], body.code]).toEqual(['conformance-7', 'conformance-7']);
    },
  },
  {
    fact: 'else, and where it begins with sid_, it is 32 letters and digits',
    run: async ({ user }) => {
      const given: Record<string, string>[] = [{}, { 'x-request-id': 'sid_mine' }];
      for (const headers of given)
        expect((await user.send('GET', '/api/v1/namespaces', { headers })).headers['x-request-id']).toMatch(
          /^[A-Za-z0-9]{32}$/,
        );
    },
  },
  {
    fact: 'JSON is application/json without a charset',
    run: async ({ user }) => {
      for (const path of ['/api/v1/namespaces', '/', '/api/v1'])
        expect((await user.send('GET', path)).headers['content-type']).toBe('application/json');
    },
  },
  {
    fact: 'answers of the API carry CORS headers',
    source: cors,
    run: async ({ user }) => expect((await user.api('GET', '_/actions')).headers).toMatchObject(corsOfApi),
  },
  {
    fact: 'OPTIONS of any path of the API is 200 with them, for anybody',
    source: cors,
    run: async ({ user }) => {
      for (const path of ['/api/v1/namespaces/_/actions/x', '/api/v1/nowhere']) {
        const { status, headers } = await user.send('OPTIONS', path, anonymous);
        expect({ status, headers }).toMatchObject({ status: 200, headers: corsOfApi });
      }
    },
  },
  {
    fact: 'a method that a resource lacks: 405, and which it has',
    run: async ({ user }) => {
      const reply = await user.api('PATCH', '_/actions/x', {});
      expect(reply.status).toBe(405);
      expect(reply.body.error).toMatch(/^HTTP method not allowed, supported methods: .*GET/);
      expect(reply.headers.allow).toMatch(/GET/);
    },
  },
  {
    fact: 'a body that is no JSON: 400',
    run: async (t) => {
      const options = { body: '{"a', headers: { 'content-type': 'application/json' } };
      const reply = await t.user.send('PUT', `/api/v1/namespaces/_/packages/${t.name('p')}`, options);
      refused(reply, 400, /^The request content was malformed:\n/);
    },
  },
  {
    fact: 'a body that is not declared JSON: 415',
    run: async (t) => {
      const options = { body: '{}', headers: { 'content-type': 'text/xml' } };
      const reply = await t.user.send('PUT', `/api/v1/namespaces/_/packages/${t.name('p')}`, options);
      refused(
        reply,
        415,
        /^The request's Content-Type \[text\/xml.*\] is not supported\. Expected:\napplication\/json$/,
      );
    },
  },
  {
    fact: 'names with characters that none may have: 400',
    source: 'common/scala/.../core/entity/EntityPath.scala',
    stands: 'WskRestBasicUsageTests: reject creating entities with invalid names',
    run: async ({ user }) => {
      for (const name of ['%20', 'hi%2Bthere', '$hola', 'dora%3F', '%7Cdora%7Cdora%3F'])
        refused(
          await user.send('PUT', `/api/v1/namespaces/_/actions/${name}`, {
            body: { exec: { kind: 'nodejs:default', code: 'x' } },
          }),
          400,
          'The name of the entity contains illegal characters.',
        );
      expect((await user.api('PUT', '_/actions/', { exec: { kind: 'nodejs:default', code: 'x' } })).status).toBe(404);
    },
  },
  {
    fact: 'a name of more than 256 characters: 400',
    source: 'common/scala/.../core/entity/Size.scala',
    run: async ({ user }) =>
      refused(
        await user.api('GET', `_/actions/${'n'.repeat(257)}`),
        400,
        'Name segement longer than allowed: 257 > 256.',
      ),
  },
];

/** Sheet 1: authentication, and the parts of every answer. */
export const authenticationCases = [
  ...table('authentication', `${controller}/BasicAuthenticationDirective.scala`, authentication),
  ...table('HTTP', framing, http),
];
