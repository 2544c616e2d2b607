// Access of processes to devices under a share: files, environment, and an enforcer that answers.
import type { Device, Slice, Share } from '@gpuwhisk/common/gpu';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { ProvisioningError } from '../containers/container-factory.js';
import type { GpuGrant } from '../containers/container-factory.js';
import { joinedAccess } from '../containers/runtime-launch.js';
import type { GpuAccess } from '../containers/runtime-launch.js';
import { grantedMiB, placesOf } from '../pool/memory-budget.js';
import type { ShareCeilings } from './container-shares.js';
import { foreignWorkThere, sharingChanges } from './device-faults.js';
import type { ClientSettings, ShareEnforcer } from './enforcers/share-enforcer.js';
import type { GpuContainers } from './gpu-containers.js';
import type { Healer } from './healer.js';
import type { Inventory } from './inventory.js';
import { gangConflict } from './placement-check.js';

/** Dependencies of DeviceAccess. */
interface DeviceAccessParts {
  inventory: Inventory;
  gpuContainers: GpuContainers;
  enforcer: ShareEnforcer;
  healer: Healer;
  ceilings: ShareCeilings;
  clock: Clock;
  /** Access to a device without a share: its files, and the driver's libraries. */
  access(device: string, slice?: Slice): GpuAccess;
}

/** Longest wait of a new container for the end of clients that a fault has hit, and the interval of checks, ms. */
const [goneWithinMs, goneLookMs] = [5000, 100];

/** Gives containers access to the devices of their grants, under their shares. */
export class DeviceAccess {
  private readonly checks: EnforcerChecks;

  constructor(private readonly parts: DeviceAccessParts) {
    this.checks = new EnforcerChecks(parts.enforcer, parts.clock);
  }

  /** The access of a container with this grant. Rejects with ProvisioningError. */
  async accessFor(grant: GpuGrant): Promise<GpuAccess> {
    const devices = grant.devices.map((uuid) => this.usable(uuid));
    const [first] = devices;
    const problem = first === undefined ? 'it has none' : gangConflict(this.parts.gpuContainers, grant, first.mode);
    if (problem !== undefined) throw unusable(`The GPUs are not available: ${problem}`);
    const own = await this.settingsFor(devices, grant);
    // Called after the settings, which may have started another daemon for these devices.
    await this.parts.ceilings.starts(grant).catch((error: Error) => {
      this.parts.ceilings.isOver(grant);
      throw unusable(`GPU ${placesOf(grant).join(', ')} cannot be shared: ${error.message}`);
    });
    const slice = first?.slices.find(({ uuid }) => uuid === grant.slice);
    const access = joinedAccess(grant.devices.map((uuid) => this.parts.access(uuid, slice)));
    const env = {
      ...access.env,
      CUDA_VISIBLE_DEVICES: placesOf(grant).join(','),
      // Of each visible device, in their order.
      GPUWHISK_MEMORY_MIB: placesOf(grant)
        .map((place) => grantedMiB(grant, place))
        .join(','),
      ...own.env,
    };
    const sockets = own.binds.map(({ path, write }) => ({ path, mode: write ? ('rw' as const) : ('ro' as const) }));
    // The enforcer's user may be the platform's, which no function may have. Any user that all containers share will do.
    return { ...access, env, binds: [...access.binds, ...sockets], oneUser: own.uid !== undefined };
  }

  private usable(uuid: string): Device {
    const device = this.parts.inventory.find(uuid);
    const { state, reasons } = this.parts.inventory.healthOf(uuid);
    // Work that was placed before a cordon still gets its container, but no client comes to a device that leaves MPS.
    const leavesMps = reasons.includes(foreignWorkThere);
    // It has waited for the work that was placed before, so that this is a container that waits for work.
    const isEmptied = reasons.includes(sharingChanges) && this.parts.gpuContainers.awaited(uuid, '').length === 0;
    if (device !== undefined && state !== 'offline' && !leavesMps && !isEmptied) return device;
    throw unusable(`GPU ${uuid} cannot be used: ${reasons.join('; ') || 'there is none of that name'}`);
  }

