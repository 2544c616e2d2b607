import type { ShareClass } from '@gpuwhisk/common/gpu';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import type { TraceContext } from '@gpuwhisk/common/tracing';
import type { TrainingRun } from '@gpuwhisk/common/training';

/** One invocation that passed authentication and validation. */
export interface InvokeRequest {
  identity: Identity;
  /** The action; its parameters are merged with those of its package and binding. */
  action: WhiskAction;
  /** `ns/pkg` of the binding that the action was reached through. */
  binding?: string | undefined;
  /** The caller's arguments, not yet merged with the action's parameters; an array in sequences only. */
  payload: JsonObject | JsonValue[];
  blocking: boolean;
  /** How long a blocking caller waits, ms. */
  waitMs: number;
  transactionId: string;
  /** Whether the caller sent X-OW-EXTRA-LOGGING; the record is then stored whatever the configuration says. */
  extraLogging?: boolean;
  /** The span above those of the activation; absent: it is not traced, or begins a trace. */
  trace?: TraceContext | undefined;
  /** The activation of the sequence or composition that invokes this one. */
  cause?: string;
  /** Absent unless the run is a sample. */
  sample?: SampleRun;
  /** Absent unless the run is a launch. */
  launch?: Launch;
  /** Absent unless the run is a training job's. */
  training?: TrainingRun;
  /** The id that the activation gets, of a form as newActivationId makes it; absent: a new one. */
  activationId?: string;
}

/** A run of a function's sample that measures it on a GPU with a share. Limits of its namespace do not apply. */
export interface SampleRun {
  /** UUID of the GPU or MIG instance. */
  gpu: string;
  shareClass: ShareClass;
  /** Longest run without loading, ms; longer ones are ended. */
  maxMs: number;
  /** Requests of the sample that run as one; absent: 1. */
  batch?: number;
}

/** The start of an instance whose code is loaded ahead of requests. Limits of its namespace do not apply. */
export interface Launch {
  /** UUIDs of the GPUs or of the MIG instance; absent: the place with the least allocated. */
  gpus?: readonly string[];
  /** Absent: the share that the function requests. */
  shareClass?: ShareClass;
}

/** The answer to the caller of an invocation. */
export type InvokeOutcome =
  { type: 'accepted'; activationId: string } | { type: 'completed'; activation: WhiskActivation };

/** Turns requests into activations. Throws ApiError (429, 503, 413). */
export interface InvokeService {
  invoke(request: InvokeRequest): Promise<InvokeOutcome>;
}
