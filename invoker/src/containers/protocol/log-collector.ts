import type { Readable } from 'node:stream';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';

/** The line that OpenWhisk's runtimes print on both streams after each activation. */
export const sentinel = 'XXX_THE_END_OF_A_WHISK_ACTIVATION_XXX';

const sentinelBytes = Buffer.from(sentinel);
const newline = 10;
/** Kept before the first call says how much it wants, bytes. */
const initialLimitBytes = 1024 * 1024;
const timestampWidth = 30;
/** Dropped between two cuts at full speed, bytes. */
const freeDropBytes = 1024 * 1024;
/** What is dropped beyond that, bytes a second and stream. */
const droppedPerS = 16 * 1024 * 1024;

interface Stream {
  name: 'stdout' | 'stderr';
  readable: Readable;
  /** Set while it is held back. */
  held: Timer | undefined;
  /** Bytes after the last newline. */
  partial: Buffer[];
  partialBytes: number;
  /** Whether the line under way was cut or dropped: the rest of it is not wanted. */
  skipping: boolean;
  sentinelSeen: boolean;
  /** Where a sentinel may have begun at the end of a chunk that was not kept. */
  tail: Buffer;
}

/** The last line of logs that were cut, without its prefix. */
export function truncationNotice(limitBytes: number): string {
  return `Logs were truncated because the total bytes size exceeds the limit of ${limitBytes} bytes.`;
}

/**
 * Lines of a container's stdout and stderr, with OpenWhisk's prefixes. Holds at most the limit of the call under
 * way (prefixes counted). What exceeds it is read and dropped: the first 1 MiB at once, the rest at 16 MiB a second and
 * stream, so that a program that prints without end waits for its pipe, and takes no time from others.
 */
export class LogCollector {
  private readonly streams: Stream[] = [];
  private lines: string[] = [];
  private bytes = 0;
  private truncated = false;
  private limitBytes = initialLimitBytes;
  private readonly sentinels: boolean;
  private stampMs = -1;
  private stamp = '';
  /** Since the last cut. */
  private droppedBytes = 0;
  /** Nothing is held back until the next cut. */
  private catchingUp = false;
  private onSentinels: (() => void) | undefined;
  /** Time at which something was last read, on the clock's monotonic scale. */
  lastReadMs = 0;

  /** `sentinels`: the runtime ends each activation's logs with sentinel lines, which are not logs. */
  constructor(
    private readonly clock: Clock,
    options: { sentinels: boolean },
  ) {
    this.sentinels = options.sentinels;
  }

  /** Reads `readable` to its end. */
  attach(readable: Readable, name: 'stdout' | 'stderr'): void {
    const stream: Stream = {
      name,
      readable,
      held: undefined,
      partial: [],
      partialBytes: 0,
      skipping: false,
      sentinelSeen: false,
      tail: Buffer.alloc(0),
    };
    this.streams.push(stream);
    readable.on('data', (chunk: Buffer) => this.take(stream, chunk));
    // The end of a pipe by an error is its end all the same.
    readable.on('error', () => undefined);
    readable.on('close', () => this.letGo(stream));
  }

  /** Reads on what was held back, until the next cut; whether something was. */
  catchUp(): boolean {
    const held = this.streams.filter((stream) => stream.held !== undefined);
    if (held.length === 0) return false;
    this.catchingUp = true;
    for (const stream of held) this.letGo(stream);
    return true;
  }

  /** Sets how many bytes are kept from now until the next cut; 0 keeps none. */
  limit(bytes: number): void {
    this.limitBytes = bytes;
  }

  /** Everything that was read and not cut before; a line without its newline is a line. */
  cut(): string[] {
    for (const stream of this.streams) {
      if (stream.partialBytes > 0 && !stream.skipping) this.addLine(stream, this.takePartial(stream));
      // What follows belongs to the next cut, even in the middle of a line.
      stream.skipping = false;
      stream.sentinelSeen = false;
    }
    const lines = this.lines;
    if (this.truncated && this.limitBytes > 0) lines.push(this.prefix('stderr') + truncationNotice(this.limitBytes));
    this.lines = [];
    this.bytes = 0;
    this.truncated = false;
    this.droppedBytes = 0;
    this.catchingUp = false;
    return lines;
  }

  /** Whether every stream has shown a sentinel since the last cut. */
  get complete(): boolean {
    return this.streams.every((stream) => stream.sentinelSeen);
  }

