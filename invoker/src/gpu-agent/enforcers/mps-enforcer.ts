import { createHash } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { mpsClientLimit } from '@gpuwhisk/common/gpu';
import type { Device } from '@gpuwhisk/common/gpu';
import type { GpuDriver } from '../drivers/gpu-driver.js';
import { GpuDriverError } from '../drivers/gpu-driver.js';
import { mpsControl } from './mps-control.js';
import type { MpsControl, MpsDirectories, MpsProgram } from './mps-control.js';
import { ShareError } from './share-enforcer.js';
import type { ShareEnforcer } from './share-enforcer.js';

export interface MpsEnforcerOptions {
  driver: GpuDriver;
  /** Folder of the daemons' directories. Its path is to be short: a socket's, which lies 26 characters below, ends at 107. */
  folder: string;
  /** Start and end daemons, and set compute modes. Otherwise a daemon that somebody else runs is used. */
  manage: boolean;
  control?: MpsProgram;
  /** Pipe directory of the daemon that somebody else runs; default: as CUDA has it. */
  foreignPipe?: string;
}

const longestSocketPath = 107;

/** A device or slice that is served. */
interface Place {
  /** What its clients see: the UUID of the device or of the slice. */
  visible: string;
  pipe: string;
  control: MpsControl;
  /** Whether it is ours to end. */
  own: boolean;
  /** The device whose compute mode was set for it. */
  exclusive: string | undefined;
  clientLimit: number;
}

/** MPS on an instance takes clients in proportion to its SMs. */
function clientLimitOf(device: Device, slice?: string): number {
  const part = device.slices.find(({ uuid }) => uuid === slice);
  return part ? Math.max(1, Math.floor((mpsClientLimit * part.smCount) / device.smCount)) : mpsClientLimit;
}

/**
 * Shares by NVIDIA's Multi-Process Service: one control daemon for each device or MIG instance, with directories of its own.
 * A share is a ceiling that is fixed when a process connects.
 */
