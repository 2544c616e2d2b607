import { fairParts } from '../../stand-in-model.js';

/** What a client may have of the SMs. */
export interface ShareDemand {
  /** MPS share, 0 < share ≤ 1. */
  share: number;
  /** The smallest share that serves it as well as the whole GPU would. */
  saturation: number;
}

/**
 * What each client gets of the SMs: the max-min fair division of the whole among demands of min(share, saturation).
 * No client gets more than it demands, and they sum to 1 at most.
 */
export function effectiveShares(clients: readonly ShareDemand[]): number[] {
  return fairParts(
    clients.map(({ share, saturation }) => Math.min(share, saturation)),
    1,
  );
}
