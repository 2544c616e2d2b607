import type { FirstShare } from '@gpuwhisk/gpu/algorithms/faashare/first-share';
import type { PlaceAccount } from '@gpuwhisk/gpu/ledger/ledger';
import { kindOf } from '@gpuwhisk/gpu/ledger/places';
import type { RunningTask, Task } from '@gpuwhisk/gpu/view/view';

/** By container, the function that runs beside it and the namespace that this one runs for. */
export type UnmeasuredPairs = ReadonlyMap<string, Pick<Task, 'function' | 'namespace'>>;

/** The pairs on places that run together by the rule for unknown functions, because nothing is measured of them yet. */
export function unmeasuredPairs(
  rule: FirstShare,
  accounts: readonly PlaceAccount[],
  runningOn: (account: PlaceAccount) => readonly RunningTask[],
): UnmeasuredPairs {
  const pairs = new Map<string, Pick<Task, 'function' | 'namespace'>>();
  for (const account of accounts) {
    const running = runningOn(account);
    if (!rule.isUnmeasured(kindOf(account.place), running)) continue;
    const busy = account.occupants.filter(({ users }) => users > 0);
    for (const [at, { container }] of busy.entries()) {
      const other = running[1 - at]?.task;
      if (container !== undefined && other !== undefined) pairs.set(container, other);
    }
  }
  return pairs;
}
