import { timingSafeEqual, createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import jwt from 'jsonwebtoken';
import {
  credentialRequired,
  secretMismatch,
  tokenMissing,
  tokenRefused,
  unauthorized,
} from '@gpuwhisk/common/gateway-errors';
import type { TokenIssuer } from '@gpuwhisk/common/token-issuer';
import type { Subscription } from './api-registry.js';
import type { CredentialPlace, SecurityCheck } from './security-definitions.js';

/** What a caller shows. */
export interface Credentials {
  headers: IncomingHttpHeaders;
  query: URLSearchParams;
}

/** An API's keys by client id. */
export type Subscriptions = Readonly<Record<string, Subscription>>;

/**
 * Checks what a caller shows against everything that an API demands. Returns the client id if one was demanded.
 * Throws ApiError (401).
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

/** A client that has a secret does not get in with its id alone. */
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

/** Throws ApiError (401) unless the token is signed by the issuer, for the audience, and valid now. */
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
