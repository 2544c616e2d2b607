import { sleep } from '../system/clock.js';
import type { Clock, Timer } from '../system/clock.js';
import type { ClusterState } from './cluster-state.js';
import type { ProcessRegistry } from './process-registry.js';

/** Thrown where a number cannot be had; `message` says why. */
export class InstanceIdError extends Error {
  override name = 'InstanceIdError';
}

/** Who asks for a number. */
export interface InstanceIdRequest {
  state: ClusterState;
  clock: Clock;
  /** Which numbers belong to which data folders. */
  registry: ProcessRegistry;
  /** Of one process of the cluster at a time. */
  name: string;
  /** The id of its data folder, which gets the same number each time. */
  holder: string;
  /** The number that the folder had, should the cluster have forgotten. */
  hadBefore?: number;
}

const leaseMs = 3000;
const retryMs = 100;
/** A state that has begun with nothing gives no lease for as long as one lasts. */
const maxTries = 200;

/**
 * The number of a process: the one that its data folder has, else the smallest that none has. A number stays with its folder,
 * whose start marks tell what began under it. Throws InstanceIdError, StateUnavailableError, and the errors of the store.
 */
export async function assignInstanceId(request: InstanceIdRequest): Promise<number> {
  const { state, clock, name } = request;
  const { sort } = request.registry;
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

async function assign({ state, registry, name, holder, hadBefore }: InstanceIdRequest): Promise<number> {
  const { sort } = registry;
  const known = await registry.all();
  const own = known.find((process) => process.holder === holder);
  if (own?.retired !== undefined) {
    throw new InstanceIdError(
      `this data folder is that of number ${own.number} of the ${sort}, '${own.name}', which was retired: start with an empty one`,
    );
  }
  if (own !== undefined && own.name !== name) {
    // A copy of the folder may be in use under its name.
    throw new InstanceIdError(
      `this data folder is that of number ${own.number} of the ${sort}, '${own.name}': start it with --name ${own.name}`,
    );
  }
  const namesake = known.find((process) => process.name === name && process.retired === undefined);
  if (namesake !== undefined && namesake !== own) {
    const command = `wskadmin ${sort.replace(/s$/, '')} retire ${name}`;
    throw new InstanceIdError(
      `'${name}' of the ${sort} has number ${namesake.number} with another data folder: start it with that one, or retire it (${command})`,
    );
  }
  const number = own?.number ?? (await take());
  await state.setRow(`instances ${sort}`, name, number);
  return number;

  async function take(): Promise<number> {
    const rows = await state.rows(`instances ${sort}`);
    // Those of releases that did not register are in the cluster's state only.
    const owners = new Map([...rows].map(([owner, number]) => [number, owner]));
    for (const process of known) owners.set(process.number, process.name);
    const before = hadBefore ?? rows.get(name);
    const owner = owners.get(before ?? -1);
    if (hadBefore !== undefined && owner !== undefined && owner !== name) {
      throw new InstanceIdError(`number ${hadBefore} of the ${sort}, which '${name}' had, belongs to '${owner}' now`);
    }
    const isTaken = (number: number): boolean => known.some((process) => process.number === number);
    let number = typeof before === 'number' && !isTaken(before) ? before : 0;
    while (isTaken(number) || (owners.has(number) && owners.get(number) !== name)) number++;
    if (!(await registry.add({ number, name, holder }))) {
      throw new InstanceIdError(`number ${number} of the ${sort} was given to another process meanwhile: start again`);
    }
    return number;
  }
}

/** Less, with the time to connect again, than what a state that has begun with nothing waits before it gives a lease. */
const tellMs = 1000;

/** The table of when each process was last there, epoch ms by its own clock. */
export const lifeSigns = (sort: string): string => `alive ${sort}`;

/** Has the cluster know the number of a process for as long as it runs, should its state forget. */
export function keepInstanceId(
  { state, clock, registry: { sort }, name }: InstanceIdRequest,
  number: number,
  onWarning: (warning: Error) => void,
): { close(): void } {
  let timer: Timer;
  let isClosed = false;
  const tell = async (): Promise<void> => {
    try {
      await state.setRow(`instances ${sort}`, name, number);
      await state.setRow(lifeSigns(sort), name, clock.now());
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
