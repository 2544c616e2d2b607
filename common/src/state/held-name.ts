// The name that a process holds in the cluster's state, and the fence that keeps a retired process from beginning
// anything.
import type { Logger } from '../logging.js';
import { sleep } from '../system/clock.js';
import type { Clock, Timer } from '../system/clock.js';
import type { ClusterState, Lease } from './cluster-state.js';
import { InstanceIdError } from './instance-ids.js';

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

const retryMs = 100;
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
      await sleep(clock, retryMs);
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
