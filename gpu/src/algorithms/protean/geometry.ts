// PROTEAN's reconfiguration of GPUs (section 4.4, algorithm 2): slices that fit the best-effort load that is expected.
import { candidateSetsOf } from './candidate-sets.js';
import { ExpectedLoad } from './expected-load.js';
import type {
  CutAction,
  CutView,
  Geometry,
  GeometryDevice,
  GeometryReport,
  GeometryTarget,
} from '../../stages/geometry/geometry.js';
import { proteanTarget } from './target.js';
import { byFigures } from './slice-model.js';
import type { SliceModel } from './slice-model.js';
import type { DeviceState } from '../../view/view.js';

/** Settings of `protean`. */
export const proteanGeometryDefaults = {
  /** Seconds of a window, 1 to 59; once a window the geometry is decided. */
  recutWindowS: 20,
  /** Weight of the newest window in the average of requests, above 0 and at most 1. */
  recutWeight: 0.3,
  /** Consecutive windows in which a device differs from the same target before it is cut. */
  recutAfter: 3,
  /** Part of the devices that may be cut at once; one may be in any case. */
  recutPart: 0.3,
};

/** A window that is longer than it should be by more than this is not counted, ms: the clock jumped, or the controller stood still. */
const latestMs = 10_000;
/** Cuts that are kept for display. */
const keptCuts = 20;

/** Windows in a row in which a device differed from a target. */
interface Mismatch {
  target: string;
  count: number;
}

/** Plain data of the stage. */
interface SavedState {
  since: number | null;
  averages: [string, number][];
  mismatches: [string, Mismatch][];
}

/**
 * Once a window decides which slices the devices of each type should have, and cuts those that have differed from the same
 * target for `recutAfter` windows. The expected best-effort load is spread over the devices by their memory. Throws
 * RangeError for settings out of their ranges.
 */
export function proteanGeometry(settings: typeof proteanGeometryDefaults, model: SliceModel = byFigures): Geometry {
  const { recutWindowS, recutWeight, recutAfter, recutPart } = settings;
  if (!Number.isInteger(recutAfter) || recutAfter < 1) {
    throw new RangeError(`setting 'recutAfter' is ${recutAfter} and not a whole number from 1`);
  }
  if (recutPart > 1) throw new RangeError(`setting 'recutPart' is ${recutPart}, above 1`);
  const load = new ExpectedLoad(recutWindowS, recutWeight);
  let mismatches = new Map<string, Mismatch>();
  let since: number | undefined;
  let report: GeometryReport = { targets: [], devices: [], cuts: [] };

  /** Whether a window has passed. After a jump of the clock the window and the counts begin again. */
  function isDue(at: number): boolean {
    const elapsedMs = since === undefined ? NaN : at - since;
    const windowMs = recutWindowS * 1000;
    if (elapsedMs >= 0 && elapsedMs < windowMs) return false;
    since = at;
    if (elapsedMs >= windowMs && elapsedMs <= windowMs + latestMs) return true;
    mismatches = new Map();
    return false;
  }

  function evaluate(view: CutView): CutAction[] {
    const { at, functions = [], devices = [] } = view;
    load.count(functions, at);
    const known = devices.filter(({ type }) => candidateSetsOf(type) !== undefined);
    const managed = known.filter(({ mayNotCut }) => mayNotCut === undefined);
    const targets = targetsOf(managed, load, view, model);
    mismatches = counted(known, targets, mismatches);
    const cutting = managed.filter(isBeingCut).length;
    const free = Math.max(0, Math.max(1, Math.floor(recutPart * managed.length)) - cutting);
    const ripe = managed.filter(({ id }) => (mismatches.get(id)?.count ?? 0) >= recutAfter);
    const cuts = leastBusy(ripe, view)
      .slice(0, free)
      .flatMap(({ id, type }): CutAction[] => {
        const { profiles, reason } = targets.get(type) ?? {};
        return profiles === undefined ? [] : [{ kind: 'cut', device: id, profiles, reason: reason ?? '' }];
      });
    report = {
      at,
      targets: [...targets.values()],
      devices: known.map((device) => shown(device, targets.get(device.type), mismatches.get(device.id), cuts)),
      cuts: [...cuts.map(({ device, profiles, reason }) => ({ at, device, profiles, reason })), ...report.cuts].slice(
        0,
        keptCuts,
      ),
    };
    for (const { device } of cuts) mismatches.delete(device);
    return cuts;
  }

  return {
    cuts: (view) => (isDue(view.at) ? evaluate(view) : []),
    report: () => report,
    saved: (): SavedState => ({ since: since ?? null, averages: load.saved(), mismatches: [...mismatches] }),
    restore(saved) {
      const state = saved as SavedState;
      since = state.since ?? undefined;
      load.restore(state.averages);
      mismatches = new Map(state.mismatches);
    },
  };
}

