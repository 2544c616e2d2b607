// Clusters of replays whose GPUs are alike.
import type { IdleInstance } from '@gpuwhisk/gpu/simulate/node-rows';
import type { SimulatedCluster } from '@gpuwhisk/gpu/simulate/replay';
import type { SimulatedPlace } from '@gpuwhisk/gpu/simulate/simulated-gpu';

/** That processes stay after their runs, as the platform's do, until their memory is needed. */
interface KeptInstances {
  /** Start of a task in one, ms. */
  warmMs: number;
  /** By GPU, in order: what is there at the beginning. */
  initial: readonly (readonly IdleInstance[])[];
}

/** GPUs that are alike. */
export interface AlikeGpus {
  gpus: number;
  type: string;
  mode: 'mps' | 'timeslice' | 'exclusive';
  memoryMiB: number;
  /** Whether the limit of what runs can be moved below its class; absent: it cannot. */
  movesShares?: boolean;
  /** GPUs of a node. */
  perNode: number;
  /** Absent: every task starts in a new process, at the share that was decided. */
  kept?: KeptInstances;
}

/** A cluster of GPUs that are alike. */
export function alike({
  gpus,
  type,
  mode,
  memoryMiB,
  movesShares = false,
  perNode,
  kept,
}: AlikeGpus): SimulatedCluster {
  const places = Array.from({ length: gpus }, (_, index): SimulatedPlace => {
    const place = {
      id: `gpu${index}`,
      node: `node${Math.floor(index / perNode)}`,
      type,
      mode,
      memoryMiB,
      ...(movesShares && { movesShares }),
    };
    return kept === undefined ? place : { ...place, idle: kept.initial[index] ?? [] };
  });
  return { places, ...(kept && { warmMs: kept.warmMs }) };
}
