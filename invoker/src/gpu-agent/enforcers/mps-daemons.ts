import type { Device } from '@gpuwhisk/common/gpu';
import { GpuDriverError } from '../drivers/gpu-driver.js';
import type { MpsEnforcerOptions } from './mps-enforcer.js';
import { clientsOf, foreignDaemon, ownDaemon, startDaemon, untilEmpty } from './mps-daemon.js';
import type { MpsDaemon } from './mps-daemon.js';
import { noNotes, readMpsNotes, writeMpsNotes } from './mps-notes.js';
import type { MpsNotes } from './mps-notes.js';
import { ShareError } from './share-enforcer.js';

/** The MPS daemons of a machine: which one serves each device or slice now. Everything rejects with ShareError. */
export class MpsDaemons {
  /** By device or slice; the daemon of several devices is there under each. */
  private readonly serving = new Map<string, MpsDaemon>();
  private readonly devices = new Map<string, Device>();
  /** Whether an operator has set a device's compute mode, so that it is not ours to change. */
  private readonly operators = new Map<string, boolean>();
  private readonly opening = new Map<string, Promise<void>>();
  /** Devices that one daemon gives up for another just now. */
  private readonly changing = new Set<string>();
  private notes: MpsNotes | undefined;
  private last: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: MpsEnforcerOptions) {}

  /** Throws ShareError. */
  find(device: string, slice?: string): MpsDaemon {
    const daemon = this.serving.get(slice ?? device);
    if (!daemon) throw new ShareError(`MPS has not been opened for ${slice ?? device}.`);
    return daemon;
  }

  /** Whether a device is between two daemons: that none serves it is in order then. */
  isChanging(device: string): boolean {
    return this.changing.has(device);
  }

  /** Has a device or slice served; at once where it is. */
  open(device: Device, slice?: string): Promise<void> {
    const place = slice ?? device.uuid;
    const open = (): Promise<void> => this.openPlace(device, slice).finally(() => this.opening.delete(place));
    const under = this.opening.get(place) ?? this.inTurn(open);
    this.opening.set(place, under);
    return under;
  }

  /** The daemon of a device or slice alone. That of several devices makes way, once its clients are gone. */
  async alone(device: string, slice?: string): Promise<MpsDaemon> {
    if (this.find(device, slice).devices.length > 1) {
      await this.inTurn(async () => {
        const daemon = this.find(device, slice);
        if (daemon.devices.length > 1) await this.separate(daemon);
      });
    }
    return this.find(device, slice);
  }

  /** One daemon of all these devices. Those that they have make way, once their clients are gone. */
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

  /** Ends what serves a device or slice. Rejects while that has clients. */
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

  /** Ends all that is ours. */
  close(): Promise<void> {
    return this.inTurn(async () => {
      for (const daemon of new Set(this.serving.values())) await this.end(daemon);
      this.operators.clear();
    });
  }

  /** What changes who serves what is done one after another. */
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

  /** The daemon of several devices that outlived the platform which started it, if it has this one. */
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

  /** Ends the daemon of several devices, and gives each its own again. */
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

  /** Starts a daemon unless it runs: one of ours may, with its clients, if the platform was restarted. */
  private async start(devices: readonly Device[], slice?: string): Promise<MpsDaemon> {
    const { folder, control = {} } = this.options;
    const daemon = ownDaemon(folder, control, devices, slice);
    const isRunning = await daemon.control.answers();
    if (slice === undefined) for (const device of devices) await this.setExclusive(device, isRunning);
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
   * So that a process which misses the daemon gets an error, not the whole device. The mode is not ours to give back where an
   * operator has made the device exclusive; where it may not be set, confirm() is left.
   */
  private async setExclusive({ uuid, mode }: Device, isRunning: boolean): Promise<void> {
    const isNoted = this.notes?.exclusive.includes(uuid) === true;
    const isOperators = this.operators.get(uuid) ?? (mode === 'exclusive' && !isRunning && !isNoted);
    this.operators.set(uuid, isOperators);
    if (isOperators) return;
    // Before it is done: what is noted in vain does no harm.
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
      return; // Lost by now: a later life that finds it gives it back.
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