  /** Calls `run` once when `complete` becomes true; undefined forgets it. */
  whenComplete(run: (() => void) | undefined): void {
    this.onSentinels = run;
  }

  private take(stream: Stream, chunk: Buffer): void {
    this.lastReadMs = this.clock.monotonicMs();
    if (this.truncated || this.limitBytes === 0) {
      this.drop(stream, chunk);
      return;
    }
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      const piece = chunk.subarray(start, end);
      start = end + 1;
      if (stream.skipping) {
        stream.skipping = false;
        continue;
      }
      this.addLine(stream, stream.partialBytes > 0 ? this.takePartial(stream, piece) : piece);
      if (this.truncated) {
        this.drop(stream, chunk.subarray(start));
        return;
      }
    }
    if (start < chunk.length && !stream.skipping) this.keepPartial(stream, chunk.subarray(start));
  }

  private keepPartial(stream: Stream, piece: Buffer): void {
    // A copy: the chunk it lies in is far larger, and would be held with it.
    stream.partial.push(Buffer.from(piece));
    stream.partialBytes += piece.length;
    if (this.bytes + stream.partialBytes > this.limitBytes) {
      this.addLine(stream, this.takePartial(stream));
      stream.skipping = true;
    }
  }

  private takePartial(stream: Stream, last?: Buffer): Buffer {
    const pieces = last ? [...stream.partial, last] : stream.partial;
    const line = pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces);
    stream.partial = [];
    stream.partialBytes = 0;
    return line;
  }

  private addLine(stream: Stream, text: Buffer): void {
    if (this.sentinels && text.equals(sentinelBytes)) {
      this.markSentinel(stream);
      return;
    }
    if (this.limitBytes === 0) return;
    const prefix = this.prefix(stream.name);
    const room = this.limitBytes - this.bytes - prefix.length - 1;
    this.bytes += prefix.length + text.length + 1;
    if (text.length <= room) {
      this.lines.push(prefix + text.toString('utf8'));
      return;
    }
    this.truncated = true;
    if (room > 0) this.lines.push(prefix + withoutPartialCharacter(text.subarray(0, room)).toString('utf8'));
  }

  private drop(stream: Stream, chunk: Buffer): void {
    if (chunk.length === 0) return;
    this.droppedBytes += chunk.length;
    if (this.droppedBytes > freeDropBytes && !this.catchingUp) this.holdBack(stream, chunk.length);
    stream.partial = [];
    stream.partialBytes = 0;
    stream.skipping = chunk[chunk.length - 1] !== newline;
    if (!this.sentinels) return;
    const searched = stream.tail.length > 0 ? Buffer.concat([stream.tail, chunk]) : chunk;
    if (searched.includes(sentinelBytes)) {
      stream.tail = Buffer.alloc(0);
      stream.skipping = false;
      this.markSentinel(stream);
    } else {
      stream.tail = Buffer.from(searched.subarray(-sentinelBytes.length + 1));
    }
  }

  private holdBack(stream: Stream, bytes: number): void {
    if (stream.held !== undefined) return;
    stream.readable.pause();
    stream.held = this.clock.setTimer(Math.ceil((bytes * 1000) / droppedPerS), () => this.letGo(stream));
  }

  private letGo(stream: Stream): void {
    if (stream.held === undefined) return;
    stream.held.cancel();
    stream.held = undefined;
    stream.readable.resume();
  }

  private markSentinel(stream: Stream): void {
    stream.sentinelSeen = true;
    if (!this.complete) return;
    const run = this.onSentinels;
    this.onSentinels = undefined;
    run?.();
  }

  private prefix(name: 'stdout' | 'stderr'): string {
    const nowMs = this.clock.now();
    if (nowMs !== this.stampMs) {
      this.stampMs = nowMs;
      this.stamp = new Date(nowMs).toISOString().replace('Z', '000000Z').padEnd(timestampWidth);
    }
    return `${this.stamp} ${name}: `;
  }
}

/** `bytes` without a UTF-8 sequence that is cut off at its end. */
export function withoutPartialCharacter(bytes: Buffer): Buffer {
  let start = bytes.length - 1;
  while (start > 0 && start > bytes.length - 4 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start--;
  const lead = bytes[start] ?? 0;
  const wanted = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return start + wanted > bytes.length ? bytes.subarray(0, Math.max(start, 0)) : bytes;
}
