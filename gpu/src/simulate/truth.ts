import type { GpuState } from '../view/view.js';

/** A workload that computes on a GPU, by name, with its MPS share. */
export interface TruthClient {
  workload: string;
  share: number;
}

/** What tells one kind of GPU from another. */
export type GpuKind = Pick<GpuState, 'type' | 'mode'>;

/** What really happens on a GPU. Policies never see it. */
export interface GpuTruth {
  /** Time of each client beside the others over its time alone at the full share, without noise. */
  slowdowns(clients: readonly TruthClient[], gpu?: GpuKind): Float64Array;
  /** Part of the GPU's SMs that they use, 0 to 1. */
  used(clients: readonly TruthClient[]): number;
  /** Standard deviation of the logarithm of a run's time. */
  noise: number;
}
