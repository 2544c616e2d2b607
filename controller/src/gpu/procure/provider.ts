// The SPI of providers, from which machines are rented.
import type { Market } from '@gpuwhisk/gpu/view/decision';

/** A rented machine. */
export interface RentedMachine {
  /** The provider's name of it. */
  machine: string;
  /** What it costs, in the operator's currency; absent: the price of its market. */
  pricePerHour?: number;
}

/** The announced end of a machine. */
export interface MachineNotice {
  machine: string;
  /** When it will be taken away, epoch ms. */
  leavesAt: number;
}

/** Prices per hour by market, in the operator's currency; a market that is absent has none at present. */
export type MarketPrices = Partial<Record<Market, number>>;

/** Rents machines. Every method may be repeated, and may be called again after a call that got no answer. */
export interface Provider {
  /**
   * Rents a machine that starts an invoker with label `machine` = `request` (`gpu.node.labels`) by itself. Repeated with one
   * `request` it gives the same machine. Throws NoMachineError if the market has none.
   */
  acquire(request: string, market: Market): Promise<RentedMachine>;
  /**
   * Gives back the machine of a request: `machine`, or whatever was rented for the request if that is undefined. A machine
   * that is not rented is no error.
   */
  release(request: string, machine: string | undefined): Promise<void>;
  /** The present prices. */
  prices(): Promise<MarketPrices>;
  /** All notices of machines that have not been taken away yet. */
  notices(): Promise<MachineNotice[]>;
  /** Ends what the provider keeps on this machine. */
  close?(): Promise<void>;
}

/** Thrown if a market has no machine at present. */
export class NoMachineError extends Error {
  override name = 'NoMachineError';
}

/** Thrown for an answer of a provider that cannot be right; `message` names the field. */
export class ProviderAnswerError extends Error {
  override name = 'ProviderAnswerError';
}
