import { expect } from '@jest/globals';
import type { Reply } from './caller.js';
import { echo } from './functions.js';
import { accepted } from './trial.js';
import type { Trial } from './trial.js';

/** The parts of an API's Swagger document that cases check. */
export interface ApiDocument {
  basePath: string;
  info: { title: string };
  paths: Record<string, Record<string, { operationId?: string; parameters?: object[] } & Record<string, unknown>>>;
}

/** An API in the answers of route management. */
export interface Api {
  gwApiUrl: string;
  gwApiActivated: boolean;
  apidoc: ApiDocument;
}

/** An endpoint to be added. */
export interface Route {
  path?: string;
  method?: string;
  action: string;
  apiName?: string;
  responseType?: string;
}

/** The API at one base path, managed as OpenWhisk's tools do; it is deleted after the case. */
export class ApiRoutes {
  readonly basePath: string;

  constructor(
    private readonly t: Trial,
    basePath?: string,
  ) {
    this.basePath = basePath ?? `/${t.name('api')}_bp`;
    t.atEnd(() => this.remove());
  }

  /** Adds an endpoint; default: GET of `/path`. */
  add(route: Route): Promise<Reply<Api & { error?: string }>> {
    const { path = '/path', method = 'get', action, apiName, responseType = 'json' } = route;
    const { user, namespace } = this.t;
    const [first = '', second] = action.split('/');
    const [packageName, name] = second === undefined ? ['default', first] : [first, second];
    const apidoc = {
      namespace: '_',
      gatewayBasePath: this.basePath,
      gatewayPath: path,
      gatewayMethod: method,
      id: `API:${namespace}:${this.basePath}`,
      ...(apiName !== undefined && { apiName }),
      action: {
        name: action,
        namespace,
        backendMethod: method,
        backendUrl: `${user.url}/api/v1/web/${namespace}/${packageName}/${encodeURIComponent(name)}.${responseType}`,
        authkey: user.auth,
      },
    };
    return this.manage('POST', 'createApi', { responsetype: responseType }, { apidoc });
  }

  /** Imports a Swagger document, given as an object or as text. */
  import(swagger: unknown): Promise<Reply<Api & { error?: string }>> {
    return this.manage('POST', 'createApi', {}, { apidoc: { namespace: '_', swagger } });
  }

  /** The APIs at a base path, or of a name. */
  async list(basepath = this.basePath): Promise<Api[]> {
    const { apis } = accepted(await this.manage<{ apis: { value: Api }[] }>('GET', 'getApi', { basepath }));
    return apis.map(({ value }) => value);
  }

  /** The one API at the base path. */
  async document(): Promise<ApiDocument> {
    const [api, ...others] = await this.list();
    expect([api === undefined, others]).toEqual([false, []]);
    return (api as Api).apidoc;
  }

  /** The endpoints of the API at the base path, such as `get /path`. */
  async endpoints(): Promise<string[]> {
    const { paths } = await this.document();
    return Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method} ${path}`),
    );
  }

  remove(query: Record<string, string> = {}): Promise<Reply<{ error?: string }>> {
    return this.manage('DELETE', 'deleteApi', { basepath: this.basePath, ...query });
  }

  private manage<Body>(
    method: string,
    operation: string,
    query: Record<string, string>,
    body?: unknown,
  ): Promise<Reply<Body>> {
    const [spaceguid = ''] = this.t.user.auth.split(':');
    const search = new URLSearchParams({ accesstoken: 'DUMMY TOKEN', spaceguid, ...query });
    return this.t.user.send<Body>(method, `/api/v1/web/whisk.system/apimgmt/${operation}.http?${search}`, { body });
  }
}

/** Creates a web action and returns its name. */
export async function exported(t: Trial, name?: string): Promise<string> {
  return t.action(echo, { annotations: { 'web-export': true, final: true } }, name ?? t.name('action'));
}

/** Creates an API with one endpoint, GET of `/path`. */
export async function oneRoute(
  t: Trial,
  route: { path?: string; apiName?: string } = {},
): Promise<{ action: string; api: ApiRoutes; made: Api }> {
  const action = await exported(t);
  const api = new ApiRoutes(t);
  const made = await api.add({ action, ...route });
  expect(made.status).toBe(200);
  return { action, api, made: made.body };
}

/** A Swagger document whose operations lead to an action; `more` adds or replaces members. */
export function swaggerOf(t: Trial, basePath: string, action: string, paths: string[], extension = 'http'): object {
  const url = `${t.user.url}/api/v1/web/${t.namespace}/default/${action}.${extension}`;
  const operation = (path: string) => ({
    get: {
      operationId: `get${path.replaceAll(/\W/g, '_')}`,
      parameters: [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
        in: 'path',
        name,
        required: true,
        type: 'string',
      })),
      responses: { default: { description: 'Default response' } },
      'x-openwhisk': { url, namespace: t.namespace, package: '', action },
    },
  });
  return {
    swagger: '2.0',
    info: { title: `API at ${basePath}`, version: '1.0.0' },
    basePath,
    paths: Object.fromEntries(paths.map((path) => [path, operation(path)])),
  };
}
