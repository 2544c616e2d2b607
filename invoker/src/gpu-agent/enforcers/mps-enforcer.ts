import { resolve } from 'node:path';
import type { Device, Share } from '@gpuwhisk/common/gpu';
import { GpuDriverError } from '../drivers/gpu-driver.js';
import type { GpuDriver } from '../drivers/gpu-driver.js';
import {
  clientsOf,
  foreignDaemon,
  ownDaemon,
  startDaemon,
  untilEmpty,
  noNotes,
  readMpsNotes,
  writeMpsNotes,
} from './mps-daemon.js';
import type { MpsDaemon, MpsProgram, MpsNotes } from './mps-daemon.js';
import { ShareError } from './share-enforcer.js';
import type { ClientSettings, ShareEnforcer } from './share-enforcer.js';

export interface MpsEnforcerOptions {
  driver: GpuDriver;
  /**
   * Folder of the daemons' directories. Its path must be at most 81 characters: sockets lie 26 below and are limited to 107.
   */
  folder: string;
  /** Whether to start and end daemons and set compute modes. Otherwise the operator's daemon is used. */
  manage: boolean;
  /** Whether managed devices are set to exclusive mode; default true. */
  setsMode?: boolean;
  control?: MpsProgram;
  /** Pipe directory of the operator's daemon; default: CUDA's default. */
  foreignPipe?: string;
}

/** An enforcer of MPS, with what only MPS has. */
export interface MpsEnforcer extends ShareEnforcer {
  /** Whether a daemon that an earlier process of the platform started serves a device or slice. Rejects with ShareError. */
  isServed(device: Device, slice?: string): Promise<boolean>;
  /** Those of the host's processes that are neither servers nor clients of the daemon. Rejects with ShareError. */
  outsiders(pids: readonly number[], device: string, slice?: string): Promise<number[]>;
}

/**
 * Shares by NVIDIA's Multi-Process Service. Each device or MIG instance has a control daemon with its own directories;
 * several devices have one together while a process uses them together. A share is a ceiling that is fixed when a process
 * connects.
 */
