import type { Slice } from '@gpuwhisk/common/gpu';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { SliceChanges } from '@gpuwhisk/gpu/geometry/mig-profiles';
import type { GpuDriver } from './drivers/gpu-driver.js';
import { GpuDriverError } from './drivers/gpu-driver.js';
import { nvmlCodes } from './drivers/nvml.js';
import { inOrderOfCreation } from './drivers/slice-order.js';
import { ShareError } from './enforcers/share-enforcer.js';
import type { ShareEnforcer } from './enforcers/share-enforcer.js';

export interface CutParts {
  driver: GpuDriver;
  enforcer: ShareEnforcer;
  clock: Clock;
}

const pollMs = 100;

/**
 * Cuts a device that has MIG on: removes slices one by one as they become idle, then makes the new ones. The slices to
 * remove must take no new work any more. Rejects with ShareError or GpuDriverError where one is not idle `idleWithinMs` after the
 * beginning, and with the latter where there is no room; what has been done by then stays, as devices() shows.
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

/** The daemon of its shares is itself a process that uses it, and ends only without clients. */
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

/** Does it until it succeeds, or fails otherwise than by what passes, or the time is over. */
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
