import { systemNetwork } from '@gpuwhisk/common/system/network';
import { alice, basic, send } from './harness.js';
import type { ApiSettings, Reply, RequestOptions } from './harness.js';
import { startWebApi } from './web-harness.js';
import type { WebApi } from './web-harness.js';

/** The gateway's public URL, as set in the platform's settings. */
export const gatewayUrl = 'https://apis.test';

/** Any JSON object; tests compare its members. */
export type Json = Record<string, unknown>;

/** An API with its gateway; actions echo their arguments unless a test sets another result. */
export interface GatewayApi extends WebApi {
  /** Calls route management as OpenWhisk's tools do, as alice unless `options` name another account. */
  manage(operation: string, query?: Record<string, string>, options?: RequestOptions): Promise<Reply>;
  /** Adds an endpoint of alice's to an API. */
  route(basePath: string, path: string, method: string, action: string, more?: RouteOptions): Promise<Reply>;
  /** Imports a document as alice. */
  importSwagger(swagger: unknown): Promise<Reply>;
  /** Calls the gateway below `/api/<alice's uuid>`, without the platform's credentials. */
  visit(method: string, path: string, options?: RequestOptions): Promise<Reply>;
  /** Calls the gateway. */
  get(path: string, options?: RequestOptions): Promise<Reply>;
  close(): Promise<void>;
}

export interface RouteOptions {
  responseType?: string;
  apiName?: string;
  secureKey?: string | number;
  pathParameters?: unknown[];
}

const methods: Record<string, string> = { createApi: 'POST', getApi: 'GET', deleteApi: 'DELETE' };

export async function startGatewayApi(settings: ApiSettings = {}): Promise<GatewayApi> {
  const web = await startWebApi({ gatewayUrl, ...settings });
  const server = await systemNetwork.listen(web.api.controller.handleGateway, { host: '127.0.0.1', port: 0 });
  const manage: GatewayApi['manage'] = (operation, query = {}, options = {}) => {
    const name = operation.split('.')[0] ?? '';
    const method = methods[name] ?? (name.startsWith('get') ? 'GET' : name.startsWith('delete') ? 'DELETE' : 'POST');
    const search = new URLSearchParams({ accesstoken: 'DUMMY TOKEN', spaceguid: 'any', ...query });
    return web.api.request(method, `/api/v1/web/whisk.system/apimgmt/${operation}?${search}`, options);
  };
  return {
    ...web,
    manage,
    route: (basePath, path, method, action, { responseType = 'json', apiName, secureKey, pathParameters } = {}) => {
      const apidoc = {
        namespace: '_',
        apiName,
        gatewayBasePath: basePath,
        gatewayPath: path,
        gatewayMethod: method,
        id: `API:_:${basePath}`,
        action: {
          name: action,
          namespace: alice.namespace,
          backendMethod: 'POST',
          backendUrl: `https://whisk.test/api/v1/web/${alice.namespace}/default/${action}.http`,
          authkey: basic(alice),
          secureKey,
        },
        pathParameters,
      };
      return manage('createApi.http', { responsetype: responseType }, { body: { apidoc } });
    },
    importSwagger: (swagger) => manage('createApi.http', {}, { body: { apidoc: { namespace: '_', swagger } } }),
    visit: (method, path, options) => send(server.port, method, `/api/${alice.uuid}${path}`, { as: null, ...options }),
    get: (path, options) => send(server.port, 'GET', path, { as: null, ...options }),
    close: async () => {
      await server.close(1000);
      await web.api.close();
    },
  };
}

/** A Swagger document whose operations lead to alice's action `hello`; `more` adds or replaces members. */
export function swaggerOf(basePath: string, paths: readonly string[], more: Json = {}): Json {
  const url = `https://whisk.test/api/v1/web/${alice.namespace}/default/hello.http`;
  const operation = (path: string): Json => ({
    get: {
      operationId: `get${path}`,
      parameters: [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({ name, in: 'path', required: true })),
      'x-openwhisk': { url, namespace: alice.namespace, package: '', action: 'hello' },
      responses: { default: { description: 'Default response' } },
    },
  });
  return {
    swagger: '2.0',
    info: { title: `The API at ${basePath}`, version: '1.0.0' },
    basePath,
    paths: Object.fromEntries(paths.map((path) => [path, operation(path)])),
    ...more,
  };
}
