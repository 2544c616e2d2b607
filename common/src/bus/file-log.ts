// The append log in files of one folder, and the groups of entries that are written at once.
import type { Clock, Timer } from '../system/clock.js';
import type { Disk, DiskFile } from '../system/disk.js';
import type { Random } from '../system/random.js';
import type { AppendLog, LogDamage, LogEntry } from './append-log.js';
import { LogBehindError, LogFailedError } from './append-log.js';
import {
  encodeFileHeader,
  entryHeaderBytes,
  fileHeaderBytes,
  markBytes,
  maxBodyBytes,
  writeEntry,
} from './log-format.js';
import type { Segment } from './log-recovery.js';
import { recoverFolder, segmentName } from './log-recovery.js';

/** Entries without a waiting caller are written and synced after this time, ms. */
const lazyMs = 20;
/** After a failure it is tried so often whether the log can be written again, ms. */
const repairMs = 1000;

/** What a log is opened with. */
export interface AppendLogOptions {
  disk: Disk;
  /** Absolute path of the folder that holds nothing but the log's files; made if absent. */
  folder: string;
  clock: Clock;
  random: Random;
  /** Sees every readable entry of earlier processes, in order, before the log opens. */
  onEntry: (entry: LogEntry) => void;
  /** Told of what did not work and does no harm: a file that could not be removed or cut. */
  onWarning?: (warning: Error) => void;
  /** A file is closed and the next begun when it is larger than this. Small: more files; large: disk space is freed late. */
  segmentBytes?: number;
  /** Bytes that may wait in memory to be written, at most. */
  maxGatheredBytes?: number;
}

/**
 * Opens the log in `folder`, reading the entries of earlier processes. Damage is skipped and listed, and never keeps the
 * log from opening; only a folder that cannot be listed or made does.
 */
export async function openAppendLog(options: AppendLogOptions): Promise<{ log: AppendLog; damage: LogDamage[] }> {
  await options.disk.makeFolder(options.folder);
  const { segments, damage, nextPosition } = await recoverFolder(options);
  return { log: new FileLog(options, segments, nextPosition), damage };
}

class FileLog implements AppendLog {
  private readonly mark: Buffer;
  private readonly gathered: GroupBuilder;
  private readonly segmentBytes: number;
  private readonly maxGatheredBytes: number;
  private readonly firstOfThisLife: number;
  /** The file that is appended to; none until the first write. */
  private active: { file: DiskFile; segment: Segment } | undefined;
  private writing: Group | undefined;
  private flushed: Promise<void> = Promise.resolve();
  private scheduled: Timer | 'now' | undefined;
  private syncedPosition: number;
  private removal: Promise<void> | undefined;
  private releasedPosition = 0;
  private failure: LogFailedError | undefined;
  /** What could not be written: it goes out first once there is room. */
  private unwritten: Group[] = [];
  private repairTimer: Timer | undefined;
  private repairing: Promise<void> | undefined;
  private closed = false;

  constructor(
    private readonly options: AppendLogOptions,
    /** Oldest first; the active one, if any, is the last. */
    private readonly segments: Segment[],
    private nextPosition: number,
  ) {
    this.mark = Buffer.from(options.random.bytes(markBytes));
    this.gathered = new GroupBuilder(this.mark);
    this.segmentBytes = options.segmentBytes ?? 16 * 1024 * 1024;
    this.maxGatheredBytes = options.maxGatheredBytes ?? 64 * 1024 * 1024;
    this.firstOfThisLife = nextPosition;
    this.syncedPosition = nextPosition - 1;
  }

  append(stream: string, payload: Uint8Array | string): number {
    if (this.failure) throw this.failure;
    const streamBytes = Buffer.byteLength(stream);
    const payloadBytes = typeof payload === 'string' ? Buffer.byteLength(payload) : payload.length;
    const bodyBytes = streamBytes + payloadBytes;
    if (bodyBytes > maxBodyBytes || streamBytes > 0xffff) {
      throw new RangeError(`a log entry may have ${maxBodyBytes} bytes at most, this one has ${bodyBytes}`);
    }
    if (this.gathered.bytes + entryHeaderBytes + bodyBytes > this.maxGatheredBytes && this.gathered.bytes > 0) {
      throw new LogBehindError(`${this.gathered.bytes} bytes wait to be written to the log already`);
    }
    const position = this.nextPosition++;
    this.gathered.add(position, stream, streamBytes, payload, payloadBytes);
    if (!this.scheduled && !this.writing) {
      this.scheduled = this.options.clock.setTimer(lazyMs, () => this.startFlush());
    }
    return position;
  }

