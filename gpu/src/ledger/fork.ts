// A copy of a place's account for plans: what would be there if work was put on it.
import type { DeviceHealth, DeviceMode } from '@gpuwhisk/common/gpu';
import { neededMiB, tasksMiB } from './account.js';
import type { Account, PlaceAccount, Tenant, Work } from './account.js';
import { thousandths } from './occupancy.js';

/** Sums of a place as they would be with the work that a plan puts there; the ledger's account stays as it is. */
export class PlaceFork implements Account {
  readonly mode: DeviceMode;
  readonly health: DeviceHealth | undefined;
  readonly capacityMiB: number;
  readonly clientLimit: number;
  readonly workloads: number;

  private constructor(
    /** The account that it is a copy of. */
    readonly account: PlaceAccount,
    public availableMiB: number,
    public clients: number,
    public busy: number,
    public staying: readonly Tenant[],
    /** Thousandths of the SMs. */
    private loadSum: number,
  ) {
    this.mode = account.mode;
    this.health = account.health;
    this.capacityMiB = account.capacityMiB;
    this.clientLimit = account.clientLimit;
    this.workloads = account.workloads;
  }

  /** The place as it is; `shares`: those that what runs there counts with, fractions of the SMs. */
  static of(account: PlaceAccount, shares: readonly number[]): PlaceFork {
    const { availableMiB, clients, busy, staying } = account;
    const load = shares.reduce((sum, share) => sum + thousandths(share), 0);
    return new PlaceFork(account, availableMiB, clients, busy, staying, load);
  }

  /** The same place once all that the platform has there is gone. */
  emptied(): PlaceFork {
    const { account } = this;
    return new PlaceFork(account, tasksMiB(account), 0, 0, [], 0);
  }

  /** A copy that changes by itself. */
  copy(): PlaceFork {
    return new PlaceFork(this.account, this.availableMiB, this.clients, this.busy, this.staying, this.loadSum);
  }

  /** Shares that are given away, as a fraction of the SMs. */
  get load(): number {
    return this.loadSum / 1000;
  }

  /** Puts work there, in a process of its own. */
  hold(work: Work, share: number): void {
    this.availableMiB -= neededMiB(work, this);
    this.loadSum += thousandths(share);
    this.clients += 1;
    this.busy += 1;
    this.staying = [...this.staying, work];
  }

  /** Takes work away that was put there. */
  release(work: Work, share: number): void {
    this.availableMiB += neededMiB(work, this);
    this.loadSum -= thousandths(share);
    this.clients -= 1;
    this.busy -= 1;
    this.staying = this.staying.filter((one) => one !== work);
  }

  /** Gives work that was put there another share. */
  reshare(from: number, to: number): void {
    this.loadSum += thousandths(to) - thousandths(from);
  }
}
