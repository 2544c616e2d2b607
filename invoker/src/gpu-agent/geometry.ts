import type { Device, Slice } from '@gpuwhisk/common/gpu';
import type { Logger } from '@gpuwhisk/common/logging';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { sliceChanges } from '@gpuwhisk/gpu/geometry/mig-profiles';
import type { SliceChanges } from '@gpuwhisk/gpu/geometry/mig-profiles';
import { GpuDriverError } from './drivers/gpu-driver.js';
import type { GpuDriver } from './drivers/gpu-driver.js';
import { nvmlCodes } from './drivers/nvml.js';
import { ShareError } from './enforcers/share-enforcer.js';
import type { ShareEnforcer } from './enforcers/share-enforcer.js';
import type { GpuContainers } from './gpu-containers.js';
import type { Healer } from './healer.js';
import type { Inventory } from './inventory.js';

/** Dependencies of a Geometry. */
interface GeometryParts {
  driver: GpuDriver;
  enforcer: ShareEnforcer;
  inventory: Inventory;
  gpuContainers: GpuContainers;
  healer: Pick<Healer, 'end'>;
  clock: Clock;
  logger: Logger;
  /** Reads the devices again, after one was cut. */
  refresh(): Promise<void>;
}

/** Trouble that keeps new work off a device while it is cut. */
const beingCut = 'it is being cut into other slices';
/** Longest wait for other processes to leave a slice that is to be removed, ms. */
const idleWithinMs = 5000;
/** Attempts at a geometry, and the time between two, ms; a new geometry begins again. */
const maxTries = 3;
const tryAgainMs = 10_000;

interface Wanted {
  /** Profiles such as `3g.20gb`; empty for a whole device. */
  profiles: readonly string[];
  tries: number;
  /** Earliest time of the next attempt, monotonic ms. */
  notBeforeMs: number;
}

/** Cuts devices by MIG to their desired geometry: keeps new work off, waits for runs to end, cuts, and admits work again. */
export class Geometry {
  private readonly wanted = new Map<string, Wanted>();
  private readonly cutting = new Set<string>();

  constructor(private readonly parts: GeometryParts) {}

  /** Sets the wanted profiles by device; other devices keep their slices. */
  set(geometry: Readonly<Record<string, readonly string[]>>): void {
    for (const [uuid, profiles] of Object.entries(geometry)) {
      const known = this.wanted.get(uuid);
      if (known !== undefined && known.profiles.join() === profiles.join()) continue;
      this.wanted.set(uuid, { profiles, tries: 0, notBeforeMs: -Infinity });
    }
    for (const uuid of this.wanted.keys()) {
      if (geometry[uuid] !== undefined) continue;
      this.wanted.delete(uuid);
      if (!this.cutting.has(uuid)) this.parts.inventory.setTrouble(uuid, beingCut, false);
    }
    this.reconcile();
  }

  /** Cuts the devices that can be cut now. */
  reconcile(): void {
    const { inventory, clock } = this.parts;
    for (const [uuid, wanted] of this.wanted) {
      const device = inventory.find(uuid);
      if (device === undefined || this.cutting.has(uuid) || wanted.tries >= maxTries) continue;
      if (clock.monotonicMs() < wanted.notBeforeMs) continue;
      const cut = cutTo(device, wanted.profiles);
      if (cut === undefined) inventory.setTrouble(uuid, beingCut, false);
      else if (this.isFree(device, cut)) void this.cut(device, wanted, cut);
    }
  }

  /** Whether the slices to remove are empty. Ends idle instances on them and keeps new work off until the device is cut. */
  private isFree({ uuid, mode }: Device, { remove }: SliceChanges): boolean {
    const { inventory, gpuContainers, healer } = this.parts;
    inventory.setTrouble(uuid, beingCut, true);
    const places = mode === 'mig' ? remove : [uuid];
    const there = places.flatMap((place) => gpuContainers.at(place));
    for (const one of there) {
      if (one.users.size > 0 || one.ending) continue;
      healer.end(one, { text: 'Its GPU is being cut into other slices.', byAction: false });
    }
    return there.length === 0 && places.every((place) => gpuContainers.awaited(place, '').length === 0);
  }

