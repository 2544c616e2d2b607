// Small file systems, to be filled by tests.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const run = (command: string, ...args: string[]): boolean => spawnSync(command, args).status === 0;

/** Mounts a file system of `sizeMiB` at `folder`; whether that succeeded. */
export function mountSmall(folder: string, sizeMiB: number): boolean {
  mkdirSync(folder, { recursive: true });
  return run('mount', '-t', 'tmpfs', '-o', `size=${sizeMiB}m`, 'tmpfs', folder);
}

/**
 * Mounts an ext4 of `sizeMiB`, which is in the file `image`, at `folder`; whether that succeeded. Without the feature `extent`
 * it cannot allocate space ahead.
 */
export function mountSmallExt4(folder: string, image: string, sizeMiB: number, extents = true): boolean {
  mkdirSync(folder, { recursive: true });
  const features = extents ? [] : ['-O', '^extent,^64bit'];
  const made = run('truncate', '-s', `${sizeMiB}M`, image) && run('mkfs.ext4', '-q', '-m', '0', ...features, image);
  return made && run('mount', '-o', 'loop', image, folder);
}

/** Removes a mount, also one that is in use. */
export function unmountSmall(folder: string): void {
  run('umount', '-l', folder);
}

const works = (mount: (folder: string, beside: string) => boolean): boolean => {
  const beside = mkdtempSync(join(tmpdir(), 'gpuwhisk-mount-'));
  const folder = join(beside, 'mount');
  const mounted = mount(folder, beside);
  if (mounted) unmountSmall(folder);
  rmSync(beside, { recursive: true, force: true });
  return mounted;
};

/** Whether this process may mount. */
export const canMount = works((folder) => mountSmall(folder, 1));

/** Whether it may mount file systems that are in files. */
export const canMountExt4 = works((folder, beside) => mountSmallExt4(folder, join(beside, 'image'), 8));
