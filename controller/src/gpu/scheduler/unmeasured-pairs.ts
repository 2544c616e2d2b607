import type { FirstShare } from '@gpuwhisk/gpu/share/first-share';
import type { PlaceAccount } from '@gpuwhisk/gpu/view/ledger';
import type { Task } from '@gpuwhisk/gpu/view/view';
import type { SeenPlace } from './cluster-view.js';

/** By container, the function that runs beside it and the namespace that this one runs for. */
export type UnmeasuredPairs = ReadonlyMap<string, Pick<Task, 'function' | 'namespace'>>;

/** The pairs on places that run together by the rule for unknown functions, because nothing is measured of them yet. */
export function unmeasuredPairs(
  rule: FirstShare,
  accounts: readonly PlaceAccount[],
  seen: readonly SeenPlace[],
): UnmeasuredPairs {
  const pairs = new Map<string, Pick<Task, 'function' | 'namespace'>>();
  const byId = new Map(accounts.map((account) => [account.id, account]));
  for (const { gpu } of seen) {
    if (!rule.isUnmeasured(gpu, gpu.running)) continue;
    // The running tasks of a place are those of its occupants in use, in their order.
    const busy = (byId.get(gpu.id)?.occupants ?? []).filter(({ users }) => users > 0);
    for (const [at, { container }] of busy.entries()) {
      const other = gpu.running[1 - at]?.task;
      if (container !== undefined && other !== undefined) pairs.set(container, other);
    }
  }
  return pairs;
}
