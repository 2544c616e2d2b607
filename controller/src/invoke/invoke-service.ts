import type { JsonObject } from '@gpuwhisk/common/json';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import type { Identity } from '@gpuwhisk/common/entities/identity';

/** One invocation that passed authentication and validation. */
export interface InvokeRequest {
  identity: Identity;
  action: WhiskAction;
  /** The caller's arguments, not yet merged with the action's parameters. */
  payload: JsonObject;
  blocking: boolean;
  /** How long a blocking caller waits, ms. */
  waitMs: number;
  transactionId: string;
}

/** What the caller is told. */
export type InvokeOutcome =
  { type: 'accepted'; activationId: string } | { type: 'completed'; activation: WhiskActivation };

/** Turns requests into activations. Throws ApiError (429, 503, 413). */
export interface InvokeService {
  invoke(request: InvokeRequest): Promise<InvokeOutcome>;
}