  synced(position: number): Promise<void> {
    if (position <= this.syncedPosition) return Promise.resolve();
    if (this.failure) return Promise.reject(this.failure);
    if (position >= this.nextPosition) return Promise.reject(new RangeError(`no entry has position ${position} yet`));
    if (this.writing && position <= this.writing.lastPosition) {
      return (this.writing.deferred ??= newDeferred()).promise;
    }
    this.hurry();
    return (this.gathered.deferred ??= newDeferred()).promise;
  }

  oldestWithin(bytes: number): number {
    let kept = 0;
    for (let i = this.segments.length - 1; i >= 0; i--) {
      const segment = this.segments[i] as Segment;
      kept += segment.bytes;
      if (kept > bytes) return this.endOf(i);
    }
    return this.segments[0]?.firstPosition ?? this.nextPosition;
  }

  release(position: number): void {
    this.releasedPosition = Math.max(this.releasedPosition, position);
    this.removal ??= this.removeReleased().finally(() => {
      this.removal = undefined;
    });
  }

  async close(): Promise<void> {
    while (!this.failure && (this.writing || this.gathered.bytes > 0)) {
      if (!this.writing) this.startFlush();
      await this.flushed;
    }
    if (this.scheduled !== 'now') this.scheduled?.cancel();
    if (!this.closed && this.unwritten.length > 0) await this.repair();
    this.repairTimer?.cancel();
    const failure = this.closed ? undefined : this.failure;
    this.closed = true;
    this.failure ??= new LogFailedError('the log is closed');
    await this.removal;
    const file = this.active?.file;
    this.active = undefined;
    await file?.close();
    if (failure) throw failure;
  }

  /** Flushes at the end of this turn of the event loop, so that all that is handled in it shares one write. */
  private hurry(): void {
    if (this.writing || this.scheduled === 'now') return;
    this.scheduled?.cancel();
    this.scheduled = 'now';
    this.options.clock.defer(() => this.startFlush());
  }

  private startFlush(): void {
    if (this.scheduled !== 'now') this.scheduled?.cancel();
    this.scheduled = undefined;
    if (!this.writing && !this.failure && this.gathered.bytes > 0) this.flushed = this.flush();
  }

  /** Writes and syncs group after group while a caller waits, then leaves the rest to the timer. */
  private async flush(): Promise<void> {
    do {
      const group = (this.writing = this.gathered.take());
      try {
        await this.write(group);
      } catch (error) {
        this.fail(error as Error, group);
        return;
      }
      this.writing = undefined;
      this.gathered.recycle();
      group.deferred?.resolve();
    } while (this.gathered.deferred);
    if (this.gathered.bytes > 0) this.scheduled = this.options.clock.setTimer(lazyMs, () => this.startFlush());
  }

  private async write(group: Group): Promise<void> {
    const { file, segment } = await this.activeFor(group);
    const isNew = segment.bytes === 0;
    await file.append(isNew ? this.withHeader(group) : group.chunks);
    segment.bytes += group.bytes + (isNew ? fileHeaderBytes : 0);
    this.syncedPosition = group.lastPosition;
  }

  /**
   * After a failed write or sync it is not known which unsynced entries are on disk. No more is taken, and waiting callers are
   * told so; but what was appended is kept, since others may have acted on it, and goes out once the log can be written.
   */
  private fail(cause: Error, group: Group): void {
    this.failure = new LogFailedError(`the log cannot be written: ${cause.message}`, { cause });
    this.writing = undefined;
    this.unwritten = this.gathered.bytes > 0 ? [group, this.gathered.take()] : [group];
    for (const each of this.unwritten) each.deferred?.reject(this.failure);
    this.repairLater();
  }

  private repairLater(): void {
    this.repairTimer = this.options.clock.setBackgroundTimer(repairMs, () => void this.repair());
  }

  /** Tries once to write what could not be written, after which the log takes entries again. Never rejects. */
  private repair(): Promise<void> {
    this.repairTimer?.cancel();
    return (this.repairing ??= this.tryRepair().finally(() => {
      this.repairing = undefined;
    }));
  }

  private async tryRepair(): Promise<void> {
    try {
      await this.cutActive();
      for (let group = this.unwritten[0]; group; group = this.unwritten[0]) {
        await this.write(group);
        this.unwritten.shift();
      }
    } catch (error) {
      this.failure = new LogFailedError(`the log cannot be written: ${(error as Error).message}`, { cause: error });
      this.repairLater();
      return;
    }
    this.gathered.recycle();
    this.failure = undefined;
  }

