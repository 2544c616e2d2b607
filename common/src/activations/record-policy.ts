import type { Config } from '../config.js';
import type { ActivationStatusCode } from '../entities/activation.js';
import { ActivationStatus } from '../entities/activation.js';
import type { UserLimits } from '../entities/identity.js';
import type { ActivationMessage } from '../messages.js';

/** Which records are stored: OpenWhisk's levels. */
export type RecordLevels = Pick<Config, 'storeBlockingResultLevel' | 'storeNonBlockingResultLevel'>;

/** What of an invocation decides whether its record is stored. */
export interface RecordedCall {
  blocking: boolean;
  /** The caller asked for X-OW-EXTRA-LOGGING. */
  extraLogging: boolean;
  limits: UserLimits;
}

/** The call that a message came from. */
export function recordedCall({ blocking, transid, user }: ActivationMessage): RecordedCall {
  return { blocking, extraLogging: transid[2] === true, limits: user.limits };
}

/** Whether the record of an activation is stored (OpenWhisk's ActivationStore): never where the namespace forbids it. */
export function isRecordKept(levels: RecordLevels, call: RecordedCall, statusCode: ActivationStatusCode): boolean {
  if (call.limits.storeActivations === false) return false;
  if (call.extraLogging) return true;
  switch (call.blocking ? levels.storeBlockingResultLevel : levels.storeNonBlockingResultLevel) {
    case 'STORE_ALWAYS':
      return true;
    case 'STORE_FAILURES':
      return statusCode !== ActivationStatus.success;
    case 'STORE_FAILURES_NOT_APPLICATION_ERRORS':
      return statusCode > ActivationStatus.applicationError;
  }
}
