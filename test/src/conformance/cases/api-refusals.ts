import { expect } from '@jest/globals';
import { ApiRoutes, exported, oneRoute, swaggerOf } from '../api-routes.js';
import { Caller } from '../caller.js';
import type { Reply } from '../caller.js';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';

/** Expects route management's refusal with this text. */
function failed({ status, body }: Reply<{ error?: string }>, text: string): void {
  expect([status, body.error]).toEqual([502, expect.stringContaining(text)]);
}

const rows: Row[] = [
  {
    fact: 'no parameters in the base path',
    stands: 'ApiGwRestTests: fail to create an Api if the base path contains path parameters',
    run: async (t) =>
      failed(
        await new ApiRoutes(t, '/bad/{path}/value').add({ path: '/good/path', action: 'action' }),
        'The base path (/bad/{path}/value) cannot have parameters. Only the relative path supports path parameters.',
      ),
  },
  {
    fact: 'parameters of the path take the type .http',
    stands: 'ApiGwRestTests: fail to create API when swagger file contains invalid action response type',
    run: async (t) => {
      const api = new ApiRoutes(t);
      const document = swaggerOf(t, api.basePath, await exported(t), ['/greeting/{name}'], 'json');
      const text = "The action must use a response type of '.http' in order to receive the path parameters.";
      failed(await api.import(document), `API creation failure: ${text}`);
    },
  },
  {
    fact: 'parameters of the path are described',
    stands: 'ApiGwRestTests: fail to create API when swagger file contains invalid parameter names',
    run: async (t) => {
      const api = new ApiRoutes(t);
      const text = JSON.stringify(swaggerOf(t, api.basePath, await exported(t), ['/greeting/{name}/{id}']));
      for (const name of ['name', 'id'])
        failed(
          await api.import(text.replace(`"name":"${name}"`, '"name":"other"')),
          `API creation failure: The parameter '${name}' defined in path '/greeting/{name}/{id}' does not match any of the parameters defined for the path in the swagger file.`,
        );
    },
  },
  {
    fact: 'a target of a path with parameters ends with the path',
    stands: 'ApiGwRestTests: fail to create API when swagger file contains an invalid target-url',
    run: async (t) => {
      const api = new ApiRoutes(t);
      const action = await exported(t);
      const target = `${t.user.url}/api/v1/web/${t.namespace}/default/${action}.http`;
      const execute = [{ invoke: { 'target-url': target, verb: 'keep' } }];
      const assembly = { execute: [{ 'operation-switch': { case: [{ operations: ['get_x__a_'], execute }] } }] };
      const document = { ...swaggerOf(t, api.basePath, action, ['/x/{a}']), 'x-ibm-configuration': { assembly } };
      failed(
        await api.import(document),
        "API creation failure: The target-url for operationId 'get_x__a_' must end in '$(request.path)' in order for actions to receive the path parameters.",
      );
    },
  },
  {
    fact: 'a path begins with a slash',
    stands: 'ApiGwRestTests: reject an api commands with an invalid path parameter',
    run: async (t) => {
      const { api, action } = await oneRoute(t);
      failed(await api.add({ path: 'badpath', action }), "Resource path must begin with '/'.");
      failed(await api.remove({ relpath: 'badpath' }), "path 'badpath' does not exist in the API");
    },
  },
  {
    fact: 'a verb is one of HTTP',
    stands: 'ApiGwRestTests: reject an api commands with an invalid verb parameter',
    run: async (t) => {
      const { api, action } = await oneRoute(t);
      failed(await api.add({ path: '/other', method: 'badverb', action }), "Resource verb 'badverb' not supported.");
      const text = "path '/path' with operation 'badverb' does not exist in the API";
      failed(await api.remove({ relpath: '/path', operation: 'badverb' }), text);
    },
  },
  {
    fact: 'a document is JSON',
    stands: 'ApiGwRestTests: reject an api create command specifying a non-JSON configuration file',
    run: async (t) =>
      failed(await new ApiRoutes(t).import('a=A'), 'swagger field cannot be parsed. Ensure it is valid JSON.'),
  },
  {
    fact: 'a document has a base path',
    stands: 'ApiGwRestTests: reject an api create command specifying a non-swagger JSON configuration file',
    run: async (t) =>
      failed(
        await new ApiRoutes(t).import({
          swagger: '2.0',
          info: { title: 'x' },
          BADbasePath: '/bp',
          paths: { '/rp': {} },
        }),
        'swagger is missing the basePath field.',
      ),
  },
  {
    fact: 'a document without it makes nothing',
    stands: 'ApiGwRestTests: verify failed creation with invalid swagger doc as input',
    run: async (t) => {
      const api = new ApiRoutes(t, '/');
      const before = await api.list();
      failed(
        await api.import({ swagger: '2.0', info: { title: '/', version: '1.0.0' }, paths: { '/a': {} } }),
        'swagger',
      );
      expect(await api.list()).toEqual(before);
    },
  },
  {
    fact: 'deleting an API that there is not',
    stands: 'ApiGwRestTests: reject deletion of a non-existent api',
    run: async (t) =>
      failed(await new ApiRoutes(t, '/not-there').remove(), "API deletion failure: API '/not-there' does not exist."),
  },
  {
    fact: 'a key that is none',
    stands: 'ApiGwRestTests: reject creation of an API with invalid auth key',
    run: async (t) => {
      const stranger = new Caller(t.user.url, 'bad-auth-key', '_');
      const path = '/api/v1/web/whisk.system/apimgmt/createApi.http';
      failed(await stranger.send('POST', path, { body: {} }), 'A valid auth key is required.');
    },
  },
];

/** Sheet 12: requests that route management refuses. */
export const apiRefusalCases = table('API route refusals', 'core/routemgmt/createApi/createApi.js', rows);
