import type { ActivationStatusCode } from '@gpuwhisk/common/entities/activation';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { alice, startApi } from './harness.js';
import type { Api, ApiSettings, Reply, RequestOptions } from './harness.js';

/** The activation that the invoker of a WebApi answers with. */
export const activationId = 'c'.repeat(32);

/** The methods that web actions answer. */
export const webMethods = ['GET', 'DELETE', 'POST', 'PUT', 'HEAD', 'OPTIONS', 'PATCH'];

/** An API whose actions echo their arguments unless a test sets another result. */
export interface WebApi {
  readonly api: Api;
  /** Calls below alice's namespace, `default/…`, without credentials unless `as` is given. */
  call(method: string, path: string, options?: RequestOptions): Promise<Reply>;
  /** Creates an action of alice's; the name may start with a package name. */
  put(name: string, annotations?: JsonObject, parameters?: JsonObject): Promise<void>;
  /** Sets the result of later invocations; undefined: actions echo their arguments. */
  result(value: JsonValue | undefined, statusCode?: ActivationStatusCode): void;
  /** The arguments of the last invocation. */
  arguments(): JsonObject;
}

const pairs = (object: JsonObject): JsonObject[] => Object.entries(object).map(([key, value]) => ({ key, value }));

export async function startWebApi(settings: ApiSettings = {}): Promise<WebApi> {
  const api = await startApi(settings);
  let result: JsonValue | undefined;
  let statusCode: ActivationStatusCode = 0;
  api.onInvoke(({ action, identity, payload }) => ({
    type: 'completed',
    activation: {
      namespace: identity.namespace.name,
      name: action.name,
      version: action.version,
      subject: identity.subject,
      activationId,
      start: 1,
      end: 2,
      duration: 1,
      response: { statusCode, result: result ?? payload },
      logs: [],
      publish: false,
      annotations: [],
    },
  }));
  return {
    api,
    call: (method, path, options) =>
      api.request(method, `/api/v1/web/${alice.namespace}/${path}`, { as: null, ...options }),
    put: async (name, annotations = { 'web-export': true }, parameters = {}) => {
      const exec = { kind: 'nodejs:20', code: 'function main(args) { return args; }' };
      const body = { exec, annotations: pairs(annotations), parameters: pairs(parameters) };
      const { status, text } = await api.request(
        'PUT',
        `/api/v1/namespaces/_/actions/${encodeURI(name)}?overwrite=true`,
        {
          body,
        },
      );
      if (status !== 200) throw new Error(`PUT of ${name} was answered ${status}: ${text}`);
    },
    result: (value, code = 0) => {
      result = value;
      statusCode = code;
    },
    arguments: () => api.invocations.at(-1)?.payload as JsonObject,
  };
}
