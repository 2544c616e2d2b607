// A provider of machines in a replay: what it has, and when it takes machines away.
import type { Market } from '../view/decision.js';
import type { MachineState, ProcurementState } from '../view/view.js';

/** Machines that stage `procure` of the policy can rent. Times in ms. */
export interface SimulatedProvider extends Pick<ProcurementState, 'wanted' | 'prices'> {
  /** From a request until the machine runs functions. */
  bootMs: number;
  /** A machine gets no more tasks from its notice on, but not earlier than so long before its end. */
  closesMs: number;
  /**
   * Times from request number `request` (from 1) to the machine's notice and to its end, Infinity: never; undefined: the
   * market has no machine.
   */
  machine(market: Market, request: number): { noticedMs: number; goneMs: number } | undefined;
}

/** A machine that was rented. It is paid for from `askedAt` to `goneAt`. Times in ms of the replay, Infinity: never. */
export interface RentedMachine {
  id: string;
  market: Market;
  askedAt: number;
  upAt: number;
  noticedAt: number;
  goneAt: number;
}

/** Machines of a provider. */
export class SimulatedMachines {
  readonly rented: RentedMachine[] = [];
  private requests = 0;
  private refusedAt: ProcurementState['refusedAt'] = {};

  constructor(readonly provider: SimulatedProvider) {}

  /** Asks for a machine; undefined: the market has none. */
  ask(market: Market, at: number): RentedMachine | undefined {
    this.requests += 1;
    const life = this.provider.machine(market, this.requests);
    if (life === undefined) {
      this.refusedAt = { ...this.refusedAt, [market]: at };
      return undefined;
    }
    const machine = {
      ...{ id: `machine${this.requests}`, market, askedAt: at, upAt: at + this.provider.bootMs },
      ...{ noticedAt: at + life.noticedMs, goneAt: at + life.goneMs },
    };
    this.rented.push(machine);
    return machine;
  }

  /** The provider as policies see it. */
  state(at: number): ProcurementState {
    const { wanted, prices } = this.provider;
    const there = this.rented.filter(({ goneAt }) => goneAt > at);
    const machines = there.map(({ id, market, upAt, noticedAt, goneAt }): MachineState => {
      const pricePerHour = prices[market];
      return {
        ...{ id, market, node: id, state: upAt <= at ? 'up' : 'booting' },
        ...(noticedAt <= at && { leavesAt: goneAt }),
        ...(pricePerHour !== undefined && { pricePerHour }),
      };
    });
    return { wanted, machines, prices, refusedAt: this.refusedAt };
  }
}
