// The gateway's server: finds the API and the resource of a request, applies the policies, calls the web action.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isApiError } from '@gpuwhisk/common/errors';
import {
  gatewayError,
  gatewayFailureBody,
  gatewayNotFound,
  gatewayUriTooLong,
  verbNotSupported,
} from '@gpuwhisk/common/gateway-errors';
import { transactionLogger } from '@gpuwhisk/common/logging';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { HttpHandler } from '@gpuwhisk/common/system/network';
import type { Random } from '@gpuwhisk/common/system/random';
import { writeAnswer } from '../http/answer.js';
import type { Answer } from '../http/answer.js';
import { ClientGoneError, maxUriLength, logAnswered, transactionIdOf } from '../http/request.js';
import type { WebActionCaller } from '../web/web-handler.js';
import { parseWebUrl } from '../web/web-request.js';
import type { ApiRegistry, ServedApi } from './api-registry.js';
import { checkSecurity, preflightAnswer, withCors, checkRate } from './api-policies.js';
import type { Target, CompiledApi, PathSegment, Resource } from './compile-api.js';
import type { CountInWindow } from './api-policies.js';

/** Dependencies of the gateway. */
interface GatewayDependencies {
  registry: ApiRegistry;
  callWebAction: WebActionCaller;
  countInWindow: CountInWindow;
  clock: Clock;
  random: Random;
  logger: Logger;
}

interface GatewayCall {
  request: IncomingMessage;
  transactionId: string;
  path: RequestPath;
  /** The query with its question mark, or ''. */
  search: string;
}

/** The server of the APIs that route management stores: `/api/<tenant>/<base path>/<path>`. */
export function createGateway(dependencies: GatewayDependencies): HttpHandler {
  const { clock, random, logger } = dependencies;
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const startedMs = clock.monotonicMs();
    const transactionId = transactionIdOf(request, random);
    let answer: Answer;
    try {
      answer = await answerCall(dependencies, request, transactionId);
    } catch (error) {
      if (error instanceof ClientGoneError) return;
      answer = failureAnswer(error, transactionId, logger);
    }
    writeAnswer(response, transactionId, answer, 'none');
    logAnswered(logger, response, transactionId, clock.monotonicMs() - startedMs);
  };
  return (request, response) => void serve(request, response);
}

async function answerCall(
  dependencies: GatewayDependencies,
  request: IncomingMessage,
  transactionId: string,
): Promise<Answer> {
  const url = request.url ?? '';
  if (url.length > maxUriLength) throw gatewayUriTooLong(maxUriLength);
  const question = url.indexOf('?');
  const search = question < 0 ? '' : url.slice(question);
  const whole = readPath(question < 0 ? url : url.slice(0, question));
  const [root, tenant, ...segments] = whole?.segments ?? [];
  if (whole === undefined || root !== 'api' || tenant === undefined) throw gatewayNotFound();
  const route = findRoute(await dependencies.registry.servedBy(tenant), segments);
  if (route === undefined) throw gatewayNotFound();
  const { cors } = route.api.compiled;
  const call: GatewayCall = { request, transactionId, path: { segments, raw: whole.raw.slice(2) }, search };
  try {
    return withCors(cors, request.headers, await answerRoute(dependencies, call, route));
  } catch (error) {
    if (error instanceof ClientGoneError) throw error;
    return withCors(cors, request.headers, failureAnswer(error, transactionId, dependencies.logger));
  }
}

/** Answers a request for an API. Throws ApiError, ClientGoneError. */
async function answerRoute(
  dependencies: GatewayDependencies,
  call: GatewayCall,
  { api, resource }: FoundRoute<ServedApi>,
): Promise<Answer> {
  const { record, compiled } = api;
  const { method = '', headers } = call.request;
  if (method === 'OPTIONS' && compiled.cors === 'answer') return preflightAnswer(headers);
  if (!resource.operations.has(method)) throw verbNotSupported();
  const nowMs = dependencies.clock.now();
  const query = new URLSearchParams(call.search);
  const clientId = checkSecurity(compiled.security, record.subscriptions, { headers, query }, nowMs);
  if (compiled.rateLimit !== undefined) {
    // Callers without their own key share one count of the API.
    const key = clientId === undefined ? record.artifactId : `${record.artifactId} ${clientId}`;
    await checkRate(dependencies.countInWindow, compiled.rateLimit, key, nowMs);
  }
  const target = resource.operations.get(method);
  return target === undefined
    ? jsonText(502, gatewayFailureBody(502))
    : await callTarget(dependencies, call, target, resource.segments.length);
}