  /**
   * The enforcer's settings for a grant. Restarts, once, an enforcer that does not answer or accepts no client: its failure
   * may not have been noticed yet.
   */
  private async settingsFor(devices: readonly Device[], { slice, share, partsMiB }: GpuGrant): Promise<ClientSettings> {
    const { enforcer } = this.parts;
    const [first, ...more] = devices as readonly [Device, ...Device[]];
    const ask = (): Promise<ClientSettings> =>
      more.length === 0 ? enforcer.settings(first, share, slice) : enforcer.gangSettings(devices, share, partsMiB);
    const fail = (error: unknown): never => {
      const names = devices.map(({ uuid }) => uuid).join(', ');
      throw unusable(`GPU ${names} cannot be shared: ${(error as Error).message}`);
    };
    let failure: unknown;
    const own = await ask().catch((error: unknown) => void (failure = error));
    let isWell = true;
    for (const device of devices) {
      const problem = await this.problemOf(device.uuid, slice, own === undefined);
      if (problem === undefined) continue;
      isWell = false;
      await this.parts.healer.restart({ device, ...(slice !== undefined && { slice }) }, problem);
    }
    if (isWell) return own ?? fail(failure);
    return ask().catch(fail);
  }

  /**
   * The problem of a place's enforcer; undefined if there is none. Unless a client has failed (`isMissed`), a problem counts
   * only after `goneWithinMs`: clients that a fault has hit keep others out until they have ended.
   */
  private async problemOf(device: string, slice: string | undefined, isMissed: boolean): Promise<string | undefined> {
    const { clock } = this.parts;
    const untilMs = clock.monotonicMs() + (isMissed ? 0 : goneWithinMs);
    for (;;) {
      const problem = await this.checks.ask(device, slice, isMissed);
      if (problem === undefined || clock.monotonicMs() >= untilMs) return problem;
      await sleep(clock, goneLookMs);
    }
  }
}

function unusable(message: string): ProvisioningError {
  return new ProvisioningError(message, message, false, true);
}

/** Time that a check's answer is shared, ms. A process takes at least as long to become a client after its check. */
const sharedMs = 250;

/**
 * Checks of the enforcer before containers start. With MPS a check runs programs, so that one check serves a burst of
 * starts.
 */
class EnforcerChecks {
  /** By device or slice, the time of the last check (monotonic ms) and its answer. */
  private readonly last = new Map<string, { askedMs: number; answer: Promise<string | undefined> }>();

  constructor(
    private readonly enforcer: Pick<ShareEnforcer, 'check'>,
    private readonly clock: Pick<Clock, 'monotonicMs'>,
  ) {}

  /**
   * The problem of the enforcer of a device or slice; undefined if there is none. A good answer is shared for 250 ms; a
   * problem is checked again each time. `isMissed`: a client has failed since, so that the check is always made again.
   */
  ask(device: string, slice: string | undefined, isMissed: boolean): Promise<string | undefined> {
    const place = slice ?? device;
    const askedMs = this.clock.monotonicMs();
    const last = this.last.get(place);
    if (last !== undefined && !isMissed && askedMs - last.askedMs < sharedMs) return last.answer;
    const answer = this.enforcer.check(device, slice).catch((failure: Error) => failure.message);
    this.last.set(place, { askedMs, answer });
    void answer.then((problem) => {
      if (problem !== undefined && this.last.get(place)?.answer === answer) this.last.delete(place);
    });
    return answer;
  }
}

/**
 * By device, the environment that makes a process outside the platform a client of the MPS server, with the whole device.
 * Lacks devices that are cut into slices or not shared by MPS.
 */
export async function clientEnvs(
  devices: readonly Device[],
  enforcer: ShareEnforcer,
  access: (device: string) => GpuAccess,
  /** Environments that are known already; they do not change while this process lives. */
  known: Record<string, Record<string, string>> = {},
): Promise<Record<string, Record<string, string>>> {
  const envs: Record<string, Record<string, string>> = {};
  for (const device of devices.filter(({ mode }) => mode === 'mps')) {
    const found = known[device.uuid];
    if (found !== undefined) {
      envs[device.uuid] = found;
      continue;
    }
    const whole: Share = { shareClass: 100, smRequest: 1, smLimit: 1, memoryMiB: device.memoryMiB };
    const { env } = await enforcer.settings(device, whole);
    const { env: own, libraries } = access(device.uuid);
    const search: Record<string, string> = libraries.length === 0 ? {} : { LD_LIBRARY_PATH: libraries.join(':') };
    envs[device.uuid] = { ...own, ...search, CUDA_VISIBLE_DEVICES: device.uuid, ...env };
  }
  return envs;
}
