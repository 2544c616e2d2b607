import { createHash } from 'node:crypto';

/**
 * Why code is not what was registered; undefined if its SHA-256 is `digest` (lower-case hexadecimal). To be asked right before
 * the code is handed to the process that runs it.
 */
export function digestError(code: Uint8Array, digest: string): string | undefined {
  const is = createHash('sha256').update(code).digest('hex');
  return is === digest ? undefined : `The code's SHA-256 is ${is}, not ${digest} as registered.`;
}