export function createMpsEnforcer(options: MpsEnforcerOptions): MpsEnforcer {
  const daemons = new MpsDaemons({ ...options, folder: resolve(options.folder) });

  const settingsOf = async (
    daemon: MpsDaemon,
    visible: readonly string[],
    share: Share,
    partsMiB?: readonly number[],
  ): Promise<ClientSettings> => {
    const count = (await clientsOf(daemon)).length;
    if (count >= daemon.clientLimit) {
      throw new ShareError(
        `MPS of ${daemon.visible} has ${count} clients and takes no more than ${daemon.clientLimit}.`,
      );
    }
    return {
      env: {
        CUDA_VISIBLE_DEVICES: visible.join(','),
        CUDA_MPS_PIPE_DIRECTORY: daemon.pipe,
        CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: String(share.shareClass),
        // Device numbers as the process sees them: one unknown device in this list drops all limits.
        CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: visible
          .map((_, at) => `${at}=${partsMiB?.[at] ?? share.memoryMiB}M`)
          .join(','),
      },
      binds: [{ path: daemon.pipe, write: true }],
      ...(process.getuid && { uid: process.getuid() }),
    };
  };

  return {
    name: 'mps',
    adjusts: false,
    open: (device, slice) => daemons.open(device, slice),
    isServed: (device, slice) => daemons.isServed(device, slice),
    async outsiders(pids, device, slice) {
      const servers = await daemons.find(device, slice).control.servers();
      const own = new Set(servers.flatMap((server) => [server.pid, ...server.clients]));
      return pids.filter((pid) => !own.has(pid));
    },
    settings: async (device: Device, share, slice) =>
      settingsOf(await daemons.alone(device.uuid, slice), [slice ?? device.uuid], share),
    async gangSettings(devices, share, partsMiB) {
      const uuids = devices.map(({ uuid }) => uuid);
      return settingsOf(await daemons.together(uuids), uuids, share, partsMiB);
    },
    async limitClients(device, slice, { percent, memoryMiB }) {
      const daemon = daemons.find(device, slice);
      const { own, control, devices, ceiling } = daemon;
      if (!own || (ceiling?.percent === percent && ceiling.memoryMiB === memoryMiB)) return;
      delete daemon.ceiling; // A failure may leave the ceiling partly set.
      await control.limit({ percent, memoryMiB }, devices.length);
      daemon.ceiling = { percent, memoryMiB };
    },
    async confirm({ pid, device, slice }) {
      const daemon = daemons.find(device, slice);
      if ((await clientsOf(daemon)).some((client) => client.pid === pid)) return;
      throw new ShareError(
        `Process ${pid} is no client of MPS on ${daemon.visible}: the process may use the whole device`,
      );
    },
    adjust: async () => {
      throw new ShareError('MPS cannot change the share of a running process.');
    },
    async clients(device, slice) {
      const pids = new Set((await clientsOf(daemons.find(device, slice))).map(({ pid }) => pid));
      return [...pids].map((pid) => ({ pid, device, ...(slice !== undefined && { slice }) }));
    },
    async terminate({ pid, device, slice }) {
      const daemon = daemons.find(device, slice);
      const client = (await clientsOf(daemon)).find((one) => one.pid === pid);
      if (!client) throw new ShareError(`Process ${pid} is no client of MPS on ${daemon.visible}.`);
      await daemon.control.terminate(client.server, pid);
    },
    async isFaulted(device, slice) {
      return (await daemons.find(device, slice).control.serversNow()).some(({ faulted }) => faulted);
    },
    async check(device, slice) {
      if (daemons.isChanging(device)) return undefined;
      const { control, visible } = daemons.find(device, slice);
      const servers = await control.servers().catch(() => undefined);
      // The daemon may have been replaced during the check.
      if (daemons.isChanging(device) || daemons.find(device, slice).control !== control) return undefined;
      if (servers === undefined) return `The MPS daemon of ${visible} does not answer.`;
      return servers.some(({ faulted }) => faulted)
        ? `MPS of ${visible} accepts no client: a client's fault has hit all of them.`
        : undefined;
    },
    shut: (device, slice) => daemons.shut(device, slice),
    close: () => daemons.close(),
  };
}

