import { entryHeaderBytes, writeEntry } from './log-format.js';

const chunkBytes = 256 * 1024;

/** A promise with its handles; made only when a caller waits. */
export interface Deferred {
  promise: Promise<void>;
  resolve: () => void;
  reject: (error: Error) => void;
}

/** Entries that go out in one write. */
export interface Group {
  chunks: Uint8Array[];
  bytes: number;
  firstPosition: number;
  lastPosition: number;
  /** Settled with the group; undefined if no caller waits. */
  deferred: Deferred | undefined;
}

/** A promise that is settled from outside. */
export function newDeferred(): Deferred {
  let resolve!: () => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<void>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}

/** Encodes entries one behind the other into large chunks until the gathered group is taken. */
export class GroupBuilder {
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
