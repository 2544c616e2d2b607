// An API's policies, read from its document and applied to its calls: CORS, security, rate limit.
import jwt from 'jsonwebtoken';
import type { IncomingHttpHeaders } from 'node:http';
import { timingSafeEqual, createHash } from 'node:crypto';
import {
  SwaggerError,
  credentialRequired,
  secretMismatch,
  tokenMissing,
  tokenRefused,
  unauthorized,
  rateLimitExceeded,
} from '@gpuwhisk/common/gateway-errors';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { tokenIssuerSchema } from '@gpuwhisk/common/token-issuer';
import type { TokenIssuer } from '@gpuwhisk/common/token-issuer';
import type { Awaitable } from '@gpuwhisk/common/state/cluster-state';
import type { Answer } from '../http/answer.js';
import { objectAt, textAt, valueAt } from './swagger-document.js';
import type { Subscription } from './api-registry.js';

/**
 * The CORS mode of an API. `answer`: the gateway answers OPTIONS for the action. `strip`: it removes the action's CORS
 * headers. `leave`: neither.
 */
export type CorsMode = 'answer' | 'strip' | 'leave';

const corsPrefix = 'access-control-';
const corsMethods = 'GET, POST, PUT, DELETE, PATCH, HEAD, OPTIONS';

/** The answer to a browser's CORS preflight request. */
export function preflightAnswer(headers: IncomingHttpHeaders): Answer {
  const wanted = headers['access-control-request-headers'];
  return {
    status: 200,
    body: '',
    contentType: null,
    ...(typeof wanted === 'string' && { headers: ['Access-Control-Allow-Headers', wanted] }),
  };
}

/**
 * An answer with CORS headers by mode: the gateway's, none, or the action's. The gateway's are those of OpenWhisk's gateway.
 */
export function withCors(mode: CorsMode, { origin }: IncomingHttpHeaders, answer: Answer): Answer {
  if (mode === 'leave') return answer;
  const given = answer.headers ?? [];
  if (mode === 'strip') return { ...answer, headers: without(given, (name) => name.startsWith(corsPrefix)) };
  const own = new Map([
    ['access-control-allow-origin', origin ?? '*'],
    ['access-control-allow-methods', corsMethods],
    ['access-control-allow-credentials', 'true'],
  ]);
  return { ...answer, headers: [...without(given, (name) => own.has(name)), ...[...own].flat(), 'Vary', 'Origin'] };
}

/** Headers (names and values in turn) without those whose lower-case name is `unwanted`. */
function without(headers: readonly string[], unwanted: (name: string) => boolean): string[] {
  return headers.filter((_, at) => !unwanted((headers[at - (at % 2)] as string).toLowerCase()));
}

/** Issuers of tokens, by their names in security definitions. */
export type TokenIssuers = Readonly<Record<string, TokenIssuer>>;

/** Where a request contains a key. */
interface CredentialPlace {
  readonly in: 'header' | 'query';
  readonly name: string;
}

/** A credential that a caller must present. */
export type SecurityCheck =
  | { readonly type: 'apiKey'; readonly key: CredentialPlace }
  | { readonly type: 'clientSecret'; readonly id: CredentialPlace; readonly secret: CredentialPlace }
  | { readonly type: 'token'; readonly issuer: TokenIssuer };

/**
 * Reads `securityDefinitions`. As in OpenWhisk's gateway, `client_id` with `client_secret` is one check of both. Throws
 * SwaggerError for a definition that cannot be enforced, so that no API is more open than its document says.
 */
