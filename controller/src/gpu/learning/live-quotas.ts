import type { Quotas } from '@gpuwhisk/gpu/share/quotas';
import type { Learned } from './learned.js';

/** The table of shares as the request path asks it. Sets whose shares were not searched for yet are noted. */
export function liveQuotas({ table, demands, metrics }: Pick<Learned, 'table' | 'demands' | 'metrics'>): Quotas {
  return {
    shareFor(set, gpuType, mode, budgetsMs, fixed) {
      const choice = table.shareFor(set, gpuType, mode, budgetsMs, fixed);
      metrics.asked(choice.source);
      // Shares mean something under MPS only.
      if (set.length > 1 && mode === 'mps' && table.wantsSearch(set, gpuType, mode)) {
        demands.asked(set, gpuType, mode, budgetsMs);
      }
      return choice;
    },
  };
}
