import { ShareError } from './share-enforcer.js';
import type { ShareClient, ShareEnforcer } from './share-enforcer.js';

/** A ShareEnforcer in memory that behaves like MPS, with methods by which tests and simulations change it. */
export interface SimulatedEnforcer extends ShareEnforcer {
  /** Connects a process, as a process started with settings() does when it makes its context. */
  connect(client: ShareClient): void;
  disconnect(pid: number): void;
  /** Ends the daemon of a device or slice, and its clients. */
  fail(place: string): void;
}

/** Shares of simulated processes, which are only ids. `clientLimit`: clients of one device or slice; default 48. */
export function createSimulatedEnforcer({ clientLimit = 48 } = {}): SimulatedEnforcer {
  const opened = new Map<string, Map<number, ShareClient>>();
  const failed = new Set<string>();
  const find = (device: string, slice?: string): Map<number, ShareClient> => {
    const clients = opened.get(slice ?? device);
    if (!clients) throw new ShareError(`Shares have not been opened for ${slice ?? device}.`);
    return clients;
  };
  const isHere = ({ pid, device, slice }: ShareClient): boolean => find(device, slice).has(pid);

  return {
    name: 'mps',
    adjusts: false,
    async open(device, slice) {
      const place = slice ?? device.uuid;
      if (!opened.has(place) || failed.delete(place)) opened.set(place, new Map());
    },
    async settings(device, share, slice) {
      if (find(device.uuid, slice).size >= clientLimit) throw new ShareError(`No more than ${clientLimit} clients.`);
      const env = {
        CUDA_VISIBLE_DEVICES: slice ?? device.uuid,
        CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: String(share.shareClass),
        CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: `0=${share.memoryMiB}M`,
      };
      return { env, binds: [] };
    },
    async gangSettings(devices, share, partsMiB) {
      const others = devices.filter(({ uuid }) => find(uuid).size > 0);
      if (others.length > 0) throw new ShareError(`${others.map(({ uuid }) => uuid).join(', ')} has clients.`);
      const env = {
        CUDA_VISIBLE_DEVICES: devices.map(({ uuid }) => uuid).join(','),
        CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: String(share.shareClass),
        CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: devices
          .map((_, at) => `${at}=${partsMiB?.[at] ?? share.memoryMiB}M`)
          .join(','),
      };
      return { env, binds: [] };
    },
    async confirm(client) {
      if (!isHere(client)) throw new ShareError(`Process ${client.pid} is no client.`);
    },
    async adjust() {
      throw new ShareError('The share of a process that runs cannot be changed.');
    },
    clients: async (device, slice) => [...find(device, slice).values()],
    async terminate(client) {
      if (!isHere(client)) throw new ShareError(`Process ${client.pid} is no client.`);
      find(client.device, client.slice).delete(client.pid);
    },
    async check(device, slice) {
      find(device, slice);
      return failed.has(slice ?? device) ? 'The daemon does not answer.' : undefined;
    },
    async shut(device, slice) {
      const place = slice ?? device;
      if ((opened.get(place)?.size ?? 0) > 0) throw new ShareError(`${place} has clients.`);
      opened.delete(place);
      failed.delete(place);
    },
    async close() {
      opened.clear();
    },
    connect(client) {
      if (!failed.has(client.slice ?? client.device)) find(client.device, client.slice).set(client.pid, client);
    },
    disconnect(pid) {
      for (const clients of opened.values()) clients.delete(pid);
    },
    fail(place) {
      failed.add(place);
      opened.get(place)?.clear();
    },
  };
}
