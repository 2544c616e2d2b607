import type { IncomingMessage, ServerResponse } from 'node:http';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import type { ActionCache } from '../actions/action-cache.js';
import type { ApiContext } from '../api/dependencies.js';
import { boundsOf } from '../api/dependencies.js';
import { checkInvocable, invocationAnswer, readInvokeOptions } from '../api/invocation.js';
import { acceptsJson } from '../http/accept.js';
import { writeAnswer, writeError } from '../http/answer.js';
import { ClientGoneError, checkContentType, checkDeclaredLength, parseArguments, readBody } from '../http/body.js';
import { transactionIdOf } from '../http/transaction.js';
import type { Identities } from '../identities.js';

const prefix = '/api/v1/namespaces/';
const noQuery = new URLSearchParams();

/** A warm invocation: its caller and action are in the caches. */
interface WarmInvocation {
  identity: Identity;
  action: WhiskAction;
  query: URLSearchParams;
}

/**
 * Reads `/api/v1/namespaces/{own}/actions/{name}?query` where caller and action are known; undefined for whatever
 * else, which the router answers.
 */
function recognise(request: IncomingMessage, identities: Identities, actions: ActionCache): WarmInvocation | undefined {
  const { url } = request;
  if (request.method !== 'POST' || url === undefined || !url.startsWith(prefix)) return undefined;
  const question = url.indexOf('?', prefix.length);
  const pathEnd = question < 0 ? url.length : question;
  const slash = url.indexOf('/', prefix.length);
  const nameAt = slash + '/actions/'.length;
  if (slash < 0 || nameAt >= pathEnd || !url.startsWith('/actions/', slash)) return undefined;
  const name = url.slice(nameAt, pathEnd);
  if (name.includes('/') || name.includes('%')) return undefined;
  const identity = identities.cached(request.headers.authorization);
  if (identity === undefined) return undefined;
  const own = identity.namespace.name;
  const namespace = url.slice(prefix.length, slash);
  if (namespace !== '_' && namespace !== own) return undefined;
  const action = actions.cached(own, name);
  if (action === undefined || !acceptsJson(request.headers.accept)) return undefined;
  return { identity, action, query: question < 0 ? noQuery : new URLSearchParams(url.slice(question + 1)) };
}

/**
 * The short way of warm invocations, past the router: the returned function answers a request and returns true, or
 * leaves it alone and returns false. It does what the route of api/actions.ts does, with the same parts.
 */
export function createInvokeRoute(
  context: ApiContext,
  identities: Identities,
): (request: IncomingMessage, response: ServerResponse) => boolean {
  const answer = async (
    request: IncomingMessage,
    response: ServerResponse,
    { identity, action, query }: WarmInvocation,
  ): Promise<void> => {
    const transactionId = transactionIdOf(request, context.random);
    try {
      const { maxPayloadBytes } = boundsOf(context, identity);
      checkDeclaredLength(request, maxPayloadBytes);
      const { blocking, waitMs, result } = readInvokeOptions(query, context.config.blockingWaitMs);
      const body = await readBody(request, maxPayloadBytes);
      checkContentType(request.headers['content-type'], body.length);
      const payload = parseArguments(body);
      checkInvocable(action, payload, context.manifest());
      const outcome = await context.invoker.invoke({ identity, action, payload, blocking, waitMs, transactionId });
      writeAnswer(response, transactionId, invocationAnswer(outcome, result));
    } catch (error) {
      if (!(error instanceof ClientGoneError)) writeError(response, error, transactionId, context.logger);
    }
  };
  return (request, response) => {
    if (context.logger.isLevelEnabled('debug') || request.headers['x-ow-extra-logging'] !== undefined) return false;
    const invocation = recognise(request, identities, context.actions);
    if (invocation === undefined) return false;
    void answer(request, response, invocation);
    return true;
  };
}
