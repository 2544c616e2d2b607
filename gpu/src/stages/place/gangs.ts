// The rule for work of several devices: all of them of one node and alike, or none.
import { groupedBy } from '@gpuwhisk/common/collections';
import { gangKey } from '../../ledger/places.js';
import type { Place } from '../../ledger/places.js';

/**
 * The first of some places that are alike and on one node, as many as are needed: the gang of the first place that has one.
 * Undefined if no node has as many. One device needs no others like it.
 */
export function gangOf<One>(some: readonly One[], gpus: number, placeOf: (one: One) => Place): One[] | undefined {
  if (gpus === 1) return some[0] === undefined ? undefined : [some[0]];
  return alikeGroups(some, placeOf)
    .find(({ length }) => length >= gpus)
    ?.slice(0, gpus);
}

/** Places by node and kind of device, each group in the order of `some`, the group of the first one first. */
export function alikeGroups<One>(some: readonly One[], placeOf: (one: One) => Place): One[][] {
  return [...groupedBy(some, (one) => gangKey(placeOf(one))).values()];
}