  /** Ends the file that is appended to behind what was synced: what follows goes to a new one. */
  private async cutActive(): Promise<void> {
    if (this.active === undefined) return;
    const { file, segment } = this.active;
    await file.truncate(segment.bytes);
    await file.sync();
    this.active = undefined;
    await file.close();
  }

  private withHeader(group: Group): Uint8Array[] {
    return [encodeFileHeader(this.mark), ...group.chunks];
  }

  private async activeFor(group: Group): Promise<{ file: DiskFile; segment: Segment }> {
    if (this.active && this.active.segment.bytes < this.segmentBytes) return this.active;
    const previous = this.active;
    this.active = undefined;
    await previous?.file.close();
    const path = `${this.options.folder}/${segmentName(group.firstPosition)}`;
    const file = await this.options.disk.open(path);
    const segment = { path, firstPosition: group.firstPosition, bytes: 0 };
    // A file that lost all its entries was emptied and is used again.
    if (this.segments.at(-1)?.path === path) this.segments.pop();
    this.segments.push(segment);
    this.active = { file, segment };
    return this.active;
  }

  /** One more than the last position that segment `index` may hold. */
  private endOf(index: number): number {
    const next = this.segments[index + 1];
    if (next) return next.firstPosition;
    return this.active?.segment === this.segments[index] ? this.nextPosition : this.firstOfThisLife;
  }

  /** Oldest first and one by one: a mark must not vanish before the message that it belongs to. */
  private async removeReleased(): Promise<void> {
    // The newest file stays: its name carries the next position over a restart.
    while (this.segments.length > 1 && this.endOf(0) <= this.releasedPosition) {
      const oldest = this.segments[0] as Segment;
      try {
        await this.options.disk.remove(oldest.path);
      } catch (error) {
        this.options.onWarning?.(error as Error);
        return;
      }
      this.segments.shift();
    }
  }
}

const chunkBytes = 256 * 1024;

/** A promise with its handles; made only when a caller waits. */
interface Deferred {
  promise: Promise<void>;
  resolve: () => void;
  reject: (error: Error) => void;
}

/** Entries that go out in one write. */
interface Group {
  chunks: Uint8Array[];
  bytes: number;
  firstPosition: number;
  lastPosition: number;
  /** Settled with the group; undefined if no caller waits. */
  deferred: Deferred | undefined;
}

/** A promise that is settled from outside. */
function newDeferred(): Deferred {
  let resolve!: () => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<void>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}

/** Encodes entries one behind the other into large chunks until the gathered group is taken. */
class GroupBuilder {
  private chunk = Buffer.allocUnsafeSlow(chunkBytes);
  /** Where, in the chunk, the gathered group starts and ends. */
  private start = 0;
  private end = 0;
  private full: Uint8Array[] = [];
  private fullBytes = 0;
  private firstPosition = 0;
  private lastPosition = 0;
  deferred: Deferred | undefined;

  constructor(private readonly mark: Buffer) {}

  /** Bytes gathered. */
  get bytes(): number {
    return this.fullBytes + this.end - this.start;
  }

  add(position: number, stream: string, streamBytes: number, payload: Uint8Array | string, payloadBytes: number): void {
    const length = entryHeaderBytes + streamBytes + payloadBytes;
    if (this.end + length > this.chunk.length) this.nextChunk(length);
    if (this.bytes === 0) this.firstPosition = position;
    this.lastPosition = position;
    this.end = writeEntry(this.chunk, this.end, this.mark, position, stream, streamBytes, payload, payloadBytes);
  }

  /** Hands over the gathered entries and starts the next group. The group's chunks are not touched until `recycle`. */
  take(): Group {
    this.closeChunk();
    const { firstPosition, lastPosition, deferred } = this;
    const group = { chunks: this.full, bytes: this.fullBytes, firstPosition, lastPosition, deferred };
    this.full = [];
    this.fullBytes = 0;
    this.deferred = undefined;
    return group;
  }

  /** Tells that no group is being written: the chunk's used part may be written over. */
  recycle(): void {
    if (this.bytes > 0) return;
    if (this.chunk.length > chunkBytes) this.chunk = Buffer.allocUnsafeSlow(chunkBytes);
    this.start = this.end = 0;
  }

  private nextChunk(atLeast: number): void {
    this.closeChunk();
    this.chunk = Buffer.allocUnsafeSlow(Math.max(chunkBytes, atLeast));
    this.start = this.end = 0;
  }

  private closeChunk(): void {
    if (this.end === this.start) return;
    this.full.push(this.chunk.subarray(this.start, this.end));
    this.fullBytes += this.end - this.start;
    this.start = this.end;
  }
}
