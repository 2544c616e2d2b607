import type { CutStatus, Device, DeviceStatus, Slice } from '@gpuwhisk/common/gpu';
import type { Logger } from '@gpuwhisk/common/logging';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { cutProblem } from '@gpuwhisk/gpu/stages/geometry/cut-problem';
import { geometryFault, sliceChanges } from '@gpuwhisk/gpu/stages/geometry/mig-profiles';
import type { SliceChanges } from '@gpuwhisk/gpu/stages/geometry/mig-profiles';
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
  enforcer: Pick<ShareEnforcer, 'shut'>;
  inventory: Pick<Inventory, 'find' | 'setTrouble'>;
  gpuContainers: Pick<GpuContainers, 'at' | 'awaited'>;
  healer: Pick<Healer, 'end'>;
  clock: Clock;
  logger: Logger;
  /** The last look at the devices. */
  statuses(): readonly DeviceStatus[];
  /** Reads the devices again, after one was cut. */
  refresh(): Promise<void>;
  /** Called when the state of a cut or of its device has changed. */
  changed(): void;
}

/** Trouble that keeps new work off a device while it is cut. */
const beingCut = 'it is being cut into other slices';
/** Trouble of a device whose cut failed half-way; it lasts until a cut succeeds. */
const unrestored = 'its slices could be neither changed nor restored';
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
  /** Begin of the drain, monotonic ms; undefined: the device takes work. */
  drainsSinceMs: number | undefined;
  status: CutStatus;
}

/** Cuts devices by MIG to their desired geometry: keeps new work off, waits for runs to end, cuts, and admits work again. */
export class Geometry {
  private readonly wanted = new Map<string, Wanted>();
  private readonly cutting = new Set<string>();

  constructor(private readonly parts: GeometryParts) {}

  /** The state of a device's wanted cut; undefined if no geometry is wanted of it. */
  statusOf(device: string): CutStatus | undefined {
    return this.wanted.get(device)?.status;
  }

  /** Sets the wanted profiles by device; other devices keep their slices. */
  set(geometry: Readonly<Record<string, readonly string[]>>): void {
    for (const [uuid, profiles] of Object.entries(geometry)) {
      const known = this.wanted.get(uuid);
      if (known !== undefined && known.profiles.join() === profiles.join()) continue;
      const status: CutStatus = { profiles: [...profiles], state: 'waiting' };
      this.wanted.set(uuid, { profiles, tries: 0, notBeforeMs: -Infinity, drainsSinceMs: undefined, status });
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
      if (device === undefined || this.cutting.has(uuid)) continue;
      const cut = cutTo(device, wanted.profiles);
      if (cut === undefined) {
        this.takeWork(uuid, wanted, { ...wanted.status, state: 'done' });
        continue;
      }
      if (wanted.status.state === 'refused') continue;
      const fault = this.faultOf(device, wanted.profiles);
      // Processes of ended containers are seen until the next look: a drain goes on, and the driver refuses for real ones.
      const others = wanted.drainsSinceMs === undefined ? this.othersOn(device, cut) : undefined;
      if (fault !== undefined) this.takeWork(uuid, wanted, this.statusWith(wanted, 'refused', fault));
      else if (others !== undefined) this.takeWork(uuid, wanted, this.statusWith(wanted, 'waiting', others));
      else if (clock.monotonicMs() >= wanted.notBeforeMs && this.isFree(device, wanted, cut)) {
        void this.cut(device, wanted, cut);
      }
    }
  }

  private statusWith({ profiles }: Wanted, state: CutStatus['state'], reason?: string): CutStatus {
    return { profiles: [...profiles], state, ...(reason !== undefined && { reason }) };
  }

  /** Admits work to a device that is not being cut now. */
  private takeWork(uuid: string, wanted: Wanted, status: CutStatus): void {
    const { inventory, changed, logger } = this.parts;
    inventory.setTrouble(uuid, beingCut, false);
    wanted.drainsSinceMs = undefined;
    const isNews = wanted.status.state !== status.state || wanted.status.reason !== status.reason;
    wanted.status = status;
    if (!isNews) return;
    if (status.reason !== undefined) logger.warn({ device: uuid, ...status }, 'a GPU is not cut');
    changed();
  }

  /** Why a device cannot be cut so at all. */
  private faultOf({ type }: Device, profiles: readonly string[]): string | undefined {
    return cutProblem({ isManaged: this.parts.driver.cuts, foreign: 0 }) ?? geometryFault(type, profiles);
  }

  /** Why processes that are not the platform's keep a device from being cut; undefined if none does. */
  private othersOn({ uuid, mode }: Device, { remove }: SliceChanges): string | undefined {
    const processes = this.parts.statuses().find((one) => one.uuid === uuid)?.processes ?? [];
    const foreign = processes.filter(
      ({ container, slice }) =>
        container === undefined && (mode !== 'mig' || (slice !== undefined && remove.includes(slice))),
    );
    return cutProblem({ isManaged: true, foreign: foreign.length });
  }

  /** Whether the slices to remove are empty. Ends idle instances on them and keeps new work off until the device is cut. */
  private isFree({ uuid, mode }: Device, wanted: Wanted, { remove }: SliceChanges): boolean {
    const { inventory, gpuContainers, healer, clock, changed } = this.parts;
    inventory.setTrouble(uuid, beingCut, true);
    if (wanted.drainsSinceMs === undefined) {
      wanted.drainsSinceMs = clock.monotonicMs();
      wanted.status = this.statusWith(wanted, 'draining');
      changed();
    }
    const places = mode === 'mig' ? remove : [uuid];
    const there = places.flatMap((place) => gpuContainers.at(place));
    for (const one of there) {
      if (one.users.size > 0 || one.ending) continue;
      healer.end(one, { text: 'Its GPU is being cut into other slices.', byAction: false });
    }
    return there.length === 0 && places.every((place) => gpuContainers.awaited(place, '').length === 0);
  }

