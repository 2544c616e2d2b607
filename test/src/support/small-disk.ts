// Small file systems in memory, to be filled by tests.
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

/** Removes a mount, also one that is in use. */
export function unmountSmall(folder: string): void {
  run('umount', '-l', folder);
}

/** Whether this process may mount. */
export const canMount = (() => {
  const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-mount-'));
  const mounted = mountSmall(folder, 1);
  if (mounted) unmountSmall(folder);
  rmSync(folder, { recursive: true, force: true });
  return mounted;
})();
