import { SwaggerError } from '@gpuwhisk/common/gateway-errors';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { tokenIssuerSchema } from '@gpuwhisk/common/token-issuer';
import type { TokenIssuer } from '@gpuwhisk/common/token-issuer';
import { objectAt, textAt } from './json-path.js';

/** Issuers of tokens by the name that security definitions call them. */
export type TokenIssuers = Readonly<Record<string, TokenIssuer>>;

/** Where a caller shows a key. */
export interface CredentialPlace {
  readonly in: 'header' | 'query';
  readonly name: string;
}

/** Something that a caller must show. */
export type SecurityCheck =
  | { readonly type: 'apiKey'; readonly key: CredentialPlace }
  | { readonly type: 'clientSecret'; readonly id: CredentialPlace; readonly secret: CredentialPlace }
  | { readonly type: 'token'; readonly issuer: TokenIssuer };

/**
 * Reads `securityDefinitions`. `client_id` with `client_secret` is one check of both, as in OpenWhisk's gateway.
 * Throws SwaggerError for a definition that cannot be enforced: an API is never more open than its document says.
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
