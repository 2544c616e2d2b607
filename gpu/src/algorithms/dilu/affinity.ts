// Workload affinity (Dilu, section 3.3, principle 1; algorithm 1, line 11).
import type { PlaceAccount } from '../../ledger/account.js';
import type { Ledger } from '../../ledger/ledger.js';
import { functionKey } from '../../ledger/occupancy.js';
import type { Occupant } from '../../ledger/occupancy.js';

/** A function for which instances are placed. */
interface Placed {
  action: string;
  namespace: string;
}

/** Functions that share a place with an instance of one function, by key. */
export type Partners = ReadonlyMap<string, Placed>;

const none: Partners = new Map();

/** The partners of a function on all of its places. */
export function partnersOf(ledger: Ledger, { action, namespace }: Placed): Partners {
  const own = functionKey({ action, namespace });
  let partners: Map<string, Placed> | undefined;
  for (const { occupants } of ledger.withInstances({ action, namespace }, false)) {
    for (const { functionKey: key, action: other, namespace: its } of occupants) {
      if (key === undefined || key === own || other === undefined || its === undefined) continue;
      (partners ??= new Map()).set(key, { action: other, namespace: its });
    }
  }
  return partners ?? none;
}

/**
 * Whether a place is in the affinity set of the function `own`: it has an instance of a partner, which shares another place
 * with `own`. A place that has an instance of `own` itself is not: a second one would make the partner's instance there slower
 * than its others.
 */
export function isAffine(occupants: readonly Occupant[], partners: Partners, own: string): boolean {
  if (partners.size === 0) return false;
  let has = false;
  for (const { functionKey: key } of occupants) {
    if (key === own) return false;
    has ||= key !== undefined && partners.has(key);
  }
  return has;
}

/** Partners and places up to which the affinity set is read from the ledger's index. */
const most = { partners: 32, places: 1024 };

/** The places that have an instance of a partner, in no particular order; undefined if there are too many to look at. */
export function placesOfPartners(ledger: Ledger, partners: Partners): ReadonlySet<PlaceAccount> | undefined {
  if (partners.size > most.partners) return undefined;
  const places = new Set<PlaceAccount>();
  for (const partner of partners.values()) {
    for (const account of ledger.withInstances(partner, false)) places.add(account);
    if (places.size > most.places) return undefined;
  }
  return places;
}
