import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Disk, DiskFile } from '@gpuwhisk/common/system/disk';
import type { Random } from '@gpuwhisk/common/system/random';
import { randomFraction } from '@gpuwhisk/common/system/random';

interface Content {
  bytes: Buffer;
  /** Number of bytes, from the start of the file, that would survive a power loss. */
  syncedBytes: number;
}

/** Effects of a crash on bytes that were not synced. */
export interface CrashFaults {
  /** Share of the files that keep part of their unsynced tail. */
  tornShare: number;
  /** Share of the kept tails in which a page was never written and reads as zeros. */
  holeShare: number;
  /** Share of the kept tails in which bits flip. */
  flipShare: number;
  /** Share of the crashes in which the latest removals are undone. */
  undoneRemovalShare: number;
}

const defaultCrashFaults: CrashFaults = {
  tornShare: 0.7,
  holeShare: 0.2,
  flipShare: 0.2,
  undoneRemovalShare: 0.3,
};

const pageBytes = 512;

/**
 * A disk in memory that keeps only synced data, under a seeded generator. Creating and renaming files is durable at
 * once, as Disk promises. Removals are not: a crash can undo them, the latest first.
 */
export class SimulatedDisk implements Disk {
  private readonly files = new Map<string, Content>();
  private removed: { path: string; content: Content }[] = [];
  private life = 0;
  private readonly planned: { operation: 'append' | 'sync'; after: number; error: Error }[] = [];

  constructor(
    private readonly clock: Clock,
    private readonly random: Random,
    /** Longest duration of an operation, ms; durations are uniform up to this value. */
    private readonly latencyMs = 2,
    private readonly faults: CrashFaults = defaultCrashFaults,
  ) {}

  async open(path: string): Promise<DiskFile> {
    await this.pass();
    if (!this.files.has(path)) this.files.set(path, { bytes: Buffer.alloc(0), syncedBytes: 0 });
    return this.fileAt(path);
  }

  async list(folder: string): Promise<string[]> {
    await this.pass();
    const names = [...this.files.keys()].filter((path) => path.startsWith(`${folder}/`));
    return names.map((path) => path.slice(folder.length + 1)).sort();
  }

  makeFolder(): Promise<void> {
    return this.pass();
  }

  async remove(path: string): Promise<void> {
    await this.pass();
    const content = this.files.get(path);
    if (content) this.removed.push({ path, content });
    this.files.delete(path);
  }

  async rename(from: string, to: string): Promise<void> {
    await this.pass();
    const content = this.files.get(from);
    if (!content) throw new Error(`ENOENT: no such file '${from}'`);
    this.files.delete(from);
    this.files.set(to, content);
  }

  /** Makes an operation fail: the one after `after` others of its kind. */
  failLater(operation: 'append' | 'sync', after: number, message: string): void {
    this.planned.push({ operation, after, error: new Error(message) });
  }

  /** Cuts the power: operations in progress never end, and unsynced bytes are lost, wholly or in part. */
  crash(): void {
    this.life++;
    this.planned.length = 0;
    this.undoRemovals();
    for (const content of this.files.values()) this.loseTail(content);
  }

  /** Flips one bit of a file at `at`, a fraction of its length. */
  flipBit(path: string, at: number): void {
    const content = this.files.get(path);
    if (!content || content.bytes.length === 0) return;
    const index = Math.floor(at * content.bytes.length);
    content.bytes[index] = (content.bytes[index] ?? 0) ^ (1 << (this.random.uint32() % 8));
  }

  /** Paths of all files, sorted. */
  paths(): string[] {
    return [...this.files.keys()].sort();
  }

  private undoRemovals(): void {
    if (this.chance(this.faults.undoneRemovalShare)) {
      const undone = this.removed.slice(this.random.uint32() % (this.removed.length + 1));
      for (const { path, content } of undone) this.files.set(path, content);
    }
    this.removed = [];
  }

  private loseTail(content: Content): void {
    const { syncedBytes } = content;
    const unsynced = content.bytes.length - syncedBytes;
    const kept = unsynced > 0 && this.chance(this.faults.tornShare) ? this.random.uint32() % (unsynced + 1) : 0;
    content.bytes = Buffer.from(content.bytes.subarray(0, syncedBytes + kept));
    if (kept > 0 && this.chance(this.faults.holeShare)) {
      const start = syncedBytes + (this.random.uint32() % kept);
      content.bytes.fill(0, start, Math.min(content.bytes.length, start + pageBytes));
    }
    if (kept > 0 && this.chance(this.faults.flipShare)) {
      const index = syncedBytes + (this.random.uint32() % kept);
      content.bytes[index] = (content.bytes[index] ?? 0) ^ (1 << (this.random.uint32() % 8));
    }
    // Bytes that survived a crash are synced.
    content.syncedBytes = content.bytes.length;
  }

  private fileAt(path: string): DiskFile {
    const content = (): Content => {
      const found = this.files.get(path);
      if (!found) throw new Error(`EBADF: '${path}' was removed`);
      return found;
    };
    const sync = async (): Promise<void> => {
      const bytes = content().bytes.length;
      await this.pass();
      this.failIfPlanned('sync');
      content().syncedBytes = Math.max(content().syncedBytes, bytes);
    };
    return {
      sync,
      append: async (chunks) => {
        const appended = Buffer.concat(chunks);
        // The bytes reach the page cache piece by piece: a crash meanwhile leaves any part of them.
        const first = this.random.uint32() % (appended.length + 1);
        content().bytes = Buffer.concat([content().bytes, appended.subarray(0, first)]);
        await this.pass();
        this.failIfPlanned('append');
        content().bytes = Buffer.concat([content().bytes, appended.subarray(first)]);
        await sync();
      },
      read: async (offset, length) => {
        await this.pass();
        return Uint8Array.from(content().bytes.subarray(offset, offset + length));
      },
      truncate: async (length) => {
        await this.pass();
        content().bytes = Buffer.from(content().bytes.subarray(0, length));
        content().syncedBytes = Math.min(content().syncedBytes, length);
      },
      size: async () => {
        await this.pass();
        return content().bytes.length;
      },
      close: () => this.pass(),
    };
  }

  private failIfPlanned(operation: 'append' | 'sync'): void {
    for (const plan of this.planned) {
      if (plan.operation === operation && plan.after-- === 0) throw plan.error;
    }
  }

  private chance(share: number): boolean {
    return randomFraction(this.random) < share;
  }

  /** Takes a moment; forever if the power is lost meanwhile. */
  private pass(): Promise<void> {
    const life = this.life;
    return new Promise((resolve) => {
      this.clock.setTimer(randomFraction(this.random) * this.latencyMs, () => {
        if (life === this.life) resolve();
      });
    });
  }
}
