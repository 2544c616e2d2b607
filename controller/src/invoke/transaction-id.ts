import type { TransactionIdJson } from '@gpuwhisk/common/messages';
import type { InvokeRequest } from './invoke-service.js';

/** The transaction id of a request as messages carry it. */
export function transactionIdJson({ transactionId, extraLogging }: InvokeRequest, nowMs: number): TransactionIdJson {
  return extraLogging === true ? [transactionId, nowMs, true] : [transactionId, nowMs];
}
