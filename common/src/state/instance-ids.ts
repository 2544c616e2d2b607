import { sleep } from '../system/clock.js';
import type { Clock, Timer } from '../system/clock.js';
import type { ClusterState } from './cluster-state.js';

/** Thrown where a number cannot be had; `message` says why. */
export class InstanceIdError extends Error {
  override name = 'InstanceIdError';
}

/** Who asks for a number. */
export interface InstanceIdRequest {
  state: ClusterState;
  clock: Clock;
  /** `invokers` or `controllers`: numbers are their own. */
  sort: string;
  /** Of one process of the cluster: it gets the same number each time. */
  name: string;
  /** The number that it had, should the cluster have forgotten. */
  hadBefore?: number;
}

const leaseMs = 3000;
const retryMs = 100;
/** A state that has begun with nothing gives no lease for as long as one lasts. */
const maxTries = 200;

/**
 * The number of a process: the one that its name has, else the one that it had, else the smallest that no name has.
 * Throws InstanceIdError, and StateUnavailableError.
 */
export async function assignInstanceId(request: InstanceIdRequest): Promise<number> {
  const { state, clock, sort, name } = request;
  for (let tries = 0; tries < maxTries; tries++) {
    const lease = await state.acquireLease(`instances ${sort}`, `${name} ${process.pid}`, leaseMs);
    if (lease !== undefined) {
      try {
        return await assign(request);
      } finally {
        await state.releaseLease(lease);
      }
    }
    await sleep(clock, retryMs);
  }
  throw new InstanceIdError(`'${name}' got no number among the ${sort}: others hold the right to give them out`);
}

async function assign({ state, sort, name, hadBefore }: InstanceIdRequest): Promise<number> {
  const table = `instances ${sort}`;
  const rows = await state.rows(table);
  const own = rows.get(name);
  if (typeof own === 'number') return own;
  const owners = new Map([...rows].map(([owner, number]) => [number, owner]));
  if (hadBefore !== undefined) {
    const owner = owners.get(hadBefore);
    if (owner !== undefined) {
      throw new InstanceIdError(`number ${hadBefore} of the ${sort}, which '${name}' had, belongs to '${owner}' now`);
    }
  }
  let number = hadBefore ?? 0;
  while (hadBefore === undefined && owners.has(number)) number++;
  await state.setRow(table, name, number);
  return number;
}

/** Less, with the time to connect again, than what a state that has begun with nothing waits before it gives a lease. */
const tellMs = 1000;

/** Has the cluster know the number of a process for as long as it runs, should its state forget. */
export function keepInstanceId(
  { state, clock, sort, name }: InstanceIdRequest,
  number: number,
  onWarning: (warning: Error) => void,
): { close(): void } {
  let timer: Timer;
  let isClosed = false;
  const tell = async (): Promise<void> => {
    try {
      await state.setRow(`instances ${sort}`, name, number);
    } catch (error) {
      onWarning(error as Error);
    }
    if (!isClosed) timer = clock.setBackgroundTimer(tellMs, () => void tell());
  };
  timer = clock.setBackgroundTimer(tellMs, () => void tell());
  return {
    close: () => {
      isClosed = true;
      timer.cancel();
    },
  };
}
