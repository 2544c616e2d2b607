import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import type { ActionResolver, ResolvedAction } from '../actions/action-resolver.js';
import type { ApiContext } from './api-context.js';
import { maxPayloadOf } from '../entitlement/limits.js';
import { checkInvocable, invocationAnswer, readInvokeOptions } from '../http/invocation.js';
import type { InvokeOptions } from '../http/invocation.js';
import { acceptsJson, writeAnswer, writeError } from '../http/answer.js';
import type { Answer } from '../http/answer.js';
import {
  ClientGoneError,
  checkContentType,
  checkDeclaredLength,
  parseArguments,
  readBody,
  transactionIdOf,
} from '../http/request.js';
import type { Identities } from '../authentication/authentication.js';

const prefix = '/api/v1/namespaces/';
/** Number of parsed queries in the cache; most callers repeat the same query. */
const rememberedQueries = 100;

/** A warm invocation, whose caller and action are both cached. */
interface WarmInvocation {
  identity: Identity;
  resolved: ResolvedAction;
  query: string;
}

/**
 * Reads `/api/v1/namespaces/{namespace}/actions/[{package}/]{name}?query` if caller, action and package are cached. Returns
 * undefined for other requests, which the router answers.
 */
function recognise(
  request: IncomingMessage,
  identities: Identities,
  resolver: ActionResolver,
): WarmInvocation | undefined {
  const { url } = request;
  if (request.method !== 'POST' || url === undefined || !url.startsWith(prefix)) return undefined;
  const question = url.indexOf('?', prefix.length);
  const pathEnd = question < 0 ? url.length : question;
  const slash = url.indexOf('/', prefix.length);
  const nameAt = slash + '/actions/'.length;
  if (slash < 0 || nameAt >= pathEnd || !url.startsWith('/actions/', slash)) return undefined;
  const path = url.slice(nameAt, pathEnd);
  if (path.includes('%')) return undefined;
  const identity = identities.cached(request.headers.authorization);
  if (identity === undefined) return undefined;
  const given = url.slice(prefix.length, slash);
  const namespace = given === '_' ? identity.namespace.name : given;
  const packageEnd = path.indexOf('/');
  const name =
    packageEnd < 0
      ? { namespace, name: path }
      : { namespace, packageName: path.slice(0, packageEnd), name: path.slice(packageEnd + 1) };
  const resolved = resolver.cached(identity, name);
  if (resolved === undefined || !acceptsJson(request.headers.accept)) return undefined;
  return { identity, resolved, query: question < 0 ? '' : url.slice(question + 1) };
}

/**
 * The fast path of warm invocations, past the router. The returned function answers a request and returns true, or returns
 * false for the router. It uses the same parts as the route of api/actions.ts.
 */
export function createInvokeRoute(
  context: Pick<
    ApiContext,
    | 'actionResolver'
    | 'clock'
    | 'config'
    | 'identities'
    | 'invoker'
    | 'logger'
    | 'manifest'
    | 'random'
    | 'requestTraces'
    | 'throttles'
  >,
): (request: IncomingMessage, response: ServerResponse) => boolean {
  // While other requests are under way, answers are written together, so that a sleeping client wakes up once.
  let underWay = 0;
  const answers: { response: ServerResponse; transactionId: string; answer: Answer }[] = [];
  const writeAnswers = (): void => {
    for (const { response, transactionId, answer } of answers.splice(0)) {
      try {
        writeAnswer(response, transactionId, answer);
      } catch (error) {
        writeError(response, error, transactionId, context.logger);
      }
    }
  };
  const known = new Map<string, InvokeOptions>();
  const optionsOf = (query: string): InvokeOptions => {
    const before = known.get(query);
    if (before !== undefined) return before;
    const options = readInvokeOptions(new URLSearchParams(query), context.config.blockingWaitMs);
    if (known.size >= rememberedQueries) known.clear();
    known.set(query, options);
    return options;
  };
  const answer = async (
    request: IncomingMessage,
    response: ServerResponse,
    { identity, resolved, query }: WarmInvocation,
  ): Promise<void> => {
    const transactionId = transactionIdOf(request, context.random);
    underWay++;
    try {
      const admitted = context.throttles.admit(identity);
      if (admitted !== undefined) await admitted;
      const maxPayload = maxPayloadOf(context, identity);
      checkDeclaredLength(request, maxPayload);
      const { blocking, waitMs, result } = optionsOf(query);
      const body = await readBody(request, maxPayload, context.clock);
      checkContentType(request.headers['content-type'], body.length);
      const payload = parseArguments(body);
      checkInvocable(resolved.action, payload, context.manifest());
      const { action, binding } = resolved;
      const trace = context.requestTraces?.of(request);
      const invocation = { action, binding, identity, payload, blocking, waitMs, transactionId, trace };
      const outcome = await context.invoker.invoke(invocation);
      const text = invocationAnswer(outcome, result);
      if (underWay === 1) writeAnswer(response, transactionId, text);
      else if (answers.push({ response, transactionId, answer: text }) === 1) context.clock.defer(writeAnswers);
    } catch (error) {
      if (!(error instanceof ClientGoneError)) writeError(response, error, transactionId, context.logger);
    } finally {
      underWay--;
    }
  };
  return (request, response) => {
    if (context.logger.isLevelEnabled('debug') || request.headers['x-ow-extra-logging'] !== undefined) return false;
    const invocation = recognise(request, context.identities, context.actionResolver);
    if (invocation === undefined) return false;
    void answer(request, response, invocation);
    return true;
  };
}
