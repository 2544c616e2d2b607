// What a process needs to use devices under a share: files, environment, and an enforcer that answers.
import type { Device, Slice, Share } from '@gpuwhisk/common/gpu';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { ProvisioningError } from '../containers/container-factory.js';
import type { GpuGrant } from '../containers/container-factory.js';
import { joinedAccess } from '../containers/runtime-launch.js';
import type { GpuAccess } from '../containers/runtime-launch.js';
import { placesOf } from '../pool/memory-budget.js';
import type { ShareCeilings } from './container-shares.js';
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
  /** What a process needs to reach a device at all: its files, and the driver's libraries. */
  access(device: string, slice?: Slice): GpuAccess;
}

/** How long a container that is to start waits for those to go that a fault has hit, ms, and how often it looks. */
const [goneWithinMs, goneLookMs] = [5000, 100];

/** Lets containers reach the devices that they were granted, under their shares. */
export class DeviceAccess {
  private readonly checks: EnforcerChecks;

  constructor(private readonly parts: DeviceAccessParts) {
    this.checks = new EnforcerChecks(parts.enforcer, parts.clock);
  }

  /** What a container with this grant is started with. Rejects with ProvisioningError. */
  async accessFor(grant: GpuGrant): Promise<GpuAccess> {
    const devices = grant.devices.map((uuid) => this.usable(uuid));
    const [first] = devices;
    const problem = first === undefined ? 'it has none' : gangConflict(this.parts.gpuContainers, grant, first.mode);
    if (problem !== undefined) throw unusable(`The GPUs cannot be had: ${problem}`);
    const own = await this.settingsFor(devices, grant);
    // After the settings, which may have had another daemon started for these devices.
    await this.parts.ceilings.starts(grant).catch((error: Error) => {
      this.parts.ceilings.isOver(grant);
      throw unusable(`GPU ${placesOf(grant).join(', ')} cannot be shared: ${error.message}`);
    });
    const slice = first?.slices.find(({ uuid }) => uuid === grant.slice);
    const access = joinedAccess(grant.devices.map((uuid) => this.parts.access(uuid, slice)));
    const env = { ...access.env, CUDA_VISIBLE_DEVICES: placesOf(grant).join(','), ...own.env };
    const sockets = own.binds.map(({ path, write }) => ({ path, mode: write ? ('rw' as const) : ('ro' as const) }));
    // Its user may be the platform's own, which no function is to be: any will do, if it is the same for all.
    return { ...access, env, binds: [...access.binds, ...sockets], oneUser: own.uid !== undefined };
  }

  private usable(uuid: string): Device {
    const device = this.parts.inventory.find(uuid);
    const { state, reasons } = this.parts.inventory.healthOf(uuid);
    if (device !== undefined && state !== 'offline') return device;
    throw unusable(`GPU ${uuid} cannot be used: ${reasons.join('; ') || 'there is none of that name'}`);
  }

  /** An enforcer that does not answer, or accepts no client, is started again, once; its failure may not have been noticed yet. */
  private async settingsFor(devices: readonly Device[], { slice, share }: GpuGrant): Promise<ClientSettings> {
    const { enforcer } = this.parts;
    const [first, ...more] = devices as readonly [Device, ...Device[]];
    const ask = (): Promise<ClientSettings> =>
      more.length === 0 ? enforcer.settings(first, share, slice) : enforcer.gangSettings(devices, share);
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
   * What is wrong with a place's enforcer. Unless a client has failed by it (`isMissed`), what is still wrong after a while:
   * clients that a fault has hit, and that keep others out, are being ended.
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

/** No longer than a process takes anyway from its start until it is a client: what happens meanwhile no check sees. */
const sharedMs = 250;

/** Checks of the enforcer by containers that are to start: with MPS each takes programs to be run, so that one serves a burst. */
class EnforcerChecks {
  /** By device or slice, when it was last asked (monotonic ms), and the answer. */
  private readonly last = new Map<string, { askedMs: number; answer: Promise<string | undefined> }>();

  constructor(
    private readonly enforcer: Pick<ShareEnforcer, 'check'>,
    private readonly clock: Pick<Clock, 'monotonicMs'>,
  ) {}

  /**
   * What is wrong with the enforcer of a device or slice. That nothing was may have been found for another, up to 250 ms
   * ago; a problem is checked again each time, and so is everything if `isMissed`: a client has failed since.
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
 * By device: environment that makes a process of the node's own a client of its MPS server, with the whole device; none
 * where it is cut into slices or is not shared so.
 */
export async function clientEnvs(
  devices: readonly Device[],
  enforcer: ShareEnforcer,
  access: (device: string) => GpuAccess,
  /** What is known by now: it does not change as long as this process lives. */
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
