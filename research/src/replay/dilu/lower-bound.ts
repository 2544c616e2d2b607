// Devices that no packing goes below.
import type { Bounds } from './fleet.js';
import type { PackedInstance } from './instances.js';

/** Sums over the instances that are there, for the bound. */
export interface Load {
  /** Thousandths of the SMs, and MiB. */
  request: number;
  limit: number;
  memoryMiB: number;
  /** Instances by the number of devices that they need. */
  gangs: Map<number, number>;
  /** Devices' worth of instances that need more than half of a device's memory on each, and span none. */
  large: number;
}

/** Nothing is there. */
export function noLoad(): Load {
  return { request: 0, limit: 0, memoryMiB: 0, gangs: new Map(), large: 0 };
}

/** Adds an instance (`by` 1) or takes it away (−1); devices have `capacityMiB`. */
export function change(
  load: Load,
  { kind, gpus, request, limit, memoryMiB }: PackedInstance,
  by: 1 | -1,
  capacityMiB: number,
): void {
  load.request += by * gpus * request;
  load.limit += by * gpus * limit;
  load.memoryMiB += by * gpus * memoryMiB;
  if (kind !== 'llm' && 2 * memoryMiB > capacityMiB) load.large += by * gpus;
  const count = (load.gangs.get(gpus) ?? 0) + by;
  if (count > 0) load.gangs.set(gpus, count);
  else load.gangs.delete(gpus);
}

/**
 * The optimum of the linear relaxation on devices that are alike: minimise Σ y_i over 0 ≤ x_ij ≤ y_i ≤ 1 with Σ_i x_ij = n_j
 * (devices of instance j) and, on each device i, Σ_j r_j·x_ij ≤ Ω·y_i, Σ_j l_j·x_ij ≤ γ·y_i and Σ_j m_j·x_ij ≤ M·y_i. It has
 * a closed form. Summed over the devices, the constraints say that Σ y_i is at least each of Σ n_j·r_j / Ω, Σ n_j·l_j / γ,
 * Σ n_j·m_j / M and, since x_ij ≤ y_i, n_j. The greatest of these, spread evenly over all devices, is feasible. Devices
 * are whole, so that the bound is rounded up. Instances on fragments take shares of each of them, so that the bound, which
 * counts them once, holds for these, too.
 */
export function relaxationBound(
  { request, limit, memoryMiB, gangs }: Load,
  { omega, gamma }: Bounds,
  capacityMiB: number,
): number {
  const most = Math.max(request / omega, limit / gamma, memoryMiB / capacityMiB, ...gangs.keys(), 0);
  // Sums are integers; their quotients may be a rounding error above one.
  return Math.max(0, Math.ceil(most - 1e-9));
}

/**
 * A bound above the relaxation's: no two instances that need more than half of a device's memory share a device, whatever is
 * moved. Language models do not count, since they may span fragments.
 */
export function wholeBound(load: Load, bounds: Bounds, capacityMiB: number): number {
  return Math.max(load.large, relaxationBound(load, bounds, capacityMiB));
}
