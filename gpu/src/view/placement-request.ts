import type { GpuIsolation, Placement, Rejection, Share } from '@gpuwhisk/common/gpu';
import type { Work } from './account.js';

/** What a function asks of a device. */
export interface PlacementRequest extends Work {
  isolation: GpuIsolation;
  /** Where requests run as one: whose it is. An instance serves one subject then; absent: all of the namespace. */
  subject?: string;
  share: Share;
  /** Activations that one instance runs together, at most. */
  batch: number;
}

/** Where to, or why not. */
export interface PlacementChoice {
  placement?: Placement;
  /** The occupant whose instance it will run in. */
  reuses?: string;
  /** The best alternatives, at most `mostRejections`. */
  rejected: Rejection[];
}
