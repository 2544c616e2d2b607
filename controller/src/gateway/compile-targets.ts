import { SwaggerError } from '@gpuwhisk/common/gateway-errors';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { objectAt, objectsAt, textAt, valueAt } from './json-path.js';
import { configurationKey } from './swagger-edit.js';

/** The web action behind an operation. */
export interface Target {
  /** `/api/v1/web/namespace/package/action.ext`, encoded. */
  readonly path: string;
  /** Whether the whole path of the request, base path included, is put behind it. */
  readonly takesPath: boolean;
  /** The method that the action is called with; undefined: the request's. */
  readonly method: string | undefined;
  /** Headers that are set, in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The targets of a document's operations. */
export interface Targets {
  /** Undefined where the whole document has none. Throws SwaggerError where only this operation has none. */
  of(path: string, method: string, operation: JsonValue): Target | undefined;
}

type Headers = Record<string, string>;

interface Invoke {
  url: string;
  verb: string | undefined;
  headers: Headers;
}

/**
 * Reads where operations lead: to what the `assembly` of the gateway's configuration invokes, else to the URL in
 * `x-openwhisk`. Throws SwaggerError.
 */
export function compileTargets(swagger: JsonObject): Targets {
  const steps = objectsAt(swagger, configurationKey(swagger), 'assembly', 'execute');
  const shared = setHeaders(steps);
  const invoked = new Map<string, Invoke>();
  let everywhere: Invoke | undefined;
  for (const step of steps) {
    everywhere ??= readInvoke([step], shared);
    for (const one of objectsAt(step, 'operation-switch', 'case')) {
      const inner = objectsAt(one, 'execute');
      const invoke = readInvoke(inner, { ...shared, ...setHeaders(inner) });
      const operations = valueAt(one, 'operations');
      if (invoke === undefined || !Array.isArray(operations)) continue;
      for (const operation of operations) if (typeof operation === 'string') invoked.set(operation, invoke);
    }
  }
  const isEmpty = everywhere === undefined && invoked.size === 0 && !hasActions(swagger);
  return {
    of(path, method, operation) {
      if (isEmpty) return undefined;
      const url = textAt(operation, 'x-openwhisk', 'url');
      const named = url === undefined ? undefined : { url: withPath(url), verb: undefined, headers: shared };
      const invoke = invoked.get(textAt(operation, 'operationId') ?? '') ?? everywhere ?? named;
      if (invoke === undefined) {
        throw new SwaggerError(
          `Missing field 'backendUrl' for '${method}' operation of '${path}': it has neither x-openwhisk.url nor a target-url.`,
        );
      }
      return target(invoke);
    },
  };
}

function hasActions(swagger: JsonObject): boolean {
  return Object.values(objectAt(swagger, 'paths') ?? {}).some((operations) =>
    Object.values(objectAt(operations) ?? {}).some((one) => textAt(one, 'x-openwhisk', 'url') !== undefined),
  );
}

/** As route management writes target URLs: actions that answer as `http` get the path. */
function withPath(url: string): string {
  return url.endsWith('.http') ? `${url}$(request.path)` : url;
}

function readInvoke(steps: readonly JsonObject[], headers: Headers): Invoke | undefined {
  for (const step of steps) {
    const url = textAt(step, 'invoke', 'target-url');
    if (url !== undefined) return { url, verb: textAt(step, 'invoke', 'verb'), headers };
  }
  return undefined;
}

function setHeaders(steps: readonly JsonObject[]): Headers {
  const headers: Headers = {};
  for (const action of steps.flatMap((step) => objectsAt(step, 'set-variable', 'actions'))) {
    const set = textAt(action, 'set') ?? '';
    const name = /^message\.headers\.([!#$%&'*+^_`|~0-9A-Za-z-]+)$/.exec(set)?.[1];
    if (name === undefined) throw new SwaggerError(`set-variable cannot set '${set}'; only message.headers.NAME.`);
    const { value } = action;
    const isText = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
    if (!isText || !/^[\t\x20-\x7e]*$/.test(String(value))) {
      throw new SwaggerError(`set-variable has no value for '${set}' that a header can have.`);
    }
    headers[name.toLowerCase()] = String(value);
  }
  return headers;
}

const urlPattern =
  /^(?:https?:\/\/[^/?#]+)?(?:\/[^?#]*)?\/api\/v\d+\/web\/([^/]+)\/([^/]+)\/([^/]+\.(?:http|json|html|svg|text))$/;

/** Throws SwaggerError for a URL of something else than a web action: the gateway calls into no other network. */
function target({ url, verb, headers }: Invoke): Target {
  const bare = url.replace(/\/?\$\(request\.path\)$/, '');
  const [, ...segments] = urlPattern.exec(bare) ?? [];
  if (segments.length === 0 || segments.some((segment) => segment === '.' || segment === '..')) {
    throw new SwaggerError(`'${url}' is not the URL of a web action (…/api/v1/web/namespace/package/action.ext).`);
  }
  const method = verb === undefined || verb === 'keep' ? undefined : verb.toUpperCase();
  const path = `/api/v1/web/${segments.map(encodeSegment).join('/')}`;
  return { path, takesPath: bare !== url, method, headers };
}

/** Names come as they are or encoded; none has a percent sign of its own. */
function encodeSegment(segment: string): string {
  try {
    return encodeURIComponent(decodeURIComponent(segment));
  } catch (error) {
    if (error instanceof URIError) throw new SwaggerError(`'${segment}' is not encoded as a URL's segment.`);
    throw error;
  }
}
