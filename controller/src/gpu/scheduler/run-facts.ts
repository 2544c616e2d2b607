import type { RunFacts } from '@gpuwhisk/common/gpu-decisions';
import type { FunctionProfiles } from '@gpuwhisk/gpu/stages/profile/function-profiles';
import type { LoggedRun } from '@gpuwhisk/gpu/stages/profile/run-log';
import type { ObservedRun } from '@gpuwhisk/gpu/view/decision';

/** Most neighbours of a run that are kept, and the least part of its time that counts. */
const [mostBeside, leastPart] = [8, 0.01];

/** What is told of a run that has ended, by the times alone that were measured before it. */
export function runFacts(run: LoggedRun & ObservedRun, profiles: Pick<FunctionProfiles, 'aloneMs'>): RunFacts {
  const { task, gpu, ranMs, isWarm, workloads = [], hasUnknownNeighbours } = run;
  const aloneMs = profiles.aloneMs(task, gpu);
  const isTimed = aloneMs !== undefined && aloneMs > 0 && isWarm;
  return {
    ...(aloneMs !== undefined && { aloneMs }),
    ...(isTimed && { slowdown: ranMs / aloneMs }),
    beside: besideOf(run),
    ...(workloads.length > 0 && { workloads: workloads.length }),
    ...(hasUnknownNeighbours && { unknownBeside: true as const }),
  };
}

function besideOf({ beside }: ObservedRun): RunFacts['beside'] {
  const byFunction = new Map<string, RunFacts['beside'][number]>();
  for (const { task, part } of beside) {
    const { function: action, namespace } = task;
    const key = `${namespace} ${action}`;
    const before = byFunction.get(key)?.part ?? 0;
    byFunction.set(key, { action, namespace, part: before + part });
  }
  const counting = [...byFunction.values()].filter(({ part }) => part >= leastPart);
  return counting.sort((one, other) => other.part - one.part).slice(0, mostBeside);
}

/** Whether something else than its neighbours may have changed the time of a run. */
export function isDisturbed({ hasUnknownNeighbours, hasMovedShares = false, workloads, alsoOn }: LoggedRun): boolean {
  return hasUnknownNeighbours || hasMovedShares || workloads !== undefined || alsoOn.length > 0;
}
