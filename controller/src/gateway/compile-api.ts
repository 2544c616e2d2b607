import { SwaggerError } from '@gpuwhisk/common/gateway-errors';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { compileTargets } from './compile-targets.js';
import type { Target, Targets } from './compile-targets.js';
import { objectAt, textAt, valueAt } from './json-path.js';
import { compileSecurity } from './security-definitions.js';
import type { SecurityCheck, TokenIssuers } from './security-definitions.js';

import { compileRateLimit } from './rate-limit.js';
import type { RateLimit } from './rate-limit.js';
import { configurationKey } from './swagger-edit.js';
import type { CorsMode } from './cors.js';

/** A segment of a path: its text, or any. */
export type PathSegment = string | null;

/** A path of an API, the base path included. */
export interface Resource {
  readonly segments: readonly PathSegment[];
  /** By method in upper case; undefined: an operation without a target. */
  readonly operations: ReadonlyMap<string, Target | undefined>;
}

/** An API as the gateway serves it. */
export interface CompiledApi {
  readonly basePath: string;
  readonly cors: CorsMode;
  readonly resources: readonly Resource[];
  /** All must pass, for every operation: what OpenWhisk's gateway does, whatever `security` says. */
  readonly security: readonly SecurityCheck[];
  readonly rateLimit: RateLimit | undefined;
}

const verbs = new Set(['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS']);

/** What the store's keys have room for, in UTF-8. */
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

/** A base path with one slash in front and none behind. Throws SwaggerError for one that no URL could have. */
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

/** The segments of a path; empty ones do not count. `what` is named in errors. Throws SwaggerError. */
function segmentsOf(what: string, path: string): string[] {
  const illegal = /['?#%\\]|\p{Cc}/u.exec(path)?.[0];
  if (illegal !== undefined) throw new SwaggerError(`${what} contains illegal character ${JSON.stringify(illegal)}.`);
  const segments = path.split('/').filter((segment) => segment !== '');
  if (segments.some((segment) => segment === '.' || segment === '..')) {
    throw new SwaggerError(`${what} '${path}' contains a segment that leads elsewhere.`);
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
