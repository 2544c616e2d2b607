import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { GpuAccess } from '../../containers/process/gpu-launch.js';

/** Files of the driver that every client opens, beside those of its devices. */
const common = ['nvidiactl', 'nvidia-uvm', 'nvidia-uvm-tools'];

/**
 * What clients of NVIDIA's own driver need: the files of the device that they were given and no other's. The libraries are
 * the system's. The driver tells in /proc/driver/nvidia which file is whose.
 */
export async function nvidiaAccess(
  proc = '/proc/driver/nvidia',
  dev = '/dev',
): Promise<(device: string, slice?: string) => GpuAccess> {
  const minors = new Map<string, string>();
  const instances = new Map<string, string[]>();
  for (const name of await names(join(proc, 'gpus'))) {
    const text = await read(join(proc, 'gpus', name, 'information'));
    const uuid = /^GPU UUID:\s*(\S+)/m.exec(text)?.[1];
    const minor = /^Device Minor:\s*(\d+)/m.exec(text)?.[1];
    if (uuid === undefined || minor === undefined) continue;
    minors.set(uuid, minor);
    instances.set(uuid, await instanceFiles(join(proc, 'capabilities', `gpu${minor}`, 'mig')));
  }
  return (device, slice) => {
    const minor = minors.get(device);
    const own = minor === undefined ? [] : [`nvidia${minor}`];
    // Which of a device's instances a slice is the driver tells no user; each file is of this device at least.
    const files = [...common, ...own, ...(slice === undefined ? [] : (instances.get(device) ?? []))];
    return {
      env: {},
      binds: files
        .map((name) => join(dev, name))
        .filter((path) => existsSync(path))
        .map((path) => ({ path, mode: 'dev' })),
      libraries: [],
      oneUser: false,
    };
  };
}

async function instanceFiles(folder: string): Promise<string[]> {
  const files: string[] = [];
  for (const instance of (await names(folder)).filter((name) => name.startsWith('gi'))) {
    const parts = (await names(join(folder, instance))).filter((name) => name.startsWith('ci'));
    for (const path of ['access', ...parts.map((name) => join(name, 'access'))]) {
      const minor = /^DeviceFileMinor:\s*(\d+)/m.exec(await read(join(folder, instance, path)))?.[1];
      if (minor !== undefined) files.push(`nvidia-caps/nvidia-cap${minor}`);
    }
  }
  return files;
}

/** Empty where there is no such folder: no driver, or no MIG. */
const names = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);
const read = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');
