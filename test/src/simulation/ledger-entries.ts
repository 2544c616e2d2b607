import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import type { CallOutcome } from '@gpuwhisk/invoker/containers/container-factory';

/** One request of a caller. Times are monotonic, ms. */
export interface Call {
  transactionId: string;
  subject: string;
  namespace: string;
  action: WhiskAction;
  blocking: boolean;
  waitMs: number;
  sentMs: number;
  life: number;
  activationId?: string;
  /** Undefined while the caller waits, and forever if the process died meanwhile. */
  answer?:
    | { type: 'accepted'; atMs: number }
    | { type: 'completed'; atMs: number; activation: WhiskActivation }
    | { type: 'refused'; atMs: number; status: number };
}

/** One run of an activation's code. */
export interface Run {
  activationId: string;
  life: number;
  startedMs: number;
  limitMs: number;
  outcome?: CallOutcome;
  /** Whether the platform ended its container during the run. */
  cutShort?: boolean;
}

/** One life: the time from a start of the platform to its end. */
export interface Life {
  /** Undefined while the life lasts. */
  endedMs?: number;
  /** Whether the disk was made to fail in this life. */
  diskFailed: boolean;
  /** Whether the store was, or had just been, failing or slow at the end of this life. */
  storeWasIll: boolean;
}

/** Whether a call is of a function that needs a GPU. */
export function needsGpu({ action }: Call): boolean {
  return parameterValue(action.annotations, 'gpu') !== undefined;
}

/** The part that an answer and a record have in common: all but the logs and the store's own fields. */
export function comparable(document: StoredDocument): JsonObject {
  const shared: JsonObject = { ...document };
  for (const field of ['_rev', 'logs', 'updated']) delete shared[field];
  return JSON.parse(JSON.stringify(shared)) as JsonObject;
}