async function callTarget(
  { callWebAction }: GatewayDependencies,
  { request, transactionId, path, search }: GatewayCall,
  target: Target,
  matchedSegments: number,
): Promise<Answer> {
  const behind = target.takesPath ? path.raw : path.raw.slice(matchedSegments);
  const url = parseWebUrl([target.path, ...behind].join('/') + search);
  if (url === undefined) return jsonText(502, gatewayFailureBody(502));
  const method = target.method ?? request.method ?? '';
  const headers = { ...request.headers, ...target.headers, 'x-forwarded-url': publicUrl(request) };
  return await callWebAction({ request, method, headers, url, transactionId });
}

/** The URL that the caller used, from the headers of proxies in front of the gateway. */
function publicUrl({ headers, url = '' }: IncomingMessage): string {
  const given = (name: string): string | undefined => {
    const value = headers[name];
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  const host = given('x-forwarded-host') ?? given('host') ?? '';
  const prefix = given('x-forwarded-prefix') ?? '';
  return `${given('x-forwarded-proto') ?? 'http'}://${host}${prefix}${given('x-forwarded-uri') ?? url}`;
}

function jsonText(status: number, body: string): Answer {
  return { status, body, contentType: 'application/json' };
}

/** The answer to a failed request, in the form of OpenWhisk's gateway. Errors other than ApiError are logged. */
function failureAnswer(error: unknown, transactionId: string, logger: Logger): Answer {
  if (!isApiError(error)) transactionLogger(logger, transactionId, false).error({ err: error }, 'a request failed');
  const { status, message, headers } = isApiError(error) ? error : gatewayError();
  return {
    status,
    body: `${JSON.stringify({ status, message: `Error: ${message}` })}\n`,
    contentType: 'application/json; charset=utf-8',
    ...(headers !== undefined && { headers: Object.entries(headers).flat() }),
  };
}

/** A request's path below `/api/<tenant>`. */
interface RequestPath {
  /** Decoded segments. */
  readonly segments: readonly string[];
  /** Segments as sent. */
  readonly raw: readonly string[];
}

/**
 * Reads a path without its empty segments. Undefined for paths that a later decoder could read differently: dots, encoded
 * slashes, bad encoding.
 */
function readPath(path: string): RequestPath | undefined {
  const raw = path.split('/').filter((segment) => segment !== '');
  const segments: string[] = [];
  for (const each of raw) {
    let segment: string;
    try {
      segment = decodeURIComponent(each);
    } catch (error) {
      if (error instanceof URIError) return undefined;
      throw error;
    }
    if (segment === '.' || segment === '..' || /[/\\]|\p{Cc}/u.test(segment)) return undefined;
    segments.push(segment);
  }
  return { segments, raw };
}

/** The API and resource of a request. */
interface FoundRoute<Api extends { compiled: CompiledApi }> {
  readonly api: Api;
  readonly resource: Resource;
}

/**
 * Finds the resource whose path is the longest prefix of the request's path. Among equals, text takes precedence over
 * parameters, from the left. The rest of the path is passed on, as by OpenWhisk's gateway.
 */
function findRoute<Api extends { compiled: CompiledApi }>(
  apis: readonly Api[],
  segments: readonly string[],
): FoundRoute<Api> | undefined {
  let best: FoundRoute<Api> | undefined;
  for (const api of apis) {
    for (const resource of api.compiled.resources) {
      if (!beginsWith(segments, resource.segments)) continue;
      if (best === undefined || isCloser(resource.segments, best.resource.segments)) best = { api, resource };
    }
  }
  return best;
}

function beginsWith(segments: readonly string[], template: readonly PathSegment[]): boolean {
  return template.length <= segments.length && template.every((each, at) => each === null || each === segments[at]);
}

function isCloser(one: readonly PathSegment[], other: readonly PathSegment[]): boolean {
  if (one.length !== other.length) return one.length > other.length;
  for (const [at, segment] of one.entries()) {
    if ((segment === null) !== (other[at] === null)) return segment !== null;
  }
  return false;
}
