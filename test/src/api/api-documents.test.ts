import { readFile, readdir } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import * as errors from '@gpuwhisk/common/errors';
import { startApi } from './harness.js';
import type { Api } from './harness.js';

interface Operation {
  operationId: string;
  parameters: { name: string; in: string }[];
  responses: Record<string, unknown>;
}
interface ApiDocument {
  paths: Record<string, Record<string, Operation>>;
  definitions?: Record<string, unknown>;
  components?: { schemas: Record<string, unknown> };
}

let api: Api;
let documents: [string, ApiDocument][];
beforeAll(async () => {
  api = await startApi();
  const read = async (path: string): Promise<ApiDocument> =>
    (await api.request('GET', path, { as: null })).json as ApiDocument;
  documents = [
    ['#/definitions/', await read('/api/v1/api-docs')],
    ['#/components/schemas/', await read('/api/v1/openapi.json')],
  ];
});
afterAll(() => api.close());

const operations = (document: ApiDocument): string[] =>
  Object.entries(document.paths)
    .flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} /api/v1${path}`))
    .sort();

test('both documents have every route of the API, and nothing else', () => {
  const routes = api.controller.routes
    .filter((route) => route.path.startsWith('/api/v1/'))
    .map((route) => `${route.method} ${route.path}`)
    .sort();
  for (const [, document] of documents) expect(operations(document)).toEqual(routes);
});

test('every documented operation is served', async () => {
  for (const operation of operations(documents[0]?.[1] as ApiDocument)) {
    const [method = '', path = ''] = operation.split(' ');
    const reply = await api.request(method, path.replaceAll(/\{\w+\}/g, 'a'.repeat(32)), { as: null });
    const ends = ['/api-docs', '/openapi.json', '/docs', '/docs/index.html', '/gpu.json', '/manifest.json'];
    const open = ends.some((end) => path.endsWith(end));
    const answered = path.endsWith('/docs') ? 308 : 200;
    const web = path.startsWith('/api/v1/web/');
    expect([operation, reply.status]).toEqual([operation, web ? 404 : open ? answered : 401]);
    if (!open) expect((await api.request(method, path.replaceAll(/\{\w+\}/g, 'x'))).status).not.toBe(405);
  }
});

test('path parameters, operation ids and references agree', () => {
  for (const [prefix, document] of documents) {
    const ids = Object.values(document.paths).flatMap((methods) =>
      Object.values(methods).map((one) => one.operationId),
    );
    expect(new Set(ids).size).toBe(ids.length);
    for (const [path, methods] of Object.entries(document.paths)) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]).sort();
      for (const operation of Object.values(methods)) {
        const described = operation.parameters.filter((one) => one.in === 'path').map((one) => one.name);
        expect(described.sort()).toEqual(inPath);
      }
    }
    const schemas = document.definitions ?? document.components?.schemas ?? {};
    const referred = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1] ?? '');
    expect(referred.length).toBeGreaterThan(10);
    for (const reference of referred) {
      expect(reference.startsWith(prefix)).toBe(true);
      expect(schemas).toHaveProperty(reference.slice(prefix.length));
    }
  }
});

test('operations that store data, or have large code, may be refused as too many', () => {
  const stores = ['updateAction', 'updateActionInPackage', 'restoreActionVersion', 'restoreActionVersionInPackage'];
  stores.push('updatePackage', 'updateRule', 'updateTrigger');
  const hasCode = ['getActionByName', 'getActionInPackageByName', 'deleteAction', 'deleteActionInPackage'];
  hasCode.push('getActionVersions', 'getActionVersionsInPackage');
  for (const [, document] of documents) {
    const all = Object.values(document.paths).flatMap((methods) => Object.values(methods));
    const with429 = all.filter(({ responses }) => '429' in responses).map(({ operationId }) => operationId);
    expect(with429).toEqual(expect.arrayContaining([...stores, ...hasCode]));
    const with507 = all.filter(({ responses }) => '507' in responses).map(({ operationId }) => operationId);
    expect(with507.sort()).toEqual(stores.sort());
  }
});

test("definitions have OpenWhisk's names", () => {
  const names = ['Action', 'ActionPut', 'ActionExec', 'ActionLimits', 'ActionMeta', 'Activation', 'ActivationBrief'];
  names.push('ActivationId', 'ActivationIds', 'ActivationLogs', 'ActivationResult', 'ErrorMessage', 'KeyValue');
  names.push('UserLimits');
  for (const [, document] of documents) {
    expect(Object.keys(document.definitions ?? document.components?.schemas ?? {})).toEqual(
      expect.arrayContaining(names),
    );
  }
});

test('the documents say what they are', () => {
  expect(documents[0]?.[1]).toMatchObject({ swagger: '2.0', basePath: '/api/v1' });
  expect(documents[1]?.[1]).toMatchObject({ openapi: '3.1.0', servers: [{ url: '/api/v1' }] });
});

describe('the table of errors', () => {
  test('has no text that nobody gives', async () => {
    const folders = ['controller', 'invoker'].map((name) => new URL(`../../../${name}/src/`, import.meta.url));
    let source = '';
    for (const folder of folders) {
      for (const file of await readdir(folder, { recursive: true })) {
        if (file.endsWith('.ts') && !file.endsWith('.test.ts')) source += await readFile(new URL(file, folder), 'utf8');
      }
    }
    const table = Object.keys(errors).filter((name) => name !== 'ApiError' && name !== 'isApiError');
    expect(table.length).toBeGreaterThan(25);
    expect(table.filter((name) => !new RegExp(`\\b${name}\\(`).test(source))).toEqual([]);
  });
});