export function compileSecurity(swagger: JsonObject, issuers: TokenIssuers): SecurityCheck[] {
  const definitions = Object.entries(objectAt(swagger, 'securityDefinitions') ?? {});
  const id = definitions.find(([name]) => name === 'client_id')?.[1];
  const secret = definitions.find(([name]) => name === 'client_secret')?.[1];
  const isPair = id !== undefined && secret !== undefined;
  const checks: SecurityCheck[] = isPair
    ? [{ type: 'clientSecret', id: place('client_id', id), secret: place('client_secret', secret) }]
    : [];
  for (const [name, definition] of definitions) {
    if (isPair && (name === 'client_id' || name === 'client_secret')) continue;
    checks.push(compileDefinition(name, definition, issuers));
  }
  return checks;
}

function compileDefinition(name: string, definition: JsonValue, issuers: TokenIssuers): SecurityCheck {
  const type = textAt(definition, 'type');
  if (type === 'apiKey') return { type: 'apiKey', key: place(name, definition) };
  if (type === 'oauth2') return { type: 'token', issuer: issuerOf(name, definition, issuers) };
  throw new SwaggerError(`Security definition '${name}' is of type '${String(type)}'; use apiKey or oauth2.`);
}

function place(name: string, definition: JsonValue): CredentialPlace {
  const where = textAt(definition, 'in') ?? 'header';
  const field = textAt(definition, 'name') ?? '';
  const isPlace = where === 'header' || where === 'query';
  if (textAt(definition, 'type') !== 'apiKey' || !isPlace || !/^[\w.-]+$/.test(field)) {
    throw new SwaggerError(`Security definition '${name}' needs type apiKey, a name, and in: header or query.`);
  }
  return { in: where, name: where === 'header' ? field.toLowerCase() : field };
}

function issuerOf(name: string, definition: JsonValue, issuers: TokenIssuers): TokenIssuer {
  const own = objectAt(definition, 'x-gateway-jwt');
  if (own === undefined) {
    const configured = Object.hasOwn(issuers, name) ? issuers[name] : undefined;
    if (configured !== undefined) return configured;
    throw new SwaggerError(
      `Security definition '${name}' has no x-gateway-jwt, and no issuer of that name is configured.`,
    );
  }
  const parsed = tokenIssuerSchema.safeParse(own);
  if (parsed.success) return parsed.data;
  throw new SwaggerError(
    `x-gateway-jwt of security definition '${name}' needs issuer, algorithms, and the secret (32 characters or more, HS algorithms) or publicKey (PEM; RSA of 2048 bits or more) that goes with them.`,
  );
}

/** The parts of a request that may contain credentials. */
interface Credentials {
  headers: IncomingHttpHeaders;
  query: URLSearchParams;
}

/** An API's keys by client id. */
type Subscriptions = Readonly<Record<string, Subscription>>;

/**
 * Checks a request against all credentials that an API requires. Returns the client id if one is required. Throws ApiError
 * (401).
 */
export function checkSecurity(
  checks: readonly SecurityCheck[],
  subscriptions: Subscriptions,
  credentials: Credentials,
  nowMs: number,
): string | undefined {
  let clientId: string | undefined;
  for (const check of checks) {
    const found = checkOne(check, subscriptions, credentials, nowMs);
    clientId ??= found;
  }
  return clientId;
}

function checkOne(
  check: SecurityCheck,
  subscriptions: Subscriptions,
  credentials: Credentials,
  nowMs: number,
): string | undefined {
  switch (check.type) {
    case 'apiKey':
      return checkKey(subscriptions, shown(credentials, check.key));
    case 'clientSecret': {
      const id = demanded(credentials, check.id);
      checkSecret(subscriptions, id, demanded(credentials, check.secret));
      return id;
    }
    case 'token':
      checkToken(check.issuer, credentials.headers.authorization, nowMs);
      return undefined;
  }
}

/** Checks a client id. Refuses the id alone for a client with a secret. */
function checkKey(subscriptions: Subscriptions, key: string | undefined): string {
  const isKnown = key !== undefined && Object.hasOwn(subscriptions, key);
  if (!isKnown || subscriptions[key]?.secretHash !== undefined) throw unauthorized();
  return key;
}

