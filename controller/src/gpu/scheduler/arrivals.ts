// Arrivals of activations: their times, the log for trials of policies, and the last request of each function.
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { GpuNeed } from '@gpuwhisk/common/gpu';
import type { PlacementRequest } from '@gpuwhisk/gpu/view/account';
import { requestOf } from './gpu-queue.js';

/** Two clocks that are not set drift by less between two decisions, and round by less, ms. */
const toleranceMs = 50;

/**
 * When those who wait have arrived, on the clock of a snapshot: reckoned from how long they wait, so that a clock that is
 * set makes no activation late, and the same each time, so that none is taken for a new arrival.
 */
export class Arrivals {
  private readonly known = new WeakMap<ActivationMessage, number>();

  /** Epoch ms. `at` and `nowMs` are the same moment, on the snapshot's clock and monotonic. */
  of({ message, arrivedMs }: { message: ActivationMessage; arrivedMs: number }, at: number, nowMs: number): number {
    const arrivedAt = at - (nowMs - arrivedMs);
    const known = this.known.get(message);
    if (known !== undefined && Math.abs(known - arrivedAt) < toleranceMs) return known;
    this.known.set(message, arrivedAt);
    return arrivedAt;
  }
}

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

  /** The arrivals since `sinceMs` (epoch ms), the oldest first; at most the last `maxArrivals`. */
  since(sinceMs: number): Arrival[] {
    return this.arrivals
      .slice(-maxArrivals)
      .filter(({ at }) => at >= sinceMs)
      .sort((one, other) => one.at - other.at);
  }
}

/** The last activation of a function: what an instance of it is launched with. */
export interface LastRequest {
  /** Without arguments, but for those that code is loaded with. */
  message: ActivationMessage;
  need: GpuNeed;
}

/** The part of an activation that is kept. */
export function lastRequestOf(message: ActivationMessage, need: GpuNeed): LastRequest {
  const { content, initArgs } = message;
  const loading = Object.entries(content ?? {}).filter(([name]) => initArgs.includes(name));
  return { message: { ...message, content: Object.fromEntries(loading) }, need };
}
