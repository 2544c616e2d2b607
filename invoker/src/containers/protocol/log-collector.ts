import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { gather } from '@gpuwhisk/common/gathered-bytes';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import { nextPiece } from '@gpuwhisk/common/system/pieces';

/** The line that OpenWhisk's runtimes print on both streams after each activation. */
export const sentinel = 'XXX_THE_END_OF_A_WHISK_ACTIVATION_XXX';

const sentinelBytes = Buffer.from(sentinel);
const newline = 10;
/** Bytes that are kept before the first call sets a limit. */
const initialLimitBytes = 1024 * 1024;
const timestampWidth = 30;
/** Bytes that are dropped at full speed between two cuts. */
const freeDropBytes = 1024 * 1024;
/** A chunk of this size is one of many. */
const fullChunkBytes = 16 * 1024;
/** Rate of further drops, bytes per second and stream. */
const droppedPerS = 16 * 1024 * 1024;

interface Stream {
  name: 'stdout' | 'stderr';
  readable: Readable;
  /** Set while reading is held back. */
  held: Timer | undefined;
  /** Whether the last chunk was a full one: there may be more, which is left to the next turn. */
  floods: boolean;
  /** Bytes after the last newline. */
  partial: Buffer[];
  partialBytes: number;
  /** Whether the present line was cut or dropped, so that its rest is dropped, too. */
  skipping: boolean;
  sentinelSeen: boolean;
  /** End of a dropped chunk in which a sentinel may have begun. */
  tail: Buffer;
}

/** The last line of logs that were cut, without its prefix. */
export function truncationNotice(limitBytes: number): string {
  return `Logs were truncated because the total bytes size exceeds the limit of ${limitBytes} bytes.`;
}

/**
 * Lines of a container's stdout and stderr, with OpenWhisk's prefixes. Keeps at most the limit of the call under way
 * (prefixes counted). Further output is read and dropped: the first 1 MiB at full speed, the rest at 16 MiB per second and
 * stream. A program that prints without end thus waits for its pipe and takes no time from others.
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
  /** Bytes dropped since the last cut. */
  private droppedBytes = 0;
  /** Whether reading is not held back until the next cut. */
  private catchingUp = false;
  private onSentinels: (() => void) | undefined;
  /** Monotonic ms of the last read. */
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
      floods: false,
      partial: [],
      partialBytes: 0,
      skipping: false,
      sentinelSeen: false,
      tail: Buffer.alloc(0),
    };
    this.streams.push(stream);
    readable.on('data', (chunk: Buffer) => {
      this.take(stream, chunk);
      // Only for a pipe it is known that all it has is read within a turn.
      stream.floods = readable instanceof Socket && chunk.length >= fullChunkBytes;
      if (stream.floods && !this.catchingUp) void this.yieldAfter(stream);
    });
    // An error of a pipe counts as its end.
    readable.on('error', () => undefined);
    readable.on('close', () => this.letGo(stream));
  }

  /** Reads on at once, until the next cut, from streams that are held back or may have more to read; true if there were any. */
  catchUp(): boolean {
    const behind = this.streams.filter(({ held, floods }) => held !== undefined || floods);
    if (behind.length === 0) return false;
    this.catchingUp = true;
    for (const stream of behind) {
      this.letGo(stream);
      stream.readable.resume();
    }
    return true;
  }

  /** Sets how many bytes are kept from now until the next cut; 0 keeps none. */
  limit(bytes: number): void {
    this.limitBytes = bytes;
  }

  /** Removes and returns all lines so far; an unfinished last line counts as a line. */
  cut(): string[] {
    for (const stream of this.streams) {
      if (stream.partialBytes > 0 && !stream.skipping) this.addLine(stream, this.takePartial(stream));
      // Later bytes belong to the next cut, even in the middle of a line.
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

  /** The lines since the last cut, from a place on. */
  since(from: number): string[] {
    return this.lines.slice(from);
  }

  /** Whether every stream has shown a sentinel since the last cut. */
  get complete(): boolean {
    return this.streams.every((stream) => stream.sentinelSeen);
  }

  /** Calls `run` once when `complete` becomes true; undefined removes the callback. */
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
    let isFirst = true;
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
      if (isFirst) start += this.takeWholeLines(stream, chunk.subarray(start));
      isFirst = false;
    }
    if (start < chunk.length && !stream.skipping) this.keepPartial(stream, chunk.subarray(start));
  }

  /**
   * Takes the whole lines of a large chunk that are within the limit, and returns where the rest begins. They are cut out
   * of one text, as the collection of 100,000 small texts that live long takes the thread for 60 ms.
   */
  private takeWholeLines(stream: Stream, chunk: Buffer): number {
    const end = chunk.lastIndexOf(newline);
    if (chunk.length < fullChunkBytes || end === -1) return 0;
    const whole = chunk.subarray(0, end);
    if (this.sentinels && whole.includes(sentinelBytes)) return 0;
    const prefix = this.prefix(stream.name);
    const lines = (prefix + whole.toString('utf8').replaceAll('\n', `\n${prefix}`)).split('\n');
    const bytes = whole.length + lines.length * prefix.length + 1;
    if (this.bytes + bytes > this.limitBytes) return 0;
    this.bytes += bytes;
    for (const line of lines) this.lines.push(line);
    return end + 1;
  }

  private keepPartial(stream: Stream, piece: Buffer): void {
    // Copied, because a slice would keep its far larger chunk in memory.
    gather(stream.partial, Buffer.from(piece));
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

  /** Leaves the next turn to others: libuv would go on to read up to 2 MiB, 20 ms of work. */
  private async yieldAfter(stream: Stream): Promise<void> {
    if (stream.held !== undefined) return;
    stream.readable.pause();
    await nextPiece(this.clock);
    if (stream.held === undefined) stream.readable.resume();
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

/** `bytes` without an incomplete UTF-8 sequence at the end. */
export function withoutPartialCharacter(bytes: Buffer): Buffer {
  let start = bytes.length - 1;
  while (start > 0 && start > bytes.length - 4 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start--;
  const lead = bytes[start] ?? 0;
  const wanted = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return start + wanted > bytes.length ? bytes.subarray(0, Math.max(start, 0)) : bytes;
}
