// Disk space that a file holds beyond its end.
import { constants as fsConstants, existsSync } from 'node:fs';
import { open, statfs } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

/** Space that a file can grow into. */
export interface SpaceAhead {
  /** Tries to allocate `wanted` bytes behind the file's end; resolves with those that are. Rejects if the disk fails otherwise. */
  extend(wanted: number): Promise<number>;
  /** Whether what `extend` found is allocated; otherwise it was free at that time, for all programs. */
  readonly isHeld: boolean;
  close(): Promise<void>;
}

interface AllocateAddon {
  /** Allocates the first `length` bytes of a file without changing its size; resolves with 0 or the number of the error. */
  allocate(descriptor: number, length: number): Promise<number>;
}

const addonPath = fileURLToPath(new URL('../../../native/build/allocate.node', import.meta.url));
const MiB = 1024 * 1024;

/**
 * Opens the file at `path`, made empty if it is absent. Tells `onWarning` once, in a line, if no space can be allocated there:
 * free space of the disk counts then. Rejects if the file cannot be opened for writing.
 */
export async function openSpaceAhead(path: string, onWarning: (line: string) => void): Promise<SpaceAhead> {
  const addon = allocateAddon();
  const unable = (reason: string): void =>
    onWarning(`space for ${path} cannot be allocated ahead (${reason}): the disk's free space is looked at instead`);
  if (!addon) unable('the addon native/allocate is not built');
  return new FileSpace(path, await open(path, fsConstants.O_RDWR | fsConstants.O_CREAT, 0o664), addon, unable);
}

function allocateAddon(): AllocateAddon | undefined {
  return existsSync(addonPath) ? (createRequire(import.meta.url)(addonPath) as AllocateAddon) : undefined;
}

/**
 * Allocates the first `bytes` bytes of the file at `path`, made empty if it is absent, where its file system can. Resolves with
 * whether the disk has them. Rejects if the file cannot be opened for writing.
 */
export async function allocateStart(path: string, bytes: number): Promise<boolean> {
  const handle = await open(path, fsConstants.O_RDWR | fsConstants.O_CREAT, 0o664);
  try {
    const error = (await allocateAddon()?.allocate(handle.fd, bytes)) ?? 0;
    return !isFull(error);
  } finally {
    await handle.close();
  }
}

class FileSpace implements SpaceAhead {
  /** The file's bytes before this one have space, those before its end included: a hole would need some later. */
  private allocated = 0;

  constructor(
    private readonly path: string,
    private readonly handle: FileHandle,
    /** Absent without a compiler, and once the file system has refused. */
    private addon: AllocateAddon | undefined,
    private readonly unable: (reason: string) => void,
  ) {}

  get isHeld(): boolean {
    return this.addon !== undefined;
  }

  async extend(wanted: number): Promise<number> {
    const { size } = await this.handle.stat();
    // Less than a MiB is no use to anyone.
    for (let bytes = wanted; this.addon && bytes >= MiB && size + bytes > this.allocated; bytes /= 2) {
      const length = size + Math.floor(bytes);
      const error = await this.addon.allocate(this.handle.fd, length);
      if (error === 0) this.allocated = length;
      else if (isUnsupported(error)) {
        this.addon = undefined;
        this.unable(`its file system answers error ${error}`);
      } else if (!isFull(error)) throw new Error(`space for ${this.path} could not be allocated: error ${error}`);
    }
    return this.addon ? Math.max(0, this.allocated - size) : await this.free(wanted);
  }

  close(): Promise<void> {
    return this.handle.close();
  }

  /** Without allocation the disk's free space is all there is to go by. */
  private async free(wanted: number): Promise<number> {
    const { bavail, bsize } = await statfs(this.path);
    return Math.min(wanted, bavail * bsize);
  }
}

const { EOPNOTSUPP, ENOSYS, EINVAL, ENODEV, ENOSPC, EDQUOT, EFBIG } = constants.errno;
const isUnsupported = (error: number): boolean => [EOPNOTSUPP, ENOSYS, EINVAL, ENODEV].includes(error);
const isFull = (error: number): boolean => [ENOSPC, EDQUOT, EFBIG].includes(error);
