import type { DeviceHealth } from '@gpuwhisk/common/gpu';
import type { PlaceAccount } from './account.js';
import type { Ledger } from './ledger.js';

/** The account of all places, which decisions change. */
export interface OpenLedger {
  ledger: Ledger;
  /** Whether a node may be chosen: it is heard of. */
  isOpen(invoker: string): boolean;
  /** Epoch of the deciding controller's lease. */
  epoch: number;
}

/** Whether a place takes work, if only in instances that are there: it is healthy, or leaves later. */
export function takesWork(health: DeviceHealth | undefined): boolean {
  return health?.state === 'healthy' || health?.state === 'leaving';
}

/** The places that take work, on nodes that may be chosen. */
export function usedPlaces({ ledger, isOpen }: OpenLedger): PlaceAccount[] {
  return ledger.accounts().filter(({ health, place }) => takesWork(health) && isOpen(place.node.invoker));
}
