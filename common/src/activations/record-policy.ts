// Whether and how large the record of an activation is stored, and whether it is there already.
import type { Config } from '../config.js';
import type { ActivationStatusCode } from '../entities/activation.js';
import { ActivationStatus, activationDocumentId } from '../entities/activation.js';
import type { UserLimits } from '../entities/identity.js';
import type { ActivationMessage } from '../messages.js';
import type { Logger } from '../logging.js';
import { NoDocumentError } from '../store/artifact-store.js';
import type { ArtifactStore, StoredDocument } from '../store/artifact-store.js';
import { sleep } from '../system/clock.js';
import type { Clock } from '../system/clock.js';
import { isJsonObject } from '../json.js';
import type { JsonObject, JsonValue } from '../json.js';

/** Which records are stored: OpenWhisk's levels. */
export type RecordLevels = Pick<Config, 'storeBlockingResultLevel' | 'storeNonBlockingResultLevel'>;

/** What of an invocation decides whether its record is stored. */
interface RecordedCall {
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

const retryMs = 1000;

/**
 * Whether an activation has a record. Asks the store until it answers: running or recording one twice would be worse
 * than waiting.
 */
export async function isRecorded(
  { store, clock, logger }: { store: ArtifactStore; clock: Clock; logger: Logger },
  { user, activationId }: ActivationMessage,
): Promise<boolean> {
  for (;;) {
    try {
      await store.get('activations', activationDocumentId(user.namespace.name, activationId));
      return true;
    } catch (error) {
      if (error instanceof NoDocumentError) return false;
      logger.error({ activationId, error: String(error) }, 'a record could not be looked up');
      await sleep(clock, retryMs);
    }
  }
}

/** What a number, a word, a quote or a comma takes, about. */
const bytesOfToken = 8;

/** About how many bytes a value takes as JSON: without making it, since every activation is measured. */
export function approximateBytes(value: JsonValue | undefined): number {
  if (typeof value === 'string') return value.length + bytesOfToken;
  if (value === null || typeof value !== 'object') return bytesOfToken;
  let bytes = bytesOfToken;
  if (Array.isArray(value)) {
    for (const element of value) bytes += approximateBytes(element);
    return bytes;
  }
  for (const name in value) bytes += name.length + approximateBytes(value[name]);
  return bytes;
}

const noLogs = 'The logs were too large to be stored.';
const noResult: JsonObject = { error: 'The result was too large to be stored.' };

/**
 * A record without the larger of its logs and its result, for a store that refuses it for its size; a line stands in their
 * place. Undefined: there is nothing left to leave out.
 */
export function smallerRecord(document: StoredDocument): StoredDocument | undefined {
  const { logs, response } = document;
  const result = isJsonObject(response) ? response.result : undefined;
  const logBytes = isIn(logs, [noLogs]) ? 0 : approximateBytes(logs);
  const resultBytes = isIn(result, noResult) ? 0 : approximateBytes(result);
  if (Math.max(logBytes, resultBytes) <= bytesOfToken) return undefined;
  if (logBytes >= resultBytes) return { ...document, logs: [noLogs] };
  return { ...document, response: { ...(response as JsonObject), result: noResult } };
}

const isIn = (value: JsonValue | undefined, note: JsonValue): boolean => JSON.stringify(value) === JSON.stringify(note);
