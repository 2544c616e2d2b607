// The spot market as PROTEAN emulates it (section 5): revocations drawn for each machine at fixed intervals.
import { hashOf } from '../../numeric/hash.js';

/** Probabilities of a revocation in an interval: high, moderate and low availability of spot machines (section 5). */
export const revocationProbabilities = { high: 0, moderate: 0.354, low: 0.708 } as const;

/** Prices per hour of a machine with 8 A100 GPUs, US dollars (table 3). */
export const providerPrices = {
  aws: { onDemand: 32.7726, spot: 9.8318 },
  azure: { onDemand: 32.77, spot: 18.0235 },
  google: { onDemand: 30.0846, spot: 8.8147 },
} as const;

/** A spot market whose draws depend on nothing but these numbers. */
export interface SpotMarket {
  seed: number;
  /** Probability of a revocation in an interval, 0–1. */
  revocation: number;
}

/** Whether the spot machine `machine` is revoked at the end of its interval `interval`, counted from 1. */
export function isRevoked({ seed, revocation }: SpotMarket, machine: string, interval: number): boolean {
  return fractionOf(`${seed} revoke ${machine} ${interval}`) < revocation;
}

/**
 * Whether the market has a spot machine for request number `request`. The paper gives no probability of that; here it is the
 * complement of the probability of a revocation, as both stand for its three availabilities.
 */
export function hasSpot({ seed, revocation }: SpotMarket, request: number): boolean {
  return fractionOf(`${seed} acquire ${request}`) >= revocation;
}

function fractionOf(text: string): number {
  return hashOf(text) / 0x1_0000_0000;
}
