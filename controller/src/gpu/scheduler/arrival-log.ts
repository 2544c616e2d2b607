import type { GpuNeed } from '@gpuwhisk/common/gpu';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { PlacementRequest } from '@gpuwhisk/gpu/view/account';
import { requestOf } from './gpu-queue.js';

/** Arrivals that are kept, at most. */
const maxArrivals = 10_000;

/** An activation with a GPU, without its arguments and its caller. */
export interface Arrival {
  activationId: string;
  version: string;
  need: GpuNeed;
  request: PlacementRequest;
  /** Epoch ms. */
  at: number;
}

/** The last activations with a GPU that this controller had to place. */
export class ArrivalLog {
  private arrivals: Arrival[] = [];

  /** Records one. */
  add(message: ActivationMessage, need: GpuNeed): void {
    const { activationId, action, transid } = message;
    const { version = '' } = action;
    this.arrivals.push({ activationId, version, need, request: requestOf(message, need), at: transid[1] });
    if (this.arrivals.length > 2 * maxArrivals) this.arrivals = this.arrivals.slice(-maxArrivals);
  }

  /** Those since `sinceMs` (epoch), the oldest first; of too many the last ones. */
  since(sinceMs: number): Arrival[] {
    return this.arrivals
      .slice(-maxArrivals)
      .filter(({ at }) => at >= sinceMs)
      .sort((one, other) => one.at - other.at);
  }
}