  private async cut({ uuid, mode }: Device, wanted: Wanted, cut: SliceChanges): Promise<void> {
    const { driver, enforcer, inventory, clock, logger, refresh } = this.parts;
    this.cutting.add(uuid);
    try {
      if (mode !== 'mig') {
        await enforcer.shut(uuid);
        await driver.setMig(uuid, true);
      }
      await cutDevice({ driver, enforcer, clock }, uuid, cut, idleWithinMs);
      if (wanted.profiles.length === 0) await driver.setMig(uuid, false);
      logger.info({ device: uuid, profiles: wanted.profiles }, 'a GPU was cut');
    } catch (error) {
      wanted.tries += 1;
      wanted.notBeforeMs = clock.monotonicMs() + tryAgainMs;
      const what = { device: uuid, profiles: wanted.profiles, error: String(error), tries: wanted.tries };
      logger.error(what, 'a GPU could not be cut as wanted');
    }
    await refresh();
    this.cutting.delete(uuid);
    inventory.setTrouble(uuid, beingCut, false);
  }
}

/**
 * The change from a device's slices to those of `profiles`; undefined if there is none. Present slices of wanted profiles
 * stay.
 */
function cutTo(
  { mode, slices }: Pick<Device, 'mode' | 'slices'>,
  profiles: readonly string[],
): SliceChanges | undefined {
  const { remove, add } = sliceChanges(mode === 'mig' ? slices : [], profiles);
  const isOther = (mode === 'mig') !== profiles.length > 0;
  return remove.length === 0 && add.length === 0 && !isOther ? undefined : { remove, add };
}

interface CutParts {
  driver: GpuDriver;
  enforcer: ShareEnforcer;
  clock: Clock;
}

const pollMs = 100;

/**
 * Cuts a device that has MIG on: removes slices one by one as they become idle, then makes the new ones. The slices to
 * remove must take no new work. Rejects with ShareError or GpuDriverError if a slice is not idle after `idleWithinMs`, and
 * with GpuDriverError if there is no room. Changes made before an error stay, as devices() shows.
 */
export async function cutDevice(
  parts: CutParts,
  device: string,
  { remove, add }: SliceChanges,
  idleWithinMs: number,
): Promise<Slice[]> {
  const until = parts.clock.monotonicMs() + idleWithinMs;
  for (const slice of remove) await removeSlice(parts, device, slice, until);
  const made: Slice[] = [];
  for (const profile of inOrderOfCreation(add)) made.push(await parts.driver.createSlice(device, profile));
  return made;
}

/** Removes a slice, after its daemon of shares, which uses the slice and ends only without clients. */
async function removeSlice(parts: CutParts, device: string, slice: string, until: number): Promise<void> {
  const { driver, enforcer, clock } = parts;
  await retried(
    clock,
    until,
    () => enforcer.shut(device, slice),
    (error) => error instanceof ShareError,
  );
  const isInUse = (error: unknown): boolean => error instanceof GpuDriverError && error.code === nvmlCodes.inUse;
  await retried(clock, until, () => driver.destroySlice(device, slice), isInUse);
}

/** Retries work until it succeeds, fails with a lasting error, or the time is over. */
async function retried(
  clock: Clock,
  until: number,
  work: () => Promise<void>,
  passes: (error: unknown) => boolean,
): Promise<void> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!passes(error) || clock.monotonicMs() >= until) throw error;
      await sleep(clock, pollMs);
    }
  }
}

const gpuSlices = (profile: string): number => Number.parseInt(profile, 10);

/**
 * The order in which slices of one device are made if the driver chooses their places. Slices of three come first, since a
 * smaller or larger one could take the place that they need; the largest follow.
 */
export function inOrderOfCreation(profiles: readonly string[]): string[] {
  const rank = (profile: string): number => (gpuSlices(profile) === 3 ? Infinity : gpuSlices(profile));
  return [...profiles].sort((a, b) => (rank(a) === rank(b) ? 0 : rank(b) - rank(a)));
}
