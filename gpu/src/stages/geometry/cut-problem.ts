// Facts that keep a device from being cut, for operators and policies alike.

/** Facts about a device and its node. */
export interface CutFacts {
  /** Whether its node may cut devices: they are simulated, or `gpu.manage.mig` is on. */
  isManaged: boolean;
  /** Processes on the slices that would go that are not the platform's. */
  foreign: number;
}

/** Why a device may not be cut now; undefined if it may. */
export function cutProblem({ isManaged, foreign }: CutFacts): string | undefined {
  if (!isManaged) return 'gpu.manage.mig is off on its node';
  if (foreign === 0) return undefined;
  return `${foreign === 1 ? 'a process' : `${foreign} processes`} not of the platform ${foreign === 1 ? 'uses' : 'use'} it`;
}
