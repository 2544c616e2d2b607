// The spot market as PROTEAN emulates it (section 5): revocations drawn for each machine at fixed intervals.
import { hashOf } from '../../numeric/hash.js';

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
