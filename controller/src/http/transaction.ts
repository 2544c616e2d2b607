import type { IncomingMessage, ServerResponse } from 'node:http';
import { newTransactionId } from '@gpuwhisk/common/ids';
import { transactionLogger } from '@gpuwhisk/common/logging';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Random } from '@gpuwhisk/common/system/random';

/** Transactions of the platform itself start so; clients may not. */
const systemPrefix = 'sid_';

/** Longer ones would only bloat messages and logs; ours have 32 characters. */
const maxGivenLength = 256;

/** The transaction id of a request: the client's `X-Request-ID`, or a new one. */
export function transactionIdOf(request: IncomingMessage, random: Random): string {
  const given = request.headers['x-request-id'];
  const usable =
    typeof given === 'string' && given !== '' && given.length <= maxGivenLength && !given.startsWith(systemPrefix);
  return usable ? given : newTransactionId(random);
}

/** Whether the client asks for debug lines about this request. */
export function wantsExtraLogging(request: IncomingMessage): boolean {
  const given = request.headers['x-ow-extra-logging'];
  return typeof given === 'string' && given.toLowerCase() === 'on';
}

/** Logs at debug level that a request was answered. */
export function logAnswered(
  logger: Logger,
  { req: request, statusCode }: ServerResponse<IncomingMessage>,
  transactionId: string,
  elapsedMs: number,
): void {
  const extraLogging = wantsExtraLogging(request);
  if (!extraLogging && !logger.isLevelEnabled('debug')) return;
  const { method, url = '' } = request;
  const line = { method, path: url.split('?', 1)[0], status: statusCode, durationMs: Math.round(elapsedMs) };
  transactionLogger(logger, transactionId, extraLogging).debug(line, 'answered');
}
