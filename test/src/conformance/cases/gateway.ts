import { expect } from '@jest/globals';
import { ApiRoutes, exported, oneRoute, swaggerOf } from '../api-routes.js';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';

const rows: Row[] = [
  {
    fact: 'a list has paths, verbs and actions of an API',
    stands: 'ApiGwRestTests: verify full list output',
    run: async (t) => {
      const { api, action } = await oneRoute(t, { apiName: 'Full List' });
      const { info, basePath, paths } = await api.document();
      expect([info.title, basePath]).toEqual(['Full List', api.basePath]);
      expect(paths['/path']?.get?.['x-openwhisk']).toMatchObject({ action, namespace: t.namespace });
    },
  },
  {
    fact: 'an API is made, served, read and deleted',
    stands: 'ApiGwRestTests: verify successful creation and deletion of a new API',
    run: async (t) => {
      const { api, made } = await oneRoute(t, { path: '/path/with/sub_paths/in/it' });
      expect(made).toMatchObject({ namespace: 'Not Used', gwApiActivated: true, tenantId: 'Not Used' });
      const { paths } = await api.document();
      expect(paths['/path/with/sub_paths/in/it']?.get?.operationId).toBe('getPathWithSub_pathsInIt');
      const served = await fetch(`${made.gwApiUrl}/path/with/sub_paths/in/it?a=1`);
      expect([served.status, await served.json()]).toEqual([200, expect.objectContaining({ a: '1' })]);
      const removed = await api.remove();
      expect([removed.status, removed.body]).toEqual([200, {}]);
      expect(await api.list()).toEqual([]);
    },
  },
  {
    fact: 'an API is found by its name; it allows CORS and leads to the action as JSON',
    stands: 'ApiGwRestTests: verify get API name',
    run: async (t) => {
      const apiName = t.name('API Name');
      const { api, action } = await oneRoute(t, { apiName });
      const [found] = await api.list(apiName);
      expect(found?.apidoc).toMatchObject({
        basePath: api.basePath,
        'x-ibm-configuration': { cors: { enabled: true } },
      });
      expect(JSON.stringify(found)).toContain(`/${action}.json","verb":"keep"`);
    },
  },
  {
    fact: 'an API is deleted by its name',
    stands: 'ApiGwRestTests: verify delete API name',
    run: async (t) => {
      const apiName = t.name('API Name');
      const { api } = await oneRoute(t, { apiName });
      expect((await api.remove({ basepath: apiName })).body).toEqual({});
      expect(await api.list()).toEqual([]);
    },
  },
  {
    fact: 'an API is deleted by its base path',
    stands: 'ApiGwRestTests: verify delete API basepath',
    run: async (t) => {
      const { api } = await oneRoute(t);
      expect((await api.remove()).body).toEqual({});
      expect(await api.list()).toEqual([]);
    },
  },
  {
    fact: 'an API grows',
    stands: 'ApiGwRestTests: verify adding endpoints to existing api',
    run: async (t) => {
      const { api, action } = await oneRoute(t);
      expect((await api.add({ path: '/newEndpoint', action })).status).toBe(200);
      expect((await api.endpoints()).sort()).toEqual(['get /newEndpoint', 'get /path']);
    },
  },
  {
    fact: 'an API is imported',
    stands: 'ApiGwRestTests: verify successful creation with swagger doc as input',
    run: async (t) => {
      const api = new ApiRoutes(t);
      const paths = ['/path', '/pathSecure1', '/pathSecure2'];
      expect((await api.import(swaggerOf(t, api.basePath, await exported(t), paths))).status).toBe(200);
      expect(await api.endpoints()).toEqual(paths.map((path) => `get ${path}`));
    },
  },
  {
    fact: 'two APIs grow apart, and keep their names',
    stands: 'ApiGwRestTests: verify adding endpoints to two existing apis',
    run: async (t) => {
      const apis = [await oneRoute(t, { apiName: 'First' }), await oneRoute(t, { apiName: 'Second' })];
      for (const { api, action } of apis) expect((await api.add({ path: '/newEndpoint', action })).status).toBe(200);
      for (const [at, { api }] of apis.entries()) {
        expect((await api.endpoints()).sort()).toEqual(['get /newEndpoint', 'get /path']);
        expect((await api.document()).info.title).toBe(['First', 'Second'][at]);
      }
    },
  },
  {
    fact: 'names of actions may have every character that names may',
    stands: 'ApiGwRestTests: verify successful creation of a new API using an action name using all allowed characters',
    run: async (t) => {
      const api = new ApiRoutes(t);
      const action = await exported(t, t.name('a-c@t ion'));
      const made = await api.add({ action });
      expect(made.status).toBe(200);
      expect((await api.document()).paths['/path']?.get?.['x-openwhisk']).toMatchObject({ action });
      expect((await fetch(`${made.body.gwApiUrl}/path`)).status).toBe(200);
    },
  },
  {
    fact: 'an API loses a path',
    stands: 'ApiGwRestTests: verify delete basepath/path',
    run: async (t) => {
      const { api, action } = await oneRoute(t);
      await api.add({ path: '/path_new', action });
      expect((await api.remove({ relpath: '/path' })).body).toEqual({});
      expect(await api.endpoints()).toEqual(['get /path_new']);
    },
  },
  {
    fact: 'an API loses an operation',
    stands: 'ApiGwRestTests: verify delete single operation from existing API basepath/path/operation(s)',
    run: async (t) => {
      const { api, action } = await oneRoute(t);
      await api.add({ method: 'post', action });
      expect((await api.endpoints()).sort()).toEqual(['get /path', 'post /path']);
      expect((await api.remove({ relpath: '/path', operation: 'post' })).body).toEqual({});
      expect(await api.endpoints()).toEqual(['get /path']);
    },
  },
  {
    fact: 'a document may have a base path of several parts and several operations',
    stands: 'ApiGwRestTests: verify successful creation with complex swagger doc as input',
    run: async (t) => {
      const api = new ApiRoutes(t, `/${t.name('test')}/v1`);
      const action = await exported(t);
      const document = swaggerOf(t, api.basePath, action, ['/whisk_system/utils/echo', '/whisk_system/utils/split']);
      const text = JSON.stringify(document).replace(
        '"/whisk_system/utils/split":{"get"',
        '"/whisk_system/utils/split":{"post"',
      );
      expect((await api.import(text)).status).toBe(200);
      expect(await api.endpoints()).toEqual(['get /whisk_system/utils/echo', 'post /whisk_system/utils/split']);
    },
  },
  {
    fact: 'of two APIs, one is deleted and the other stays',
    stands: 'ApiGwRestTests: verify successful creation and deletion with multiple base paths',
    run: async (t) => {
      const [first, second] = [await oneRoute(t), await oneRoute(t)];
      expect((await second.api.remove()).body).toEqual({});
      expect(await first.api.endpoints()).toEqual(['get /path']);
      expect((await first.api.remove()).body).toEqual({});
    },
  },
  {
    fact: 'an API leads to the action as HTTP where it is asked to',
    stands: 'ApiGwRestTests: verify API with http response type',
    run: async (t) => {
      const api = new ApiRoutes(t);
      const action = await exported(t);
      await api.add({ action, responseType: 'http' });
      expect(JSON.stringify(await api.document())).toContain(`/${action}.http$(request.path)","verb":"keep"`);
    },
  },
  {
    fact: 'a document without actions is an API, of seven verbs',
    stands: 'ApiGwRestTests: successfully list an API whose endpoints are not mapped to actions',
    run: async (t) => {
      const api = new ApiRoutes(t);
      const verbs = ['put', 'delete', 'get', 'head', 'options', 'patch', 'post'];
      const operation = { operationId: '', responses: { 200: { description: 'A successful invocation response' } } };
      const paths = { '/': Object.fromEntries(verbs.map((verb) => [verb, operation])) };
      const made = await api.import({ ...swaggerOf(t, api.basePath, 'none', []), paths });
      expect(made.status).toBe(200);
      expect((await api.endpoints()).sort()).toEqual(verbs.map((verb) => `${verb} /`).sort());
    },
  },
  {
    fact: 'an action may be in a package',
    stands: 'ApiGwRestTests: verify get API name that uses custom package',
    run: async (t) => {
      const name = await t.package();
      await exported(t, `${name}/action`);
      const api = new ApiRoutes(t);
      const made = await api.add({ action: `${name}/action` });
      const { paths } = await api.document();
      expect(paths['/path']?.get?.['x-openwhisk']).toMatchObject({ package: name, action: 'action' });
      expect((await fetch(`${made.body.gwApiUrl}/path`)).status).toBe(200);
    },
  },
  {
    fact: 'parameters of a path are in the document, and reach the action',
    stands: 'ApiGwRestTests: create the API when swagger file contains path parameters',
    run: async (t) => {
      const api = new ApiRoutes(t);
      const path = '/api2/greeting2/{name}';
      const action = await t.action('function main(args) { return { body: args }; }', {
        annotations: { 'web-export': true },
      });
      const made = await api.import(swaggerOf(t, api.basePath, action, [path]));
      expect(made.status).toBe(200);
      const parameters = [{ in: 'path', name: 'name', required: true, type: 'string' }];
      expect(made.body.apidoc.paths[path]?.get?.parameters).toEqual(parameters);
      const served = await fetch(`${made.body.gwApiUrl}/api2/greeting2/Ada`);
      expect(await served.json()).toMatchObject({ __ow_path: `${api.basePath}/api2/greeting2/Ada` });
    },
  },
];

/** Sheet 12: APIs and their answers. */
export const gatewayCases = table('API routes', 'core/routemgmt/createApi/createApi.js', rows);
