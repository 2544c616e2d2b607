import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { timingSafeEqual } from 'node:crypto';
import { authenticationRequired, isApiError, noSuchEntity } from '@gpuwhisk/common/errors';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import type { Config } from '@gpuwhisk/common/config';
import type { Logger } from '@gpuwhisk/common/logging';
import type { RuntimeManifest } from '@gpuwhisk/common/runtimes';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import type { ResolvedAction, ActionResolver } from '../actions/action-resolver.js';
import { maxPayloadOf } from '../entitlement/limits.js';
import type { Throttles } from '../entitlement/throttles.js';
import type { InvokeService } from '../invoke/invoke-service.js';
import { checkInvocable } from '../http/invocation.js';
import { knownError, writeAnswer, defaultAllowedHeaders } from '../http/answer.js';
import type { Answer } from '../http/answer.js';
import {
  ClientGoneError,
  checkDeclaredLength,
  maxUriLength,
  readBody,
  logAnswered,
  transactionIdOf,
} from '../http/request.js';
import type { RequestTraces } from '../http/request-traces.js';
import type { Identities } from '../authentication/authentication.js';
import { webAnswer, webErrorAnswer } from './web-answer.js';
import { plainArguments, rawArguments, parseWebUrl } from './web-request.js';
import type { WebUrl } from './web-request.js';

const methods = new Set(['GET', 'DELETE', 'POST', 'PUT', 'HEAD', 'OPTIONS', 'PATCH']);

/** Dependencies of web actions. */
interface WebDependencies {
  config: Pick<Config, 'limits' | 'blockingWaitMs'>;
  clock: Clock;
  random: Random;
  logger: Logger;
  /** The kinds that are supported at the time of the call. */
  manifest: () => RuntimeManifest;
  identities: Pick<Identities, 'cachedOwner' | 'find' | 'ofNamespace'>;
  actionResolver: Pick<ActionResolver, 'cached' | 'resolve'>;
  throttles: Pick<Throttles, 'admit'>;
  /** Absent: nothing is traced. */
  requestTraces?: RequestTraces;
  /** Runs actions, sequences and compositions. */
  invoker: InvokeService;
}

/** An action with annotation `web-export`. */
interface WebAction {
  /** The namespace in the URL, as which the action runs. */
  owner: Identity;
  resolved: ResolvedAction;
  annotations: WebAnnotations;
}

/** A call of a web action, at its own URL or through the API gateway. */
interface WebCall {
  /** The request whose body is the call's body. */
  request: IncomingMessage;
  method: string;
  headers: IncomingHttpHeaders;
  url: WebUrl;
  transactionId: string;
}

/** Answers a call of a web action, also with errors. Throws ClientGoneError. */
export type WebActionCaller = (call: WebCall) => Promise<Answer>;

/** Creates the function that answers calls of web actions. */
export function createWebCaller(context: WebDependencies): WebActionCaller {
  return async (call) => {
    let cors: string[] = [];
    let given: Answer;
    try {
      const web = knownWebAction(context, call.url) ?? (await findWebAction(context, call.url));
      const admitted = context.throttles.admit(web.owner);
      if (admitted !== undefined) await admitted;
      if (!web.annotations.customOptions) cors = corsHeaders(call.headers);
      given = await answerWebAction(context, call, web);
    } catch (error) {
      if (error instanceof ClientGoneError) throw error;
      const { transactionId } = call;
      given = webErrorAnswer(knownError(error, transactionId, context.logger), transactionId);
    }
    return { ...given, headers: withHeaders(cors, given.headers) };
  };
}

/** Serves web actions. The returned function answers a request for one and returns true, or returns false. */
export function createWebHandler(
  context: Pick<WebDependencies, 'clock' | 'random' | 'logger'>,
  callWebAction: WebActionCaller,
): (request: IncomingMessage, response: ServerResponse) => boolean {
  const answer = async (request: IncomingMessage, response: ServerResponse, url: WebUrl): Promise<void> => {
    const startedMs = context.clock.monotonicMs();
    const transactionId = transactionIdOf(request, context.random);
    const { method = '', headers } = request;
    try {
      const given = await callWebAction({ request, method, headers, url, transactionId });
      writeAnswer(response, transactionId, given, 'none');
    } catch (error) {
      if (!(error instanceof ClientGoneError)) throw error;
      return;
    }
    logAnswered(context.logger, response, transactionId, context.clock.monotonicMs() - startedMs);
  };
  return (request, response) => {
    const { url: text = '', method = '' } = request;
    if (text.length > maxUriLength || !methods.has(method)) return false;
    const url = parseWebUrl(text);
    if (url === undefined) return false;
    void answer(request, response, url);
    return true;
  };
}

/** The web action at a URL, if the caches have all entries for it. Throws ApiError (404). */
function knownWebAction({ identities, actionResolver }: WebDependencies, { action }: WebUrl): WebAction | undefined {
  const owner = identities.cachedOwner(action.namespace);
  const resolved = owner && actionResolver.cached(owner, action);
  return resolved && exported(owner, resolved);
}

