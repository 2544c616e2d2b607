import { createPublicKey } from 'node:crypto';
import { z } from 'zod';

const symmetric = ['HS256', 'HS384', 'HS512'] as const;
const asymmetric = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512'] as const;

function isPublicKey(text: string): boolean {
  if (text.includes('PRIVATE KEY')) return false;
  try {
    createPublicKey(text);
    return true;
  } catch {
    return false;
  }
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
  z.strictObject({
    ...common,
    algorithms: z.array(z.enum(asymmetric)).min(1),
    /** PEM. */
    publicKey: z.string().refine(isPublicKey, 'is no public key in PEM form'),
  }),
]);

/** Who signs tokens, and how. */
export type TokenIssuer = z.infer<typeof tokenIssuerSchema>;
