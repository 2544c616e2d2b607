import type { Quotas } from '@gpuwhisk/gpu/quota/quotas';
import type { Learned } from './learned.js';

/** The table of shares as the request path asks it. */
export function liveQuotas({ table, metrics }: Pick<Learned, 'table' | 'metrics'>): Quotas {
  return {
    shareFor(set, gpuType, mode, budgetsMs, fixed) {
      const choice = table.shareFor(set, gpuType, mode, budgetsMs, fixed);
      metrics.asked(choice.source);
      return choice;
    },
  };
}