export function createMpsEnforcer(options: MpsEnforcerOptions): ShareEnforcer {
  const { driver, manage } = options;
  const folder = resolve(options.folder);
  const places = new Map<string, Place>();
  const opening = new Map<string, Promise<void>>();

  const directoriesOf = (visible: string) => {
    const home = join(folder, createHash('sha256').update(visible).digest('hex').slice(0, 12));
    return { pipe: join(home, 'pipe'), log: join(home, 'log') };
  };

  /**
   * So that a process which misses the daemon gets an error, not the whole device. Undefined: the mode is not ours to give back, as
   * an operator has made the device exclusive, or it may not be set, and confirm() is left.
   */
  const setExclusive = async ({ uuid, mode }: Device, daemonRuns: boolean): Promise<string | undefined> => {
    const before = places.get(uuid);
    const isOperators = before ? before.exclusive === undefined : mode === 'exclusive' && !daemonRuns;
    if (isOperators) return undefined;
    try {
      await driver.setExclusive(uuid, true);
      return uuid;
    } catch (error) {
      ignoreDriver(error);
      return undefined;
    }
  };

  const giveBack = async (exclusive: string | undefined): Promise<void> => {
    if (exclusive !== undefined) await driver.setExclusive(exclusive, false).catch(ignoreDriver);
  };

  const start = async (control: MpsControl, { pipe, log }: MpsDirectories, visible: string): Promise<void> => {
    await rm(pipe, { recursive: true, force: true });
    await mkdir(pipe, { recursive: true });
    await mkdir(log, { recursive: true });
    await control.start(visible);
    if (!(await control.answers())) throw new ShareError(`MPS for ${visible} was started and does not answer.`);
  };

  const openOwn = async (device: Device, slice: string | undefined): Promise<Place> => {
    const visible = slice ?? device.uuid;
    const directories = directoriesOf(visible);
    const { pipe } = directories;
    if (Buffer.byteLength(join(pipe, 'control')) > longestSocketPath) {
      throw new ShareError(`MPS cannot be started: the path ${pipe} is too long for a socket.`);
    }
    const control = mpsControl(directories, options.control ?? {});
    // One of ours may still run, with its clients: then the platform was restarted.
    const daemonRuns = await control.answers();
    const exclusive = slice === undefined ? await setExclusive(device, daemonRuns) : undefined;
    try {
      if (!daemonRuns) await start(control, directories, visible);
    } catch (error) {
      await giveBack(exclusive);
      throw error;
    }
    return { visible, pipe, control, own: true, exclusive, clientLimit: clientLimitOf(device, slice) };
  };

  const openForeign = async (device: Device, slice: string | undefined): Promise<Place> => {
    const visible = slice ?? device.uuid;
    const pipe = options.foreignPipe ?? process.env.CUDA_MPS_PIPE_DIRECTORY ?? '/tmp/nvidia-mps';
    const control = mpsControl({ pipe, log: directoriesOf(visible).log }, options.control ?? {});
    if (!(await control.answers())) {
      throw new ShareError(`No MPS daemon runs at ${pipe}, and gpu.manage.mps is off.`);
    }
    return { visible, pipe, control, own: false, exclusive: undefined, clientLimit: clientLimitOf(device, slice) };
  };

  const find = (device: string, slice?: string): Place => {
    const place = places.get(slice ?? device);
    if (!place) throw new ShareError(`MPS has not been opened for ${slice ?? device}.`);
    return place;
  };

  const clientsOf = async (place: Place): Promise<{ pid: number; server: number }[]> => {
    const servers = await place.control.servers();
    const lists = servers.map(async (server) => (await place.control.clients(server)).map((pid) => ({ pid, server })));
    return (await Promise.all(lists)).flat();
  };

  const openPlace = async (device: Device, slice: string | undefined): Promise<void> => {
    const visible = slice ?? device.uuid;
    const place = await (manage || device.simulated ? openOwn(device, slice) : openForeign(device, slice)).catch(
      (error: Error) => {
        throw error instanceof ShareError ? error : new ShareError(`MPS for ${visible}: ${error.message}`);
      },
    );
    places.set(visible, place);
  };

  const end = async ({ own, control, exclusive }: Place): Promise<void> => {
    if (!own) return;
    if (await control.answers()) await control.quit();
    await giveBack(exclusive);
  };

  return {
    name: 'mps',
    adjusts: false,
    open(device, slice) {
      const visible = slice ?? device.uuid;
      const under = opening.get(visible) ?? openPlace(device, slice).finally(() => opening.delete(visible));
      opening.set(visible, under);
      return under;
    },
    async settings(device, share, slice) {
      const place = find(device.uuid, slice);
      const count = (await clientsOf(place)).length;
      if (count >= place.clientLimit) {
        throw new ShareError(
          `MPS of ${place.visible} has ${count} clients and takes no more than ${place.clientLimit}.`,
        );
      }
      return {
        env: {
          CUDA_VISIBLE_DEVICES: place.visible,
          CUDA_MPS_PIPE_DIRECTORY: place.pipe,
          CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: String(share.shareClass),
          // By its number, which is 0 for the only one that it sees: one unknown device in this list drops all limits.
          CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: `0=${share.memoryMiB}M`,
        },
        binds: [{ path: place.pipe, write: true }],
        ...(process.getuid && { uid: process.getuid() }),
      };
    },
    async confirm({ pid, device, slice }) {
      const place = find(device, slice);
      if ((await clientsOf(place)).some((client) => client.pid === pid)) return;
      throw new ShareError(`Process ${pid} is no client of MPS on ${place.visible}: it may have all of the device`);
    },
    adjust: async () => {
      throw new ShareError('MPS cannot change the share of a process that runs.');
    },
    async clients(device, slice) {
      const pids = new Set((await clientsOf(find(device, slice))).map(({ pid }) => pid));
      return [...pids].map((pid) => ({ pid, device, ...(slice !== undefined && { slice }) }));
    },
    async terminate({ pid, device, slice }) {
      const place = find(device, slice);
      const client = (await clientsOf(place)).find((one) => one.pid === pid);
      if (!client) throw new ShareError(`Process ${pid} is no client of MPS on ${place.visible}.`);
      await place.control.terminate(client.server, pid);
    },
    async check(device, slice) {
      const { control, visible } = find(device, slice);
      const servers = await control.servers().catch(() => undefined);
      if (servers === undefined) return `The MPS daemon of ${visible} does not answer.`;
      return (await control.isFaulted(servers))
        ? `MPS of ${visible} lets nobody in: a client's fault has hit all of them.`
        : undefined;
    },
    async shut(device, slice) {
      const place = places.get(slice ?? device);
      if (!place) return;
      const answers = await place.control.answers();
      if (answers && (await clientsOf(place)).length > 0) throw new ShareError(`MPS of ${place.visible} has clients.`);
      places.delete(place.visible);
      await end(place);
    },
    async close() {
      const all = [...places.values()];
      places.clear();
      for (const place of all) await end(place);
    },
  };
}

/** A device that is lost by then has no mode to give back. */
function ignoreDriver(error: unknown): void {
  if (!(error instanceof GpuDriverError)) throw error;
}
