// The number of a process in its cluster, the name that it holds, and the fence that keeps a retired process from
// beginning anything.
import { sleep } from '../system/clock.js';
import type { Clock, Timer } from '../system/clock.js';
import type { ClusterState, Lease } from './cluster-state.js';
import type { ProcessRegistry } from './process-registry.js';
import type { Logger } from '../logging.js';

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

/** What a name is held with. */
interface HeldNameOptions {
  state: ClusterState;
  clock: Clock;
  logger: Logger;
  /** `invokers` or `controllers`: names are their own. */
  sort: string;
  /** Of the process. */
  name: string;
  /** For a name that only one process at a time can have: a restarted process takes it over at once. */
  holder: string;
  /** Told each time that the name is confirmed to be this process's. */
  fence?: LivenessFence;
  /** Whether this process was retired: asked where the cluster had lost the name. */
  isRetired: () => Promise<boolean>;
  /** Another process has the name now. */
  onLost: () => void;
}

/** A name that no other process of its sort has. */
export interface HeldName {
  /** Gives it back. */
  close(): Promise<void>;
}

/** How long a name is held without a renewal, ms. */
const nameLeaseMs = 3000;
const renewMs = 1000;

/** The lease of a process's name. */
export const nameLease = (sort: string, name: string): string => `name ${sort} ${name}`;

const nameRetryMs = 100;
/** A holder that is gone, or a state that has begun with nothing, lets the name go by then. */
const waitMs = nameLeaseMs + 2000;

/** Takes a name for the life of this process. Throws InstanceIdError where another process has it, and StateUnavailableError. */
export async function holdName(options: HeldNameOptions): Promise<HeldName> {
  const { state, clock, logger, sort, name, holder, fence, isRetired, onLost } = options;
  const leaseName = nameLease(sort, name);
  let lease = await take();
  let closed = false;
  let timer: Timer;

  async function take(): Promise<Lease> {
    for (const untilMs = clock.monotonicMs() + waitMs; ;) {
      const taken = await state.acquireLease(leaseName, holder, nameLeaseMs);
      if (taken !== undefined) return taken;
      if (clock.monotonicMs() >= untilMs) {
        throw new InstanceIdError(`'${name}' is the name of another process of the ${sort}, which runs`);
      }
      await sleep(clock, nameRetryMs);
    }
  }

  /** False: another process has the name. */
  async function keep(): Promise<boolean> {
    if (await state.renewLease(lease, nameLeaseMs)) {
      fence?.confirmed();
      return true;
    }
    const taken = await state.acquireLease(leaseName, holder, nameLeaseMs);
    if (taken !== undefined) {
      // Where that cannot be told, the name is taken again and the question asked again.
      if (await isRetired()) return false;
      lease = taken;
      fence?.confirmed();
      return true;
    }
    // A state that has begun with nothing gives no lease for a while, and knows no holder.
    return (await state.currentLease(leaseName)) === undefined;
  }

  async function look(): Promise<void> {
    try {
      if (!(await keep()) && !closed) {
        logger.fatal({ name }, `this process was retired, or another of the ${sort} has its name: it ends`);
        onLost();
        return;
      }
    } catch (error) {
      // Of the state, or of the store where the retirement is.
      logger.warn({ error: String(error) }, 'the name of this process was not kept in the cluster');
    }
    if (!closed) timer = clock.setBackgroundTimer(renewMs, () => void look());
  }

  timer = clock.setBackgroundTimer(renewMs, () => void look());
  return {
    async close() {
      closed = true;
      timer.cancel();
      try {
        await state.releaseLease(lease);
      } catch (error) {
        // It ends by itself.
        logger.warn({ error: String(error) }, 'the name of this process was not given back');
      }
    },
  };
}

/**
 * Keeps a process that its cluster may have retired from beginning anything. A process that hears neither Redis nor Kafka may
 * be taken for dead; it begins nothing until its name is confirmed. While it hears one of them, it is alive to the others.
 */
export class LivenessFence {
  private heardMs: number;
  private heardAtMs: number;
  private isBroken = false;

  constructor(
    private readonly clock: Clock,
    /** A silence that is longer breaks the fence, ms. */
    private readonly silentMs: number,
  ) {
    this.heardMs = clock.monotonicMs();
    this.heardAtMs = clock.now();
  }

  /** An engine has answered. */
  heard(): void {
    this.look();
    this.heardMs = this.clock.monotonicMs();
    this.heardAtMs = this.clock.now();
  }

  /** The name of this process is its own, and it was not retired. */
  confirmed(): void {
    this.heard();
    this.isBroken = false;
  }

  /** Whether something may begin now. */
  get isOpen(): boolean {
    this.look();
    return !this.isBroken;
  }

  /** The time of day goes on, too, while a machine is suspended. */
  private look(): void {
    const { clock, silentMs } = this;
    if (clock.monotonicMs() - this.heardMs > silentMs || clock.now() - this.heardAtMs > silentMs) this.isBroken = true;
  }
}