  private async cut(device: Device, wanted: Wanted, cut: SliceChanges): Promise<void> {
    const { driver, enforcer, inventory, clock, logger, refresh, changed } = this.parts;
    const { uuid, mode } = device;
    this.cutting.add(uuid);
    const begunMs = clock.monotonicMs();
    const drainMs = Math.round(begunMs - (wanted.drainsSinceMs ?? begunMs));
    wanted.status = { ...this.statusWith(wanted, 'cutting'), drainMs };
    let status: CutStatus;
    try {
      if (mode !== 'mig') {
        const untilMs = begunMs + idleWithinMs;
        await retried(clock, untilMs, () => enforcer.shut(uuid), isShareError);
        await retried(clock, untilMs, () => driver.setMig(uuid, true), isInUse);
      }
      await cutDevice({ driver, enforcer, clock }, uuid, cut, idleWithinMs);
      if (wanted.profiles.length === 0) await driver.setMig(uuid, false);
      const cutMs = Math.round(clock.monotonicMs() - begunMs);
      status = { ...this.statusWith(wanted, 'done'), drainMs, cutMs };
      wanted.tries = 0;
      inventory.setTrouble(uuid, unrestored, false);
      logger.info({ device: uuid, profiles: wanted.profiles, drainMs, cutMs }, 'a GPU was cut');
    } catch (error) {
      status = await this.failed(device, wanted, error as Error);
    }
    await refresh();
    this.cutting.delete(uuid);
    wanted.drainsSinceMs = undefined;
    // The device takes work again and shows the end of the cut in one row.
    wanted.status = status;
    inventory.setTrouble(uuid, beingCut, false);
    changed();
  }

  /** Restores the former slices after a cut that failed; a device without them stays cordoned. */
  private async failed(device: Device, wanted: Wanted, error: Error): Promise<CutStatus> {
    const { inventory, clock, logger } = this.parts;
    wanted.tries += 1;
    wanted.notBeforeMs = clock.monotonicMs() + tryAgainMs;
    let outcome = 'it has its former slices';
    try {
      await this.restore(device);
    } catch (restoring) {
      outcome = `its former slices could not be restored: ${(restoring as Error).message}`;
      inventory.setTrouble(device.uuid, unrestored, true);
    }
    const { tries, profiles } = wanted;
    logger.error({ device: device.uuid, profiles, tries, error: error.message, outcome }, 'a GPU could not be cut');
    return this.statusWith(wanted, tries >= maxTries ? 'refused' : 'waiting', `${error.message} (${outcome})`);
  }

  /** Brings a device back to the slices that it had. Rejects with GpuDriverError or ShareError. */
  private async restore({ uuid, mode, slices }: Device): Promise<void> {
    const { driver, enforcer, clock } = this.parts;
    const now = (await driver.devices()).find((one) => one.uuid === uuid);
    if (now === undefined) throw new GpuDriverError('The driver does not list the device any more.');
    if (now.mode !== 'mig') {
      if (mode !== 'mig') return;
      await driver.setMig(uuid, true);
    }
    const there = new Set(now.slices.map((one) => one.uuid));
    const had = new Set(slices.map((one) => one.uuid));
    const made = now.slices.filter((one) => !had.has(one.uuid)).map((one) => one.uuid);
    await cutDevice({ driver, enforcer, clock }, uuid, { remove: made, add: [] }, idleWithinMs);
    for (const { profile, startSlot } of slices.filter((one) => !there.has(one.uuid))) {
      await driver.createSlice(uuid, profile, startSlot < 0 ? undefined : startSlot);
    }
    if (mode !== 'mig') await driver.setMig(uuid, false);
  }
}

/**
 * The change from a device's slices to those of `profiles`; undefined if there is none. Present slices of wanted profiles
 * stay where the others find a place beside them.
 */
function cutTo(
  { type, mode, slices }: Pick<Device, 'type' | 'mode' | 'slices'>,
  profiles: readonly string[],
): SliceChanges | undefined {
  const changes = sliceChanges(mode === 'mig' ? slices : [], profiles, type);
  const isOther = (mode === 'mig') !== profiles.length > 0;
  return changes.remove.length === 0 && changes.add.length === 0 && !isOther ? undefined : changes;
}

interface CutParts {
  driver: GpuDriver;
  enforcer: Pick<ShareEnforcer, 'shut'>;
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
  { remove, add, starts }: SliceChanges,
  idleWithinMs: number,
): Promise<Slice[]> {
  const until = parts.clock.monotonicMs() + idleWithinMs;
  for (const slice of remove) await removeSlice(parts, device, slice, until);
  const made: Slice[] = [];
  if (starts === undefined) {
    for (const profile of inOrderOfCreation(add)) made.push(await parts.driver.createSlice(device, profile));
  } else {
    for (const [at, profile] of add.entries()) made.push(await parts.driver.createSlice(device, profile, starts[at]));
  }
  return made;
}

/** Removes a slice, after its daemon of shares, which uses the slice and ends only without clients. */
async function removeSlice(parts: CutParts, device: string, slice: string, until: number): Promise<void> {
  const { driver, enforcer, clock } = parts;
  await retried(clock, until, () => enforcer.shut(device, slice), isShareError);
  await retried(clock, until, () => driver.destroySlice(device, slice), isInUse);
}

function isShareError(error: unknown): boolean {
  return error instanceof ShareError;
}

function isInUse(error: unknown): boolean {
  return error instanceof GpuDriverError && error.code === nvmlCodes.inUse;
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
