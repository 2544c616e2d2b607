// PROTEAN's algorithm 2 as printed.
import { candidateSetsOf } from '@gpuwhisk/gpu/algorithms/protean/candidate-sets';
import { ExpectedLoad } from '@gpuwhisk/gpu/algorithms/protean/expected-load';
import {
  isBeingCut,
  keyOf,
  profilesOf,
  proteanGeometryDefaults,
  wholeMiB,
} from '@gpuwhisk/gpu/algorithms/protean/geometry';
import type { SliceModel } from '@gpuwhisk/gpu/algorithms/protean/slice-model';
import { proteanTarget } from '@gpuwhisk/gpu/algorithms/protean/target';
import { usableMiB } from '@gpuwhisk/gpu/ledger/places';
import type { CutAction, CutView, Geometry, GeometryTarget } from '@gpuwhisk/gpu/stages/geometry/geometry';

/** Settings of `protean-literal`: as those of `protean`. */
export const literalGeometryDefaults = proteanGeometryDefaults;

/** Plain data of the stage. */
interface SavedState {
  since: number | null;
  averages: [string, number][];
  waits: [string, number][];
}

/**
 * The slices of each device once a window W (line 1): the first small set whose memory holds the expected best effort, and 4g beside
 * it. A device that differs `recutAfter` times is cut at the next time (lines 24 to 28); the count ends with a match only (lines 29
 * and 30). If no small set holds the best effort, or its number is out of the thresholds, [4g, 3g] is the target; as the print
 * compares with the present slices in the other branch only, such a device is neither cut nor counted (lines 19 and 20).
 *
 * Filled in: thresholds are `thresholds` of the model, for the set [1g, 2g], which the text gives them a meaning for; without strict
 * work there are none. Load is spread over devices by their memory. A whole device stays while a function needs more than 4g has.
 */
export function literalGeometry(settings: typeof literalGeometryDefaults, model: SliceModel): Geometry {
  const { recutWindowS, recutWeight, recutAfter, recutPart } = settings;
  const load = new ExpectedLoad(recutWindowS, recutWeight);
  let waits = new Map<string, number>();
  let since: number | undefined;

  function evaluate(view: CutView): CutAction[] {
    const { at, functions = [], devices = [] } = view;
    load.count(functions, at);
    const expected = load.expected(functions);
    const known = devices.filter(
      ({ type, mayNotCut }) => mayNotCut === undefined && candidateSetsOf(type) !== undefined,
    );
    waits = new Map([...waits].filter(([id]) => known.some((one) => one.id === id)));
    if (expected.length === 0) return [];
    const totalMiB = known.reduce((sum, { type }) => sum + wholeMiB(type), 0);
    const cutting = known.filter(isBeingCut).length;
    let free = Math.max(1, Math.floor(recutPart * known.length)) - cutting;
    return known.flatMap((device): CutAction[] => {
      const { id, type, places } = device;
      const part = wholeMiB(type) / totalMiB;
      const target = proteanTarget(model, type, {
        expected,
        devices: known.filter((one) => one.type === type).length,
        part,
      });
      const profiles = literalProfiles(
        type,
        target,
        expected.some(({ task }) => task.sloMs !== undefined),
      );
      const isWhole = places.every(({ profile }) => profile === undefined);
      if (profiles === undefined || isBeingCut(device) || (isWhole && target.leftWhole !== undefined)) return [];
      const waited = waits.get(id) ?? 0;
      if (keyOf(profiles) === keyOf(profilesOf(device))) waits.set(id, 0);
      else if (waited < recutAfter) waits.set(id, waited + 1);
      else if (free > 0) {
        free -= 1;
        const { bestEffort, memoryMiB } = target;
        const reason = `${bestEffort} best-effort batches and ${memoryMiB} MiB expected, ${waited} mismatches before`;
        return [{ kind: 'cut', device: id, profiles, reason }];
      }
      return [];
    });
  }

  return {
    cuts(view) {
      const elapsedMs = since === undefined ? NaN : view.at - since;
      if (elapsedMs >= 0 && elapsedMs < recutWindowS * 1000) return [];
      since = view.at;
      return elapsedMs >= 0 ? evaluate(view) : [];
    },
    saved: (): SavedState => ({ since: since ?? null, averages: load.saved(), waits: [...waits] }),
    restore(saved) {
      const state = saved as SavedState;
      since = state.since ?? undefined;
      load.restore(state.averages);
      waits = new Map(state.waits);
    },
  };
}

/** Lines 10 to 23; undefined where the print compares no slices. */
function literalProfiles(
  type: string,
  { bestEffort, memoryMiB, low, high }: GeometryTarget,
  hasStrict: boolean,
): readonly string[] | undefined {
  const sets = candidateSetsOf(type);
  const chosen = sets?.small.find((set) => set.reduce((sum, slice) => sum + usableMiB(slice), 0) >= memoryMiB);
  if (sets === undefined || chosen === undefined) return undefined;
  if (hasStrict && chosen === sets.small[0]) {
    if (low === undefined || high === undefined || bestEffort < low || bestEffort > high) return undefined;
  }
  return [sets.large, ...chosen.toReversed()].map(({ name }) => name);
}