/** The MPS daemons of a machine, by the device or slice that they serve. All methods reject with ShareError. */
class MpsDaemons {
  /** By device or slice; a daemon of several devices is listed under each. */
  private readonly serving = new Map<string, MpsDaemon>();
  private readonly devices = new Map<string, Device>();
  /** By device, whether an operator has set the compute mode, which the platform must not change then. */
  private readonly operators = new Map<string, boolean>();
  private readonly opening = new Map<string, Promise<void>>();
  /** Devices that are being moved from one daemon to another. */
  private readonly changing = new Set<string>();
  private notes: MpsNotes | undefined;
  private last: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: MpsEnforcerOptions) {}

  /** The daemon that serves a device or slice. Throws ShareError. */
  find(device: string, slice?: string): MpsDaemon {
    const daemon = this.serving.get(slice ?? device);
    if (!daemon) throw new ShareError(`MPS has not been opened for ${slice ?? device}.`);
    return daemon;
  }

  /** Whether a device is being moved between daemons, so that it may have none. */
  isChanging(device: string): boolean {
    return this.changing.has(device);
  }

  /** Starts the daemon of a device or slice, unless one serves it already. */
  open(device: Device, slice?: string): Promise<void> {
    const place = slice ?? device.uuid;
    const open = (): Promise<void> => this.openPlace(device, slice).finally(() => this.opening.delete(place));
    const under = this.opening.get(place) ?? this.inTurn(open);
    this.opening.set(place, under);
    return under;
  }

  /** Whether a daemon that an earlier process of the platform started serves a device or slice. */
  isServed(device: Device, slice?: string): Promise<boolean> {
    return this.inTurn(async () => {
      const { folder, control = {} } = this.options;
      this.notes ??= await readMpsNotes(folder);
      const isInGang = this.notes.gangs.some((gang) => gang.includes(device.uuid));
      return isInGang || ownDaemon(folder, control, [device], slice).control.answers();
    });
  }

  /** The daemon of a device or slice alone. Replaces a daemon of several devices once its clients have ended. */
  async alone(device: string, slice?: string): Promise<MpsDaemon> {
    if (this.find(device, slice).devices.length > 1) {
      await this.inTurn(async () => {
        const daemon = this.find(device, slice);
        if (daemon.devices.length > 1) await this.separate(daemon);
      });
    }
    return this.find(device, slice);
  }

  /** One daemon of all these devices. Replaces their present daemons once the clients have ended. */
  together(uuids: readonly string[]): Promise<MpsDaemon> {
    return this.inTurn(async () => {
      const daemons = new Set(uuids.map((uuid) => this.find(uuid)));
      const [first] = daemons;
      const isServed = first?.devices.length === uuids.length || first?.own === false;
      if (first !== undefined && daemons.size === 1 && isServed) return first;
      if ([...daemons].every(({ own, pipe }) => !own && pipe === first?.pipe)) return first as MpsDaemon;
      for (const daemon of daemons) if (daemon.devices.length > 1) await this.separate(daemon);
      const singles = uuids.map((uuid) => this.find(uuid));
      for (const daemon of singles) await untilEmpty(daemon);
      return this.change(uuids, async () => {
        for (const daemon of singles) await this.end(daemon);
        try {
          const daemon = await this.start(uuids.map((uuid) => this.device(uuid)));
          await this.note({ gangs: [...(this.notes?.gangs ?? []), uuids] });
          return daemon;
        } catch (error) {
          for (const uuid of uuids) await this.start([this.device(uuid)]);
          throw error;
        }
      });
    });
  }

  /** Ends the daemon of a device or slice. Rejects while the daemon has clients. */
  shut(device: string, slice?: string): Promise<void> {
    return this.inTurn(async () => {
      const daemon = this.serving.get(slice ?? device);
      if (!daemon) return;
      const answers = await daemon.control.answers();
      if (answers && (await clientsOf(daemon)).length > 0)
        throw new ShareError(`MPS of ${daemon.visible} has clients.`);
      await this.end(daemon);
      for (const uuid of daemon.devices) this.operators.delete(uuid);
    });
  }

  /** Ends all daemons that the platform started. */
  close(): Promise<void> {
    return this.inTurn(async () => {
      for (const daemon of new Set(this.serving.values())) await this.end(daemon);
      this.operators.clear();
    });
  }

  /** Runs changes of the daemons one after another. */
  private inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn = this.last.then(work).catch((error: Error) => {
      throw error instanceof ShareError ? error : new ShareError(`MPS: ${error.message}`);
    });
    this.last = turn.catch(() => undefined);
    return turn;
  }

  private async openPlace(device: Device, slice: string | undefined): Promise<void> {
    const { manage, folder, control = {}, foreignPipe } = this.options;
    this.devices.set(device.uuid, device);
    if (!manage && !device.simulated) {
      const pipe = foreignPipe ?? process.env.CUDA_MPS_PIPE_DIRECTORY ?? '/tmp/nvidia-mps';
      this.serving.set(slice ?? device.uuid, await foreignDaemon(folder, control, pipe, device, slice));
      return;
    }
    this.notes ??= await readMpsNotes(folder);
    const now = this.serving.get(slice ?? device.uuid) ?? (await this.gangOfEarlierLife(device));
    if (now !== undefined && now.devices.length > 1) {
      if (await now.control.answers()) return;
      await this.separate(now);
    } else await this.start([device], slice);
  }

  /** The daemon of several devices that an earlier process started and that serves this device, if there is one. */
  private async gangOfEarlierLife(device: Device): Promise<MpsDaemon | undefined> {
    const { folder, control = {} } = this.options;
    const uuids = this.notes?.gangs.find((gang) => gang.includes(device.uuid));
    if (uuids === undefined) return undefined;
    const daemon = ownDaemon(
      folder,
      control,
      uuids.map((uuid) => ({ ...device, uuid })),
    );
    if (!(await daemon.control.answers())) {
      await this.forgetGang(uuids);
      return undefined;
    }
    for (const uuid of uuids) {
      this.serving.set(uuid, daemon);
      this.operators.set(uuid, this.notes?.exclusive.includes(uuid) !== true);
    }
    return daemon;
  }

  /** Ends the daemon of several devices and starts one for each device. */
  private async separate(daemon: MpsDaemon): Promise<void> {
    await untilEmpty(daemon);
    await this.change(daemon.devices, async () => {
      await this.end(daemon);
      for (const uuid of daemon.devices) if (this.devices.has(uuid)) await this.start([this.device(uuid)]);
    });
  }

  private async change<Result>(devices: readonly string[], work: () => Promise<Result>): Promise<Result> {
    for (const uuid of devices) this.changing.add(uuid);
    try {
      return await work();
    } finally {
      for (const uuid of devices) this.changing.delete(uuid);
    }
  }

  /** Starts a daemon unless it runs, as after a restart of the platform, which daemons and their clients outlive. */
  private async start(devices: readonly Device[], slice?: string): Promise<MpsDaemon> {
    const { folder, control = {} } = this.options;
    const daemon = ownDaemon(folder, control, devices, slice);
    const isRunning = await daemon.control.answers();
    const setsMode = slice === undefined && this.options.setsMode !== false;
    if (setsMode) for (const device of devices) await this.setExclusive(device, isRunning);
    try {
      if (!isRunning) await startDaemon(folder, daemon);
    } catch (error) {
      for (const { uuid } of devices) await this.giveBack(uuid);
      for (const { uuid } of devices) this.operators.delete(uuid);
      throw error;
    }
    for (const { uuid } of devices) this.serving.set(slice ?? uuid, daemon);
    return daemon;
  }

  private async end(daemon: MpsDaemon): Promise<void> {
    const { own, control, devices, slice } = daemon;
    for (const place of slice === undefined ? devices : [slice]) this.serving.delete(place);
    if (!own) return;
    if (await control.answers()) await control.quit();
    if (devices.length > 1) await this.forgetGang(devices);
    if (slice === undefined) for (const uuid of devices) await this.giveBack(uuid);
  }

  /**
   * Makes a device exclusive, so that a process that does not find the daemon gets an error instead of the whole device. A
   * mode that an operator set is kept at the end. If the mode cannot be set, only confirm() finds such processes.
   */
  private async setExclusive({ uuid, mode }: Device, isRunning: boolean): Promise<void> {
    const isNoted = this.notes?.exclusive.includes(uuid) === true;
    const isOperators = this.operators.get(uuid) ?? (mode === 'exclusive' && !isRunning && !isNoted);
    this.operators.set(uuid, isOperators);
    if (isOperators) return;
    // Noted before the change, as a note without a change does no harm.
    if (!isNoted) await this.note({ exclusive: [...(this.notes?.exclusive ?? []), uuid] });
    try {
      await this.options.driver.setExclusive(uuid, true);
    } catch (error) {
      if (!(error instanceof GpuDriverError)) throw error;
      if (!isNoted) await this.forgetExclusive(uuid);
    }
  }

  private async giveBack(uuid: string): Promise<void> {
    if (this.notes?.exclusive.includes(uuid) !== true) return;
    try {
      await this.options.driver.setExclusive(uuid, false);
    } catch (error) {
      if (!(error instanceof GpuDriverError)) throw error;
      return; // The device is lost; a later process that finds it restores its mode.
    }
    await this.forgetExclusive(uuid);
  }

  private device(uuid: string): Device {
    const device = this.devices.get(uuid);
    if (!device) throw new ShareError(`MPS has not been opened for ${uuid}.`);
    return device;
  }

  private forgetExclusive(uuid: string): Promise<void> {
    return this.note({ exclusive: (this.notes?.exclusive ?? []).filter((one) => one !== uuid) });
  }

  private forgetGang(uuids: readonly string[]): Promise<void> {
    return this.note({ gangs: (this.notes?.gangs ?? []).filter((one) => one.join() !== uuids.join()) });
  }

  private async note(changes: Partial<MpsNotes>): Promise<void> {
    this.notes = { ...noNotes, ...this.notes, ...changes };
    await writeMpsNotes(this.options.folder, this.notes);
  }
}