function checkSecret(subscriptions: Subscriptions, id: string, secret: string): void {
  const stored = Object.hasOwn(subscriptions, id) ? subscriptions[id]?.secretHash : undefined;
  if (stored === undefined || !timingSafeEqual(Buffer.from(hashOfSecret(secret)), Buffer.from(stored))) {
    throw secretMismatch();
  }
}

function demanded(credentials: Credentials, place: CredentialPlace): string {
  const value = shown(credentials, place);
  if (value === undefined) throw credentialRequired(place.name);
  return value;
}

function shown({ headers, query }: Credentials, { in: where, name }: CredentialPlace): string | undefined {
  const value = where === 'header' ? headers[name] : query.get(name);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Checks a token. Throws ApiError (401) unless it is signed by the issuer, for the audience, and valid now. */
function checkToken(issuer: TokenIssuer, authorization: string | undefined, nowMs: number): void {
  if (authorization === undefined) throw tokenMissing();
  const token = authorization.replace(/^bearer\s+/i, '');
  const key = 'secret' in issuer ? issuer.secret : issuer.publicKey;
  let claims: string | jwt.JwtPayload;
  try {
    claims = jwt.verify(token, key, {
      algorithms: issuer.algorithms,
      issuer: issuer.issuer,
      ...(issuer.audience !== undefined && { audience: issuer.audience }),
      clockTolerance: issuer.clockToleranceSeconds,
      clockTimestamp: Math.floor(nowMs / 1000),
    });
  } catch (error) {
    if (error instanceof jwt.JsonWebTokenError) throw tokenRefused(reasonOf(error));
    throw error;
  }
  if (typeof claims === 'string' || claims.exp === undefined) throw tokenRefused('it has no time of expiry');
}

function reasonOf(error: jwt.JsonWebTokenError): string {
  if (error instanceof jwt.TokenExpiredError) return 'it has expired';
  if (error instanceof jwt.NotBeforeError) return 'it is not valid yet';
  if (error.message.startsWith('jwt issuer')) return 'it is from another issuer';
  if (error.message.startsWith('jwt audience')) return 'it is for another audience';
  return 'it is malformed or its signature does not hold';
}

/** SHA-256 of a client secret, hexadecimal. */
export function hashOfSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

/** Most calls in each window of time. */
export interface RateLimit {
  readonly calls: number;
  readonly windowMs: number;
}

const unitsMs: Readonly<Record<string, number>> = { second: 1000, minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/** Bound on the length of a window, as each length has its own counters. */
const maxUnits = 1000;

/** Reads `[{unit, units, rate}]`; an unknown unit is a minute, as in OpenWhisk's gateway. Throws SwaggerError. */
export function compileRateLimit(value: JsonValue | undefined): RateLimit | undefined {
  if (value === undefined || value === null) return undefined;
  const first = Array.isArray(value) ? value[0] : undefined;
  if (first === undefined) return undefined;
  const calls = valueAt(first, 'rate');
  const units = valueAt(first, 'units') ?? 1;
  if (!isCount(calls, 1_000_000_000) || !isCount(units, maxUnits)) {
    throw new SwaggerError(`A rate limit needs a rate above zero, and units from 1 to ${maxUnits}.`);
  }
  return { calls, windowMs: units * (unitsMs[textAt(first, 'unit') ?? ''] ?? 60_000) };
}

function isCount(value: JsonValue | undefined, max: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= max;
}

/** Increments the count of `key` in the current window of `windowMs` and returns the new count. */
export type CountInWindow = (key: string, windowMs: number) => Awaitable<number>;

/** Counts one call of `key` at `nowMs`. Throws ApiError (429) above the limit. */
export async function checkRate(count: CountInWindow, limit: RateLimit, key: string, nowMs: number): Promise<void> {
  if ((await count(key, limit.windowMs)) <= limit.calls) return;
  throw rateLimitExceeded(Math.ceil((limit.windowMs - (nowMs % limit.windowMs)) / 1000));
}
