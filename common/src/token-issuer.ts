import { createPublicKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { z } from 'zod';

const symmetric = ['HS256', 'HS384', 'HS512'] as const;
const asymmetric = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512'] as const;

const curves: Readonly<Record<string, string>> = { ES256: 'prime256v1', ES384: 'secp384r1', ES512: 'secp521r1' };
const minRsaBits = 2048;

function publicKeyOf(text: string): KeyObject | undefined {
  if (text.includes('PRIVATE KEY')) return undefined;
  try {
    return createPublicKey(text);
  } catch {
    return undefined;
  }
}

/** Whether signatures of the algorithm can be checked with the key. */
function fits(algorithm: string, { asymmetricKeyType, asymmetricKeyDetails }: KeyObject): boolean {
  if (algorithm.startsWith('ES')) return asymmetricKeyDetails?.namedCurve === curves[algorithm];
  return asymmetricKeyType === 'rsa' && (asymmetricKeyDetails?.modulusLength ?? 0) >= minRsaBits;
}

const common = {
  /** What claim `iss` must be. */
  issuer: z.string().min(1),
  /** What claim `aud` must be or contain; absent: not looked at. */
  audience: z.string().min(1).optional(),
  /** By how much clocks may differ, seconds. */
  clockToleranceSeconds: z.number().int().min(0).max(300).default(0),
};

/**
 * Who signs the JSON web tokens of an API's callers. Key and algorithms go together, so that a public key never
 * serves as a secret; `none` is no algorithm.
 */
export const tokenIssuerSchema = z.union([
  z.strictObject({
    ...common,
    algorithms: z.array(z.enum(symmetric)).min(1),
    /** As long as the shortest hash at least, in characters. */
    secret: z.string().min(32),
  }),
  z
    .strictObject({
      ...common,
      algorithms: z.array(z.enum(asymmetric)).min(1),
      /** PEM: an RSA key of 2048 bits or more, or an elliptic one on the algorithm's curve. */
      publicKey: z.string(),
    })
    .refine(({ algorithms, publicKey }) => {
      const key = publicKeyOf(publicKey);
      return key !== undefined && algorithms.every((algorithm) => fits(algorithm, key));
    }, 'publicKey is no public key (PEM) that these algorithms can use'),
]);

/** Who signs tokens, and how. */
export type TokenIssuer = z.infer<typeof tokenIssuerSchema>;
