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
  /** Undefined while the caller waits, and for ever if the process died meanwhile. */
  answer?:
    | { type: 'accepted'; atMs: number }
    | { type: 'completed'; atMs: number; activation: WhiskActivation }
    | { type: 'refused'; atMs: number; status: number };
}

/** One time that an activation reached its code. */
export interface Run {
  activationId: string;
  life: number;
  startedMs: number;
  limitMs: number;
  outcome?: CallOutcome;
  /** The platform ended its container while it ran. */
  cutShort?: boolean;
}

/** One stretch from a start of the platform to its end. */
export interface Life {
  /** undefined while it lasts. */
  endedMs?: number;
  /** The disk was made to fail in it. */
  diskFailed: boolean;
  /** When it ended, the store was or had just been failing or slow. */
  storeWasIll: boolean;
}

/** Whether a call is of a function that needs a GPU. */
export function needsGpu({ action }: Call): boolean {
  return parameterValue(action.annotations, 'gpu') !== undefined;
}

/** What an answer and a record have in common: all but the logs and what the store adds. */
export function comparable(document: StoredDocument): JsonObject {
  const shared: JsonObject = { ...document };
  for (const field of ['_rev', 'logs', 'updated']) delete shared[field];
  return JSON.parse(JSON.stringify(shared)) as JsonObject;
}
