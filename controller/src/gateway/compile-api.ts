import { SwaggerError } from '@gpuwhisk/common/gateway-errors';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { objectAt, textAt, valueAt, objectsAt, configurationKey } from './swagger-document.js';
import { compileSecurity, compileRateLimit } from './api-policies.js';
import type { SecurityCheck, TokenIssuers, RateLimit, CorsMode } from './api-policies.js';

/** A segment of a path: its text, or null for any text. */
export type PathSegment = string | null;

/** A path of an API, including the base path. */
export interface Resource {
  readonly segments: readonly PathSegment[];
  /** Targets by upper-case method; undefined for an operation without a target. */
  readonly operations: ReadonlyMap<string, Target | undefined>;
}

/** The form of an API that the gateway uses. */
export interface CompiledApi {
  readonly basePath: string;
  readonly cors: CorsMode;
  readonly resources: readonly Resource[];
  /** All checks apply to every operation, as in OpenWhisk's gateway, whatever `security` says. */
  readonly security: readonly SecurityCheck[];
  readonly rateLimit: RateLimit | undefined;
}

const verbs = new Set(['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS']);

/** Longest base path, bytes of UTF-8; bounded by the store's keys. */
const maxBasePathBytes = 256;

/** Reads a swagger document. Throws SwaggerError for one that the gateway cannot serve. */
export function compileApi(swagger: JsonObject, issuers: TokenIssuers): CompiledApi {
  if (textAt(swagger, 'info', 'title') === undefined) throw new SwaggerError("Missing field 'name' in request body.");
  const basePath = normalBasePath(swagger.basePath);
  const paths = Object.entries(objectAt(swagger, 'paths') ?? {});
  if (paths.length === 0) throw new SwaggerError('Empty resources object.');
  const targets = compileTargets(swagger);
  return {
    basePath,
    cors: corsMode(swagger),
    resources: paths.map(([path, operations]) => compileResource(basePath, path, operations, targets)),
    security: compileSecurity(swagger, issuers),
    rateLimit: compileRateLimit(swagger['x-gateway-rate-limit'] ?? swagger['x-ibm-rate-limit']),
  };
}

/** A base path with one leading slash and no trailing one. Throws SwaggerError for a path that no URL can have. */
export function normalBasePath(given: JsonValue | undefined): string {
  if (typeof given !== 'string') throw new SwaggerError("Missing field 'basePath' in request body.");
  const segments = segmentsOf('basePath', given);
  if (segments.some((segment) => /[{}]/.test(segment))) {
    throw new SwaggerError(`basePath '${given}' cannot have parameters.`);
  }
  const path = `/${segments.join('/')}`;
  if (Buffer.byteLength(path) > maxBasePathBytes) {
    throw new SwaggerError(`basePath is longer than ${maxBasePathBytes} bytes.`);
  }
  return path;
}

/** The non-empty segments of a path. `what` names the path in errors. Throws SwaggerError. */
function segmentsOf(what: string, path: string): string[] {
  const illegal = /['?#%\\]|\p{Cc}/u.exec(path)?.[0];
  if (illegal !== undefined) throw new SwaggerError(`${what} contains illegal character ${JSON.stringify(illegal)}.`);
  const segments = path.split('/').filter((segment) => segment !== '');
  if (segments.some((segment) => segment === '.' || segment === '..')) {
    throw new SwaggerError(`${what} '${path}' contains a segment '.' or '..'.`);
  }
  return segments;
}

function compileResource(basePath: string, path: string, operations: JsonValue, targets: Targets): Resource {
  const segments = segmentsOf('resource path', path);
  if (!path.startsWith('/')) throw new SwaggerError("Resource path must begin with '/'.");
  const compiled = new Map<string, Target | undefined>();
  for (const [key, operation] of Object.entries(isJsonObject(operations) ? operations : {})) {
    if (key === 'parameters' || key.startsWith('x-')) continue;
    const verb = key.toUpperCase();
    if (!verbs.has(verb)) throw new SwaggerError(`Resource verb '${key}' not supported.`);
    compiled.set(verb, targets.of(path, key, operation));
  }
  if (compiled.size === 0) throw new SwaggerError("Missing or empty field 'operations' or in resource path object.");
  const whole = [...basePath.split('/').filter((segment) => segment !== ''), ...segments.map(pathSegment)];
  return { segments: whole, operations: compiled };
}

function pathSegment(segment: string): PathSegment {
  if (!/[{}]/.test(segment)) return segment;
  if (/^\{[^{}]+\}$/.test(segment)) return null;
  throw new SwaggerError(`The path parameter in '${segment}' must be a segment of its own.`);
}

function corsMode(swagger: JsonObject): CorsMode {
  const cors = objectAt(swagger, configurationKey(swagger), 'cors');
  if (cors === undefined) return 'leave';
  return valueAt(cors, 'enabled') === false ? 'strip' : 'answer';
}

/** The web action behind an operation. */
export interface Target {
  /** `/api/v1/web/namespace/package/action.ext`, encoded. */
  readonly path: string;
  /** Whether the request's whole path, base path included, is appended. */
  readonly takesPath: boolean;
  /** The method of calls to the action; undefined: the request's method. */
  readonly method: string | undefined;
  /** Headers added to calls, lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The targets of a document's operations. */
interface Targets {
  /**
   * The target of an operation; undefined if the whole document has none. Throws SwaggerError if only this operation has
   * none.
   */
  of(path: string, method: string, operation: JsonValue): Target | undefined;
}

type Headers = Record<string, string>;

interface Invoke {
  url: string;
  verb: string | undefined;
  headers: Headers;
}

/**
 * Reads the operations' targets: those that the `assembly` of the gateway's configuration invokes, or else the URL in
 * `x-openwhisk`. Throws SwaggerError.
 */
function compileTargets(swagger: JsonObject): Targets {
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

/** The target URL in the form of route management, which appends the path for an action that answers as `http`. */
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
    if (name === undefined)
      throw new SwaggerError(`set-variable cannot set '${set}'; it can set message.headers.NAME only.`);
    const { value } = action;
    const isText = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
    if (!isText || !/^[\t\x20-\x7e]*$/.test(String(value))) {
      throw new SwaggerError(`set-variable has no valid header value for '${set}'.`);
    }
    headers[name.toLowerCase()] = String(value);
  }
  return headers;
}

const urlPattern =
  /^(?:https?:\/\/[^/?#]+)?(?:\/[^?#]*)?\/api\/v\d+\/web\/([^/]+)\/([^/]+)\/([^/]+\.(?:http|json|html|svg|text))$/;

/** The target of a web action's URL. Throws SwaggerError for any other URL, as the gateway calls no other network. */
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

/** Encodes a name that may be encoded already; names contain no percent signs. */
function encodeSegment(segment: string): string {
  try {
    return encodeURIComponent(decodeURIComponent(segment));
  } catch (error) {
    if (error instanceof URIError) throw new SwaggerError(`'${segment}' is not encoded as a URL's segment.`);
    throw error;
  }
}
