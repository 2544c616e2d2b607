// The condition under which the bound of a workload holds functions off its device.
import { createHash } from 'node:crypto';

/** The variable that carries a workload's token in the environment of its processes. */
export const workloadTokenVariable = 'GPUWHISK_WORKLOAD_TOKEN';

/** The facts of a registration by which a workload is protected. */
export interface WorkloadGuard {
  /** Registered with the operator's key: protected without a process. */
  byOperator?: true;
  /** Digest of the token by which the agent of the node knows the workload's processes; absent: it has no token. */
  tokenHash?: string;
}

/** The digest of a workload's token, which registrations keep instead of the token. */
export function workloadTokenHash(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}
