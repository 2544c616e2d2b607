import { ShareError } from './share-enforcer.js';
import type { ShareEnforcer } from './share-enforcer.js';

/** No enforcement of shares: processes take turns on their device, as the driver schedules them. */
export function noEnforcer(): ShareEnforcer {
  const refuse = (what: string): Promise<never> =>
    Promise.reject(new ShareError(`Shares are not enforced on this node: ${what}.`));
  return {
    name: 'none',
    adjusts: false,
    open: async () => undefined,
    settings: async (device, _share, slice) => ({ env: { CUDA_VISIBLE_DEVICES: slice ?? device.uuid }, binds: [] }),
    gangSettings: async (devices) => ({
      env: { CUDA_VISIBLE_DEVICES: devices.map(({ uuid }) => uuid).join(',') },
      binds: [],
    }),
    confirm: async () => undefined,
    adjust: () => refuse('no share can be changed'),
    clients: async () => [],
    terminate: () => refuse('to take a device from a process, end the process'),
    check: async () => undefined,
    shut: async () => undefined,
    close: async () => undefined,
  };
}
