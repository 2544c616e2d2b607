// Devices under MPS where namespaces that may not share a server keep each other waiting, and time slices would not.
import type { PlaceAccount, PlacementRequest, Tenant } from '../../ledger/account.js';
import { thousandths } from '../../ledger/occupancy.js';
import { mayShare, refusing } from './fact-filters.js';

type Place = Pick<
  PlaceAccount,
  | 'mode'
  | 'health'
  | 'capacityMiB'
  | 'availableMiB'
  | 'clients'
  | 'clientLimit'
  | 'busy'
  | 'workloads'
  | 'staying'
  | 'load'
>;

/** A request that waits. `isStrict`: it has a deadline, which only an enforced share protects. */
export interface WaitingRequest {
  request: PlacementRequest;
  isStrict: boolean;
}

/**
 * Whether one of the requests waits for no other reason than that an MPS server serves one namespace. Only a request for a
 * part of a device counts, which fits beside the requests that run: others would take turns in time slices too.
 */
export function waitsForNamespaces(place: Place, waiting: Iterable<WaitingRequest>): boolean {
  if (place.mode !== 'mps' || place.staying.length === 0) return false;
  const sliced = { ...place, mode: 'timeslice' as const };
  for (const { request, isStrict } of waiting) {
    const { share, gpus } = request;
    const isPart = gpus === 1 && share.smLimit < 1 && place.load * 1000 + thousandths(share.smRequest) <= 1000;
    if (isStrict || !isPart || refusing(place, request)?.code !== 'isolation') continue;
    if (refusing(sliced, request) === undefined) return true;
  }
  return false;
}

/** Whether processes of namespaces that may not share an MPS server run on a place at once. */
export function servesSeveral({ staying }: { staying: readonly Tenant[] }): boolean {
  return staying.some((one, at) => staying.slice(at + 1).some((other) => !mayShare('mps', one, other)));
}
