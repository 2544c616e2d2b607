import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { readdir, readFile, realpath } from 'node:fs/promises';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import type { Slice } from '@gpuwhisk/common/gpu';
import type { GpuAccess } from '../../containers/runtime-launch.js';

/** Files of the driver that every client opens, besides those of its devices. */
const common = ['nvidiactl', 'nvidia-uvm', 'nvidia-uvm-tools'];

/**
 * Access of clients to a device of NVIDIA's driver: the files of this device only, and on a cut device those of one
 * instance. The driver's libraries are those that this process finds by LD_LIBRARY_PATH (`searchPath`), else the system's.
 * /proc/driver/nvidia maps devices to files.
 */
export async function nvidiaAccess(
  proc = '/proc/driver/nvidia',
  dev = '/dev',
  searchPath = process.env.LD_LIBRARY_PATH ?? '',
): Promise<(device: string, slice?: Slice) => GpuAccess> {
  const minors = new Map<string, string>();
  for (const name of await readdir(join(proc, 'gpus')).catch(() => [])) {
    const text = await readFile(join(proc, 'gpus', name, 'information'), 'utf8').catch(() => '');
    const uuid = /^GPU UUID:\s*(\S+)/m.exec(text)?.[1];
    const minor = /^Device Minor:\s*(\d+)/m.exec(text)?.[1];
    if (uuid !== undefined && minor !== undefined) minors.set(uuid, minor);
  }
  const libraries = await libraryFolders(searchPath);
  return (device, slice) => {
    const minor = minors.get(device);
    const own = minor === undefined ? [] : [`nvidia${minor}`];
    const mig = join(proc, 'capabilities', `gpu${minor}`, 'mig');
    const files = [...common, ...own, ...(slice?.instance === undefined ? [] : instanceFiles(mig, slice.instance))];
    return {
      env: {},
      binds: files
        .map((name) => join(dev, name))
        .filter((path) => existsSync(path))
        .map((path) => ({ path, mode: 'dev' })),
      libraries,
      oneUser: false,
    };
  };
}

/** Folders of a search path that hold the driver's library for programs, and the folders that links there lead to. */
async function libraryFolders(searchPath: string): Promise<string[]> {
  const folders: string[] = [];
  for (const folder of searchPath.split(delimiter).filter(isAbsolute)) {
    const found = await realpath(join(folder, 'libcuda.so.1')).catch(() => undefined);
    if (found !== undefined) folders.push(folder, dirname(found));
  }
  return [...new Set(folders)];
}

/**
 * Capability files of a GPU instance and its compute instances. Read at each start of a container, because a device that is
 * cut again reuses ids for other files; reads come from the kernel's memory.
 */
function instanceFiles(mig: string, instance: number): string[] {
  const folder = join(mig, `gi${instance}`);
  const accesses = ['.', ...partsOf(folder)].map((name) => join(folder, name, 'access'));
  return accesses.flatMap((path) => {
    const minor = /^DeviceFileMinor:\s*(\d+)/m.exec(read(path))?.[1];
    return minor === undefined ? [] : [`nvidia-caps/nvidia-cap${minor}`];
  });
}

/** Names in a folder; empty if the folder, and so the instance, no longer exists. */
function partsOf(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => name.startsWith('ci'));
  } catch {
    return [];
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
