// Which entries of a cache on the disk go first.

/** An entry of a cache that namespaces fill. */
export interface CacheEntry {
  name: string;
  /** The namespace that it was made for, or a name for it. */
  owner: string;
  bytes: number;
  /** Time of its last use, ms since the epoch. */
  usedMs: number;
  /** Whether it stays, whatever the bound. */
  isKept?: boolean;
}

/**
 * The entries to remove so that the others take `maxBytes` at most, in order. An owner may fill what others do not use; beyond
 * the bound, the owner with the most bytes loses its own entries, those unused longest first. So an owner with no more than
 * the bound divided by the number of owners loses nothing, whatever the others do and have kept.
 */
export function superfluous(entries: readonly CacheEntry[], maxBytes: number): CacheEntry[] {
  const owners = new Map<string, { bytes: number; removable: CacheEntry[] }>();
  let total = 0;
  for (const entry of entries) {
    const owned = owners.get(entry.owner) ?? { bytes: 0, removable: [] };
    owned.bytes += entry.bytes;
    if (entry.isKept !== true) owned.removable.push(entry);
    owners.set(entry.owner, owned);
    total += entry.bytes;
  }
  const part = maxBytes / owners.size;
  // The last of each list goes first.
  for (const { removable } of owners.values()) removable.sort((one, other) => other.usedMs - one.usedMs);
  const removed: CacheEntry[] = [];
  while (total > maxBytes) {
    const over = [...owners.values()].filter(({ bytes, removable }) => bytes > part && removable.length > 0);
    const largest = over.sort((one, other) => other.bytes - one.bytes)[0];
    const entry = largest?.removable.pop();
    if (!largest || !entry) break;
    largest.bytes -= entry.bytes;
    total -= entry.bytes;
    removed.push(entry);
  }
  return removed;
}
