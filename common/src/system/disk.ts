import { constants } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';

/** A file opened for appending and reading. */
export interface DiskFile {
  /** Appends the chunks in order; resolves when they would survive a power loss. */
  append(chunks: readonly Uint8Array[]): Promise<void>;
  /** Reads up to `length` bytes at `offset`; fewer only at the end of the file. */
  read(offset: number, length: number): Promise<Uint8Array>;
  /** Resolves when what was done to the file would survive a power loss. */
  sync(): Promise<void>;
  /** Cuts the file to `length` bytes. */
  truncate(length: number): Promise<void>;
  /** Size in bytes. */
  size(): Promise<number>;
  close(): Promise<void>;
}

/** Files under absolute paths. */
export interface Disk {
  /** Opens for append and read, creating an empty file (and syncing its folder) if absent. */
  open(path: string): Promise<DiskFile>;
  /** Names in a folder, sorted; empty if the folder is absent. */
  list(folder: string): Promise<string[]>;
  makeFolder(folder: string): Promise<void>;
  /** Removes a file or a folder with its contents; silent if absent. */
  remove(path: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(1, path.lastIndexOf('/')));
}

/** A write returns when what it wrote is on the disk: one call, and one wait for a thread, instead of two. */
const { O_RDWR, O_CREAT, O_APPEND, O_DSYNC } = constants;
const appending = O_RDWR | O_CREAT | O_APPEND | O_DSYNC;

class SystemFile implements DiskFile {
  constructor(private readonly handle: FileHandle) {}

  async append(chunks: readonly Uint8Array[]): Promise<void> {
    let rest = Buffer.concat(chunks);
    while (rest.length > 0) {
      const { bytesWritten } = await this.handle.write(rest);
      rest = rest.subarray(bytesWritten);
    }
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    const buffer = Buffer.alloc(length);
    let filled = 0;
    while (filled < length) {
      const { bytesRead } = await this.handle.read(buffer, filled, length - filled, offset + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return buffer.subarray(0, filled);
  }

  sync(): Promise<void> {
    return this.handle.datasync();
  }

  truncate(length: number): Promise<void> {
    return this.handle.truncate(length);
  }

  async size(): Promise<number> {
    return (await this.handle.stat()).size;
  }

  close(): Promise<void> {
    return this.handle.close();
  }
}

/** The machine's file system. */
export const systemDisk: Disk = {
  async open(path) {
    const existed = await stat(path).then(
      () => true,
      () => false,
    );
    const handle = await open(path, appending);
    if (!existed) {
      try {
        await syncFolder(parentOf(path));
      } catch (error) {
        // Else the next try would find it, and not sync its folder.
        await handle.close();
        await rm(path, { force: true });
        throw error;
      }
    }
    return new SystemFile(handle);
  },
  async list(folder) {
    try {
      return (await readdir(folder)).sort();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
  },
  async makeFolder(folder) {
    await mkdir(folder, { recursive: true });
  },
  async remove(path) {
    await rm(path, { recursive: true, force: true });
  },
  async rename(from, to) {
    await rename(from, to);
    await syncFolder(parentOf(to));
  },
};