/** The target of each type of device; each device has a part of the load by its memory. */
function targetsOf(
  managed: readonly DeviceState[],
  load: ExpectedLoad,
  { functions = [] }: CutView,
  model: SliceModel,
): Map<string, GeometryTarget> {
  const expected = load.expected(functions);
  const totalMiB = managed.reduce((sum, { type }) => sum + wholeMiB(type), 0);
  const types = [...new Set(managed.map(({ type }) => type))];
  return new Map(
    types.map((type) => {
      const devices = managed.filter((one) => one.type === type).length;
      return [type, proteanTarget(model, type, { expected, devices, part: wholeMiB(type) / totalMiB })];
    }),
  );
}

/** The counts after one more window; a device that matches, that is left, or whose target is another begins again. */
function counted(
  devices: readonly DeviceState[],
  targets: ReadonlyMap<string, GeometryTarget>,
  before: ReadonlyMap<string, Mismatch>,
): Map<string, Mismatch> {
  const now = new Map<string, Mismatch>();
  for (const device of devices) {
    const target = targets.get(device.type);
    if (target?.profiles === undefined || leftFor(device, target) !== undefined) continue;
    const wanted = keyOf(target.profiles);
    if (wanted === keyOf(profilesOf(device))) continue;
    const known = before.get(device.id);
    now.set(device.id, { target: wanted, count: known?.target === wanted ? known.count + 1 : 1 });
  }
  return now;
}

/** Devices in the order in which they drain soonest: by running tasks. */
function leastBusy(devices: readonly DeviceState[], { ledger: { ledger } }: CutView): DeviceState[] {
  if (devices.length < 2) return [...devices];
  const busy = ({ places }: DeviceState): number =>
    places.reduce((sum, { id }) => sum + (ledger.account(id)?.busy ?? 0), 0);
  return devices.toSorted((one, other) => busy(one) - busy(other));
}

function shown(
  device: DeviceState,
  target: GeometryTarget | undefined,
  mismatch: Mismatch | undefined,
  cuts: readonly CutAction[],
): GeometryDevice {
  const left = leftFor(device, target);
  const into = isBeingCut(device) ? device.cut?.profiles : cuts.find((cut) => cut.device === device.id)?.profiles;
  return {
    device: device.id,
    profiles: profilesOf(device),
    mismatches: mismatch?.count ?? 0,
    ...(into !== undefined && { cutInto: into }),
    ...(left !== undefined && into === undefined && { left }),
  };
}

/** Why a device is left as it is, whatever its target says; undefined if it is not. */
function leftFor(device: DeviceState, target: GeometryTarget | undefined): string | undefined {
  const { mayNotCut, cut, places } = device;
  if (mayNotCut !== undefined) return mayNotCut;
  if (isBeingCut(device)) return 'it is being cut';
  const { profiles, reason, leftWhole } = target ?? {};
  if (profiles === undefined) return reason;
  if (cut?.refused !== undefined && keyOf(cut.profiles) === keyOf(profiles)) return cut.refused;
  return places.every(({ profile }) => profile === undefined) ? leftWhole : undefined;
}

/** Whether a cut of a device goes on. */
export function isBeingCut({ cut }: DeviceState): boolean {
  return cut !== undefined && cut.refused === undefined;
}

/** The profiles of a device's slices; none: it is whole. */
export function profilesOf({ places }: DeviceState): string[] {
  return places.flatMap(({ profile }) => profile ?? []);
}

/** A geometry by name, whatever the order of its profiles. */
export function keyOf(profiles: readonly string[]): string {
  return [...profiles].sort().join();
}

/** Memory of a whole device of a type, MiB; 0 where none of its slices are known. */
export function wholeMiB(type: string): number {
  return candidateSetsOf(type)?.whole.memoryMiB ?? 0;
}
