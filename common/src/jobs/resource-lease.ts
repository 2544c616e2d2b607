import type { ClusterState, Lease } from '../state/cluster-state.js';
import type { Clock, Timer } from '../system/clock.js';

/** What resources are taken with. */
export interface LeaseOptions {
  clock: Clock;
  /** Where resources are taken. */
  leases: Pick<ClusterState, 'acquireLease' | 'renewLease' | 'releaseLease'>;
  /** Told of what did not work and is tried again. */
  onWarning?: (warning: Error) => void;
}

const leaseTtlMs = 10_000;

/**
 * Does `work` while `holder` has the resource for itself, and calls `onLost` where it loses it meanwhile. False, and
 * nothing was done, where another one has it.
 */
export async function withResource(
  options: LeaseOptions,
  { resource, holder }: { resource: string; holder: string },
  work: () => Promise<void>,
  onLost: () => void,
): Promise<boolean> {
  const lease = await options.leases.acquireLease(`jobs/${resource}`, holder, leaseTtlMs);
  if (lease === undefined) return false;
  const renewal = keep(options, lease, onLost);
  try {
    await work();
  } finally {
    renewal.cancel();
    await options.leases.releaseLease(lease);
  }
  return true;
}

/** Renews a lease in time, until it is cancelled or the lease is lost. */
function keep({ clock, leases, onWarning }: LeaseOptions, lease: Lease, onLost: () => void): Timer {
  let isOver = false;
  let timer: Timer;
  const renewLater = (): void => {
    timer = clock.setBackgroundTimer(leaseTtlMs / 3, () => void renew());
  };
  const renew = async (): Promise<void> => {
    const isRenewed = await leases.renewLease(lease, leaseTtlMs).catch((error: unknown) => {
      onWarning?.(error as Error);
      return false;
    });
    if (isOver) return;
    if (isRenewed) renewLater();
    else onLost();
  };
  renewLater();
  return {
    cancel: () => {
      isOver = true;
      timer.cancel();
    },
  };
}
