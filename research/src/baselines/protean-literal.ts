// PROTEAN as printed: the stage `place` of algorithm 1.
import { knownKind } from '@gpuwhisk/gpu/algorithms/protean/slowdowns';
import type { KnownKind, SliceSlowdowns } from '@gpuwhisk/gpu/algorithms/protean/slowdowns';
import { neededMiB } from '@gpuwhisk/gpu/ledger/account';
import type { PlaceAccount, PlacementChoice, PlacementRequest } from '@gpuwhisk/gpu/ledger/account';
import type { Ledger } from '@gpuwhisk/gpu/ledger/ledger';
import { kindOf } from '@gpuwhisk/gpu/ledger/places';
import {
  alternativesOf,
  candidateAt,
  choiceOf,
  instanceFor,
  placementOf,
  rejectionsOf,
} from '@gpuwhisk/gpu/stages/place/candidate';
import type { Candidate, PlacementLimits } from '@gpuwhisk/gpu/stages/place/candidate';
import { placeLeastLoaded } from '@gpuwhisk/gpu/stages/place/least-loaded';
import type { LedgerPlace, Waiting } from '@gpuwhisk/gpu/stages/place/place';
import type { PolicyRecord } from '@gpuwhisk/gpu/stages/policy-record';
import type { Task } from '@gpuwhisk/gpu/view/view';

/**
 * PROTEAN (Bhasi and others, Middleware 2024) with algorithms 1 and 2 as printed. Batches, instances and nodes are those of
 * `protean` (sections 4.1, 4.2 and 4.5).
 *
 * Filled in where the print leaves it open: the best effort that is expected on a slice counts tag · ⌊memory / memory of a batch⌋
 * times its mean requirement. Strict work goes to the slice of least η of all if best effort fills every one.
 */
export const proteanLiteral: PolicyRecord = {
  summary: "PROTEAN's algorithms 1 and 2 to the letter, for comparison",
  admit: 'before-slo',
  order: 'protean',
  share: 'unlimited',
  place: 'protean-literal',
  scale: 'protean',
  geometry: 'protean-literal',
  procure: 'protean',
};

/** Functions whose profiled use of bandwidth is remembered, at most. */
const mostProfiled = 1000;

/**
 * Strict work on the slice of least η among those that best effort does not fill (tag below 1), best effort by first fit from the
 * smallest slice. η = RDF · max(Σ FBR, 1) (equation 2). A requirement (FBR) is the mean of what equation 1 gives for runs, and the
 * profiled use of the memory's bandwidth before there are any. Costs O(places) a task.
 */
export function byTagsLiteral(slowdowns: SliceSlowdowns): LedgerPlace {
  const profiled = new Map<string, number>();
  const note = ({ function: name, features }: Task): void => {
    if (features?.dramUtil === undefined) return;
    if (profiled.size >= mostProfiled) profiled.clear();
    profiled.set(name, features.dramUtil);
  };
  const bandwidthOf = (name: string, kind: KnownKind): number =>
    slowdowns.bandwidthsOf(kind)?.of(name) ?? profiled.get(name) ?? 0;
  return {
    begin({ ledger: { ledger } }, turns) {
      for (const { task } of turns) note(task);
      const slices = ascending(ledger).map((account): Slice => {
        return { account, kind: knownKind(kindOf(account.place)), tag: 0, expected: 0 };
      });
      tag(slices, turns, bandwidthOf);
      const bandwidthOn = ({ account: { occupants }, kind, expected }: Slice): number =>
        occupants.reduce(
          (sum, { users, action }) => (users > 0 && action !== undefined ? sum + bandwidthOf(action, kind) : sum),
          expected,
        );
      const slowdownsOf = (task: Task): ReadonlyMap<string, number> => {
        const { times } = slowdowns.aloneOn(
          task,
          slices.map(({ kind }) => kind),
        );
        return new Map(
          slices.map((slice, at) => {
            const bandwidth = bandwidthOf(task.function, slice.kind) + bandwidthOn(slice);
            return [slice.account.id, (times[at] ?? Infinity) * Math.max(bandwidth, 1)];
          }),
        );
      };
      return (request, limits, stamp, task) => {
        if (request.gpus > 1) return placeLeastLoaded(ledger, request, limits, stamp);
        note(task);
        const slowdownOn = task.sloMs === undefined ? notAsked : slowdownsOf(task);
        const able = candidatesOf(ledger, slices, request, limits);
        const chosen = task.sloMs === undefined ? able[0] : strictOf(able, slowdownOn);
        return choiceFor(ledger, chosen?.candidate, { request, limits, stamp, slowdownOn });
      };
    },
  };
}

