import type { ShareClass } from '@gpuwhisk/common/gpu';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import type { Identity } from '@gpuwhisk/common/entities/identity';

/** One invocation that passed authentication and validation. */
export interface InvokeRequest {
  identity: Identity;
  /** Its parameters are merged with those of its package and binding. */
  action: WhiskAction;
  /** `ns/pkg` of the binding that the action was reached through. */
  binding?: string | undefined;
  /** The caller's arguments, not yet merged with the action's parameters; an array in sequences only. */
  payload: JsonObject | JsonValue[];
  blocking: boolean;
  /** How long a blocking caller waits, ms. */
  waitMs: number;
  transactionId: string;
  /** The caller asked for X-OW-EXTRA-LOGGING: the record is stored whatever the configuration says. */
  extraLogging?: boolean;
  /** The activation of the sequence or composition that this one is a part of. */
  cause?: string;
  /** Absent: it is a request. */
  sample?: SampleRun;
  /** Absent: it is a request. */
  launch?: Launch;
}

/** A run of a function's sample, to measure it on a GPU with a share. It counts towards no limit of its namespace. */
export interface SampleRun {
  /** UUID of the GPU or MIG instance. */
  gpu: string;
  shareClass: ShareClass;
  /** Longer runs are ended, ms; loading is not part of it. */
  maxMs: number;
}

/** The start of an instance whose code is loaded before a request comes. It counts towards no limit of its namespace. */
export interface Launch {
  /** UUIDs of the GPUs or of the MIG instance; absent: where the least is given away. */
  gpus?: readonly string[];
  /** Absent: the share that the function asks for. */
  shareClass?: ShareClass;
}

/** The answer to the caller of an invocation. */
export type InvokeOutcome =
  { type: 'accepted'; activationId: string } | { type: 'completed'; activation: WhiskActivation };

/** Turns requests into activations. Throws ApiError (429, 503, 413). */
export interface InvokeService {
  invoke(request: InvokeRequest): Promise<InvokeOutcome>;
}
