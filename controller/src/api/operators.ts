import { operatorsOnly } from '@gpuwhisk/common/errors';
import { transactionLogger } from '@gpuwhisk/common/logging';
import type { Answer } from '../http/answer.js';
import type { ApiContext } from './dependencies.js';
import type { IdentifiedCall } from './route.js';

/** A handler for operators only: others get ApiError (403). What changes something is logged. */
export function forOperators(
  { config, logger }: ApiContext,
  handle: (call: IdentifiedCall) => Promise<Answer>,
): (call: IdentifiedCall) => Promise<Answer> {
  return async (call) => {
    const { identity, request, transactionId } = call;
    if (!config.operators.includes(identity.subject)) throw operatorsOnly();
    if (request.method !== 'GET') {
      const line = { operator: identity.subject, method: request.method, params: call.params };
      transactionLogger(logger, transactionId, false).info(line, 'an operator changes the platform');
    }
    return handle(call);
  };
}