const notAsked: ReadonlyMap<string, number> = new Map();

/** A place with its tag: the part of its memory that waiting best effort will take (0 to 1), and what that requires there. */
interface Slice {
  account: PlaceAccount;
  kind: KnownKind;
  tag: number;
  expected: number;
}

/** The places in ascending order of resources: by memory, then by SMs. */
function ascending(ledger: Ledger): PlaceAccount[] {
  const smsOf = ({ place }: PlaceAccount): number => place.slice?.smCount ?? place.device.smCount;
  return ledger
    .accounts()
    .toSorted(
      (one, other) => one.capacityMiB - other.capacityMiB || smsOf(one) - smsOf(other) || one.order - other.order,
    );
}

/** Lines 1 to 8. */
function tag(
  slices: readonly Slice[],
  turns: readonly Waiting[],
  bandwidthOf: (name: string, kind: KnownKind) => number,
): void {
  const waiting = turns.flatMap(({ task }) => (task.sloMs === undefined ? [task] : []));
  const [smallest] = slices;
  if (smallest === undefined || waiting.length === 0) return;
  let leftMiB = waiting.reduce((sum, task) => sum + neededMiB(task, smallest.account), 0);
  const eachMiB = leftMiB / waiting.length;
  const means = new Map<string, number>();
  for (const slice of slices) {
    if (!(leftMiB > 0)) return;
    const { availableMiB } = slice.account;
    if (!(availableMiB > 0)) continue;
    const { kind } = slice;
    let mean = means.get(kind.key);
    if (mean === undefined) {
      mean = waiting.reduce((sum, task) => sum + bandwidthOf(task.function, kind), 0) / waiting.length;
      means.set(kind.key, mean);
    }
    slice.tag = Math.min(1, leftMiB / availableMiB);
    slice.expected = slice.tag * Math.floor(availableMiB / eachMiB) * mean;
    leftMiB = Math.max(0, leftMiB - availableMiB);
  }
}

interface Able {
  slice: Slice;
  candidate: Candidate;
}

/** The places that facts allow, in ascending order. */
function candidatesOf(
  ledger: Ledger,
  slices: readonly Slice[],
  request: PlacementRequest,
  limits: PlacementLimits,
): Able[] {
  const instances = limits.isNew === true ? undefined : ledger.withInstances(request, true);
  return slices
    .map((slice): Able | undefined => {
      const { account } = slice;
      if (limits.allowed?.has(account.id) === false) return undefined;
      const idle = instances?.has(account) === true ? instanceFor(account.occupants, request) : undefined;
      const candidate = candidateAt(account, request, limits, idle?.users === 0 ? idle : undefined);
      return candidate && { slice, candidate };
    })
    .filter((one) => one !== undefined);
}

/** The slice of least η with a tag below 1, of equal ones the largest; of all slices if every tag is 1. */
function strictOf(able: readonly Able[], slowdownOn: ReadonlyMap<string, number>): Able | undefined {
  const open = able.filter(({ slice }) => slice.tag < 1);
  const from = open.length > 0 ? open : able;
  const slowdownOf = ({ slice: { account } }: Able): number => slowdownOn.get(account.id) ?? Infinity;
  return from.reduce<Able | undefined>(
    (best, one) => (best === undefined || slowdownOf(one) <= slowdownOf(best) ? one : best),
    undefined,
  );
}

/** The choice with its alternatives, whose reasons are made when they are read. */
function choiceFor(
  ledger: Ledger,
  chosen: Candidate | undefined,
  {
    request,
    limits,
    stamp,
    slowdownOn,
  }: {
    request: PlacementRequest;
    limits: PlacementLimits;
    stamp: Parameters<typeof placementOf>[2];
    slowdownOn: ReadonlyMap<string, number>;
  },
): PlacementChoice {
  const all = chosen && [chosen];
  const chosenSlowdown = chosen && slowdownOn.get(chosen.account.id);
  return choiceOf(
    all && placementOf(all, request, stamp),
    chosen?.joined?.id,
    alternativesOf(ledger, request, limits, all),
    (passed) =>
      rejectionsOf(passed, request, {
        why({ account: { id, capacityMiB } }) {
          const slowdown = slowdownOn.get(id);
          const isStrict = slowdown !== undefined && chosenSlowdown !== undefined;
          return {
            reason: isStrict
              ? 'the chosen slice is open to strict work at the least slowdown'
              : 'a smaller slice will do',
            numbers: { capacityMiB, ...(isStrict && { slowdown, chosenSlowdown }) },
          };
        },
      }),
  );
}
