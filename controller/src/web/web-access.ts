import { timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import { defaultAllowedHeaders } from '../http/answer.js';

/** What an action's annotations say about its life on the web. */
export interface WebAnnotations {
  exported: boolean;
  /** The action reads query and body itself. */
  raw: boolean;
  /** The action answers OPTIONS itself, and no CORS header is added. */
  customOptions: boolean;
}

/** Reads the annotations `web-export`, `raw-http` and `web-custom-options`; only `true` itself counts. */
export function readWebAnnotations({ annotations }: WhiskAction): WebAnnotations {
  const isTrue = (key: string): boolean => parameterValue(annotations, key) === true;
  return { exported: isTrue('web-export'), raw: isTrue('raw-http'), customOptions: isTrue('web-custom-options') };
}

/**
 * Whether annotation `require-whisk-auth` lets a request in: `true` wants a caller that showed who they are, a string
 * or number wants itself in the header `X-Require-Whisk-Auth`, `false` and absence want nothing; anything else is a
 * mistake that lets nobody in.
 */
export function mayCall({ annotations }: WhiskAction, headers: IncomingHttpHeaders, isIdentified: boolean): boolean {
  const wanted = parameterValue(annotations, 'require-whisk-auth');
  if (wanted === undefined || wanted === false) return true;
  if (wanted === true) return isIdentified;
  if (typeof wanted !== 'string' && typeof wanted !== 'number') return false;
  const given = headers['x-require-whisk-auth'];
  return typeof given === 'string' && areEqual(given, String(wanted));
}

/** Compares in a time that tells nothing about where the texts differ. */
function areEqual(given: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** The names of `corsHeaders`, in lower case. */
export const corsHeaderNames: ReadonlySet<string> = new Set(
  ['origin', 'methods', 'headers'].map((what) => `access-control-allow-${what}`),
);

/** The CORS headers of every answer of an action that leaves OPTIONS to the platform; names and values in turn. */
export function corsHeaders(headers: IncomingHttpHeaders): string[] {
  return [
    'Access-Control-Allow-Origin',
    '*',
    'Access-Control-Allow-Methods',
    'OPTIONS, GET, DELETE, POST, PUT, HEAD, PATCH',
    'Access-Control-Allow-Headers',
    headers['access-control-request-headers'] ?? defaultAllowedHeaders,
  ];
}
