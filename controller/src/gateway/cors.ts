import type { IncomingHttpHeaders } from 'node:http';
import type { Answer } from '../http/answer.js';

const corsPrefix = 'access-control-';
const methods = 'GET, POST, PUT, DELETE, PATCH, HEAD, OPTIONS';

/** The answer to a browser that asks before it calls. */
export function preflightAnswer(headers: IncomingHttpHeaders): Answer {
  const wanted = headers['access-control-request-headers'];
  return {
    status: 200,
    body: '',
    contentType: null,
    ...(typeof wanted === 'string' && { headers: ['Access-Control-Allow-Headers', wanted] }),
  };
}

/** An answer with the gateway's CORS headers, without any, or as it is; the headers are those of OpenWhisk's gateway. */
export function withCors(mode: CorsMode, { origin }: IncomingHttpHeaders, answer: Answer): Answer {
  if (mode === 'leave') return answer;
  const given = answer.headers ?? [];
  if (mode === 'strip') return { ...answer, headers: without(given, (name) => name.startsWith(corsPrefix)) };
  const own = new Map([
    ['access-control-allow-origin', origin ?? '*'],
    ['access-control-allow-methods', methods],
    ['access-control-allow-credentials', 'true'],
  ]);
  return { ...answer, headers: [...without(given, (name) => own.has(name)), ...[...own].flat(), 'Vary', 'Origin'] };
}

/** Names and values in turn, without those whose lower-case name is `unwanted`. */
function without(headers: readonly string[], unwanted: (name: string) => boolean): string[] {
  return headers.filter((_, at) => !unwanted((headers[at - (at % 2)] as string).toLowerCase()));
}

/** What the gateway does about CORS: answers for the action, takes the action's headers away, or neither. */
export type CorsMode = 'answer' | 'strip' | 'leave';
