// The activations that a page keeps, from pages of the API that overlap.
import type { Brief } from './activation-model.js';

/** Activations in the order of their begin, the newest first: of those added the `most` newest. */
export class KeptActivations {
  /** Another array after each change. */
  rows: readonly Brief[] = [];
  private readonly ids = new Set<string>();

  constructor(private readonly most: number) {}

  /** Whether an activation is kept, by its id. */
  has(id: string): boolean {
    return this.ids.has(id);
  }

  /** Adds activations and drops the oldest ones beyond `most`. Returns the added ones that were not known. */
  add(page: readonly Brief[]): Brief[] {
    const fresh = page.filter(({ activationId }) => !this.ids.has(activationId));
    if (fresh.length === 0) return fresh;
    for (const { activationId } of fresh) this.ids.add(activationId);
    fresh.sort(newestFirst);
    // Two sorted runs: the sort of the language merges them in linear time.
    const all = [...fresh, ...this.rows].sort(newestFirst);
    for (const { activationId } of all.splice(this.most)) this.ids.delete(activationId);
    this.rows = all;
    return fresh;
  }
}

const newestFirst = (one: Brief, other: Brief): number => other.start - one.start;

/** A place in the API's lists: activations that began at `upto` or earlier, without the first `skip`. */
export interface Place {
  /** Epoch ms. */
  upto: number;
  skip: number;
}

/** The place after a full page that was read from `at`. More may have begun within one millisecond than a page holds. */
export function placeAfter(page: readonly Brief[], { upto, skip }: Place): Place {
  const oldest = page.reduce((least, { start }) => Math.min(least, start), Infinity);
  return oldest === upto ? { upto, skip: skip + page.length } : { upto: oldest, skip: 0 };
}

/**
 * Reads pages from the oldest of the `newest` until one has an activation that was kept before, so that none is missing
 * in between. Ends after `most` activations, too, and at a page with fewer activations than `newest`, a full page that is
 * kept already. Rejects if `read` does; a second call would then take the pages of the first one for the end of the gap.
 */
export async function fillGap(
  kept: KeptActivations,
  newest: readonly Brief[],
  most: number,
  read: (place: Place) => Promise<readonly Brief[]>,
): Promise<void> {
  const own = new Set(newest.map(({ activationId }) => activationId));
  let place = placeAfter(newest, { upto: Infinity, skip: 0 });
  for (let count = 0; count < most;) {
    const page = await read(place);
    const isJoined = page.some(({ activationId }) => kept.has(activationId) && !own.has(activationId));
    kept.add(page);
    if (isJoined || page.length < newest.length) return;
    for (const { activationId } of page) own.add(activationId);
    count += page.length;
    place = placeAfter(page, place);
  }
}
