import type { GpuTruth, TruthClient } from '@gpuwhisk/gpu/simulate/replay';
import type { CatalogueEntry } from '@gpuwhisk/bench/replay/workloads/catalogue';

/** Shares are sums of hundredths, which floating point does not hold exactly. */
const rounding = 1e-9;

/** Sets that ran together. */
export interface SetCounts {
  sets: number;
  /** Those that wanted more than the SMs of the GPU. */
  overfull: number;
}

/** A truth that adds to `counts` each set of two and more that it is asked for. */
export function counting(truth: GpuTruth, catalogue: readonly CatalogueEntry[], counts: SetCounts): GpuTruth {
  const saturations = new Map(catalogue.map(({ name, model }) => [name, model.saturation]));
  const wanted = ({ workload, share }: TruthClient): number => Math.min(share, saturations.get(workload) ?? 1);
  return {
    ...truth,
    slowdowns(clients, gpu) {
      if (clients.length > 1) {
        counts.sets += 1;
        if (clients.reduce((sum, one) => sum + wanted(one), 0) > 1 + rounding) counts.overfull += 1;
      }
      return truth.slowdowns(clients, gpu);
    },
  };
}
