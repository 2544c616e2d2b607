import type { DeviceMode } from '@gpuwhisk/common/gpu';
import type { QuotaJob, Quotas } from '@gpuwhisk/gpu/share/quotas';
import type { Learned } from './learned.js';

type Known = Pick<Learned, 'table' | 'curves'>;

/** Whether samples are to be run for a set: to find its shares, or the fill of a single function. */
export function wantsSamples(
  { table, curves }: Known,
  set: readonly QuotaJob[],
  gpuType: string,
  mode: DeviceMode,
): boolean {
  // Shares mean something under MPS only.
  if (mode !== 'mps') return false;
  const [only, ...others] = set;
  if (only === undefined || others.length > 0) return table.wantsSearch(set, gpuType, mode);
  return only.features === undefined && curves.of(only, gpuType, mode) === undefined;
}

/**
 * The table of shares as the request path asks it. It notes sets without a finished search, and single functions without
 * a fill: a function without a fill is never placed beside others.
 */
export function liveQuotas(learned: Known & Pick<Learned, 'demands' | 'metrics'>): Quotas {
  const { table, demands, metrics } = learned;
  return {
    shareFor(set, gpuType, mode, budgetsMs, fixed) {
      const choice = table.shareFor(set, gpuType, mode, budgetsMs, fixed);
      metrics.asked(choice.source);
      if (wantsSamples(learned, set, gpuType, mode)) demands.asked(set, gpuType, mode, budgetsMs);
      return choice;
    },
  };
}