/** The web action at a URL. Throws ApiError (403, 404). */
async function findWebAction({ identities, actionResolver }: WebDependencies, { action }: WebUrl): Promise<WebAction> {
  const owner = await identities.ofNamespace(action.namespace);
  const resolved = await actionResolver.resolve(owner, action).catch((error: unknown) => {
    // Errors of the owner's entities (409, 422, 500) are not shown to other callers.
    throw isApiError(error) && error.status !== 403 ? noSuchEntity() : error;
  });
  return exported(owner, resolved);
}

function exported(owner: Identity, resolved: ResolvedAction): WebAction {
  const annotations = readWebAnnotations(resolved.action);
  if (!annotations.exported) throw noSuchEntity();
  return { owner, resolved, annotations };
}

/** Invokes a web action and maps its result. Throws ApiError, ClientGoneError. */
async function answerWebAction(
  context: WebDependencies,
  { request, method, headers, url, transactionId }: WebCall,
  { owner, resolved, annotations }: WebAction,
): Promise<Answer> {
  const maxPayload = maxPayloadOf(context, owner);
  checkDeclaredLength(request, maxPayload);
  const isOptions = method === 'OPTIONS';
  if (isOptions && !annotations.customOptions) return { status: 200, body: '', contentType: null };
  const { authorization } = headers;
  const caller = authorization === undefined ? undefined : await context.identities.find(authorization);
  // An action that answers OPTIONS itself is called even without the right to call it.
  if (!isOptions && !mayCall(resolved.action, headers, caller !== undefined)) throw authenticationRequired();
  const body = await readBody(request, maxPayload, context.clock);
  const { path, query } = url;
  const user = caller?.namespace.name;
  const readArguments = annotations.raw ? rawArguments : plainArguments;
  const { payload, chosen } = readArguments({
    method,
    headers,
    path,
    query,
    body,
    ...(user !== undefined && { user }),
  });
  checkInvocable(resolved.action, chosen, context.manifest());
  const outcome = await context.invoker.invoke({
    ...resolved,
    identity: owner,
    payload,
    blocking: true,
    waitMs: context.config.blockingWaitMs,
    transactionId,
    trace: context.requestTraces?.of(request),
  });
  return webAnswer(outcome, url.extension, headers.accept, transactionId);
}

/** Appends headers (names and values in turn) to `first`, without those whose names `first` has already. */
function withHeaders(first: string[], headers: readonly string[] = []): string[] {
  const all = [...first];
  for (let at = 0; at < headers.length; at += 2) {
    const [name, value] = [headers[at] as string, headers[at + 1] as string];
    if (first.length === 0 || !corsHeaderNames.has(name.toLowerCase())) all.push(name, value);
  }
  return all;
}

/** The annotations of an action that concern web calls. */
interface WebAnnotations {
  exported: boolean;
  /** Whether the action reads query and body itself. */
  raw: boolean;
  /** Whether the action answers OPTIONS itself; no CORS header is then added. */
  customOptions: boolean;
}

/** Reads the annotations `web-export`, `raw-http` and `web-custom-options`; only the value `true` sets one. */
function readWebAnnotations({ annotations }: WhiskAction): WebAnnotations {
  const isTrue = (key: string): boolean => parameterValue(annotations, key) === true;
  return { exported: isTrue('web-export'), raw: isTrue('raw-http'), customOptions: isTrue('web-custom-options') };
}

/**
 * Whether annotation `require-whisk-auth` admits a request. `true` requires an authenticated caller. A string or number must
 * be repeated in header `X-Require-Whisk-Auth`. `false` and absence require nothing. Any other value is a mistake and
 * refuses every caller.
 */
function mayCall({ annotations }: WhiskAction, headers: IncomingHttpHeaders, isIdentified: boolean): boolean {
  const wanted = parameterValue(annotations, 'require-whisk-auth');
  if (wanted === undefined || wanted === false) return true;
  if (wanted === true) return isIdentified;
  if (typeof wanted !== 'string' && typeof wanted !== 'number') return false;
  const given = headers['x-require-whisk-auth'];
  return typeof given === 'string' && areEqual(given, String(wanted));
}

/** Compares in constant time. */
function areEqual(given: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** The names of `corsHeaders`, in lower case. */
const corsHeaderNames: ReadonlySet<string> = new Set(
  ['origin', 'methods', 'headers'].map((what) => `access-control-allow-${what}`),
);

/** The CORS headers of answers of actions that leave OPTIONS to the platform; names and values in turn. */
function corsHeaders(headers: IncomingHttpHeaders): string[] {
  return [
    'Access-Control-Allow-Origin',
    '*',
    'Access-Control-Allow-Methods',
    'OPTIONS, GET, DELETE, POST, PUT, HEAD, PATCH',
    'Access-Control-Allow-Headers',
    headers['access-control-request-headers'] ?? defaultAllowedHeaders,
  ];
}
