import type { IncomingMessage } from 'node:http';
import { newTransactionId } from '@gpuwhisk/common/ids';
import type { Random } from '@gpuwhisk/common/system/random';

/** Transactions of the platform itself start so; clients may not. */
const systemPrefix = 'sid_';

/** The transaction id of a request: the client's `X-Request-ID`, or a new one. */
export function transactionIdOf(request: IncomingMessage, random: Random): string {
  const given = request.headers['x-request-id'];
  if (typeof given === 'string' && given !== '' && !given.startsWith(systemPrefix)) return given;
  return newTransactionId(random);
}

/** Whether the client asks for debug lines about this request. */
export function wantsExtraLogging(request: IncomingMessage): boolean {
  const given = request.headers['x-ow-extra-logging'];
  return typeof given === 'string' && given.toLowerCase() === 'on';
}
