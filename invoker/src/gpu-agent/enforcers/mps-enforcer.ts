import { resolve } from 'node:path';
import type { Device, Share } from '@gpuwhisk/common/gpu';
import type { GpuDriver } from '../drivers/gpu-driver.js';
import { MpsDaemons } from './mps-daemons.js';
import { clientsOf } from './mps-daemon.js';
import type { MpsDaemon } from './mps-daemon.js';
import type { MpsProgram } from './mps-control.js';
import { ShareError } from './share-enforcer.js';
import type { ClientSettings, ShareEnforcer } from './share-enforcer.js';

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

/**
 * Shares by NVIDIA's Multi-Process Service: one control daemon for each device or MIG instance, with directories of its own,
 * and one for several devices while a process uses them together. A share is a ceiling that is fixed when a process
 * connects.
 */
export function createMpsEnforcer(options: MpsEnforcerOptions): ShareEnforcer {
  const daemons = new MpsDaemons({ ...options, folder: resolve(options.folder) });

  const settingsOf = async (daemon: MpsDaemon, visible: readonly string[], share: Share): Promise<ClientSettings> => {
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
        // By their numbers among those that it sees: one unknown device in this list drops all limits.
        CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: visible.map((_, at) => `${at}=${share.memoryMiB}M`).join(','),
      },
      binds: [{ path: daemon.pipe, write: true }],
      ...(process.getuid && { uid: process.getuid() }),
    };
  };

  return {
    name: 'mps',
    adjusts: false,
    open: (device, slice) => daemons.open(device, slice),
    settings: async (device: Device, share, slice) =>
      settingsOf(await daemons.alone(device.uuid, slice), [slice ?? device.uuid], share),
    async gangSettings(devices, share) {
      const uuids = devices.map(({ uuid }) => uuid);
      return settingsOf(await daemons.together(uuids), uuids, share);
    },
    async limitClients(device, slice, { percent, memoryMiB }) {
      const daemon = daemons.find(device, slice);
      const { own, control, devices, ceiling } = daemon;
      if (!own || (ceiling?.percent === percent && ceiling.memoryMiB === memoryMiB)) return;
      delete daemon.ceiling; // Half of it may be set if this fails.
      await control.limit({ percent, memoryMiB }, devices.length);
      daemon.ceiling = { percent, memoryMiB };
    },
    async confirm({ pid, device, slice }) {
      const daemon = daemons.find(device, slice);
      if ((await clientsOf(daemon)).some((client) => client.pid === pid)) return;
      throw new ShareError(`Process ${pid} is no client of MPS on ${daemon.visible}: it may have all of the device`);
    },
    adjust: async () => {
      throw new ShareError('MPS cannot change the share of a process that runs.');
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
    async check(device, slice) {
      if (daemons.isChanging(device)) return undefined;
      const { control, visible } = daemons.find(device, slice);
      const servers = await control.servers().catch(() => undefined);
      // It may have made way while it was asked.
      if (daemons.isChanging(device) || daemons.find(device, slice).control !== control) return undefined;
      if (servers === undefined) return `The MPS daemon of ${visible} does not answer.`;
      return (await control.isFaulted(servers))
        ? `MPS of ${visible} lets nobody in: a client's fault has hit all of them.`
        : undefined;
    },
    shut: (device, slice) => daemons.shut(device, slice),
    close: () => daemons.close(),
  };
}
