// Progress of a command, read from its output or a log.
import { open } from 'node:fs/promises';
import { StringDecoder } from 'node:string_decoder';
import type { Flags } from '../../args/flags.js';
import { messageOf, usageError } from '../../errors.js';

/** Where the progress of a command is read from, and how. */
export interface ProgressSource {
  /** Has one group: the count of steps so far, or with `isRate` their rate. */
  pattern: RegExp;
  isRate: boolean;
  /** The log; absent: the command's stdout and stderr. */
  file?: string;
}

/** The source that the flags name; undefined if there is none. @throws WskError */
export function progressSource(flags: Flags): ProgressSource | undefined {
  if (!flags.given('progress')) {
    const alone = ['progress-log', 'progress-is'].find((name) => flags.given(name));
    if (alone !== undefined) throw usageError(`--${alone} requires --progress`);
    return undefined;
  }
  const text = flags.text('progress');
  let pattern: RegExp;
  let groups: number;
  try {
    pattern = new RegExp(text);
    groups = (new RegExp(`${text}|`).exec('') ?? []).length - 1;
  } catch (error) {
    throw usageError(`--progress must be a regular expression: ${messageOf(error)}`);
  }
  if (groups !== 1) throw usageError(`--progress must have one group, the number of steps (it has ${groups})`);
  const meaning = flags.given('progress-is') ? flags.text('progress-is') : 'count';
  if (meaning !== 'count' && meaning !== 'rate') throw usageError('--progress-is must be count or rate');
  const source = { pattern, isRate: meaning === 'rate' };
  return flags.given('progress-log') ? { ...source, file: flags.text('progress-log') } : source;
}

/** Shortest time over which a rate is computed, ms: output arrives in bursts. */
const leastWindowMs = 500;

/** A rate per second, and whether it is only what a step can still reach that does not end. */
export interface MeasuredRate {
  rate: number;
  isStalled: boolean;
}

/** The rate of a count of steps, as runtimes/training measures it. Times are monotonic ms. */
export class ProgressMeter {
  /** The newest count, and the steps by which it grew. */
  private last: { count: number; at: number; steps: number } | undefined;
  /** The count up to which the rate was computed. */
  private read: { count: number; at: number } | undefined;
  private rate: number | undefined;

  /** Takes the count so far. A lower count than before begins a new series. */
  count(count: number, at: number): void {
    if (this.last === undefined || count < this.last.count) this.read = { count, at };
    else if (count === this.last.count) return;
    const steps = Math.max(0, count - (this.last?.count ?? count));
    this.last = { count, at, steps };
  }

  /**
   * Steps per second since the last call; undefined before the second count. Without a new count it is the last rate. If
   * the present step takes more than twice as long as the last ones, it is the rate that this step can still reach.
   */
  rateAt(at: number): MeasuredRate | undefined {
    const { last, read } = this;
    if (last === undefined || read === undefined) return undefined;
    const ms = last.at - read.at;
    if (ms >= leastWindowMs) {
      this.rate = ((last.count - read.count) / ms) * 1000;
      this.read = last;
    }
    if (this.rate === undefined) return undefined;
    const silentS = (at - last.at) / 1000;
    const isStalled = last.steps > 0 && silentS * this.rate > 2 * last.steps;
    return { rate: isStalled ? last.steps / silentS : this.rate, isStalled };
  }
}

/** Longest part of a line in which progress is looked for, characters. */
const longestLine = 4096;

/** Finds progress in output as it arrives. */
export class ProgressReader {
  private readonly meter = new ProgressMeter();
  private reported: number | undefined;

  constructor(private readonly source: ProgressSource) {}

  /** A receiver of one stream's bytes. Progress bars end their lines by carriage returns. */
  receiver(): (bytes: Buffer) => void {
    const decoder = new StringDecoder('utf8');
    let rest = '';
    return (bytes) => {
      const lines = (rest + decoder.write(bytes)).split(/[\r\n]+/);
      rest = (lines.pop() ?? '').slice(-longestLine);
      for (const line of lines) this.take(line);
    };
  }

  private take(line: string): void {
    const text = this.source.pattern.exec(line.slice(0, longestLine))?.[1];
    const value = text === undefined || text.trim() === '' ? NaN : Number(text);
    if (!Number.isFinite(value) || value < 0) return;
    if (!this.source.isRate) this.meter.count(value, performance.now());
    else if (value > 0) this.reported = value;
  }

  /** The rate to report; undefined if nothing is known, or for a rate that was read before. */
  next(): MeasuredRate | undefined {
    if (!this.source.isRate) return this.meter.rateAt(performance.now());
    const rate = this.reported;
    this.reported = undefined;
    return rate === undefined ? undefined : { rate, isStalled: false };
  }
}

const lookEveryMs = 500;
/** Bytes that are read of a log at once. */
const chunkBytes = 256 * 1024;

/**
 * Passes what is added to a log from now on to `receive`, until `stop` is called. The log may be created later, cut off,
 * or replaced by another file.
 */
export async function followLog(name: string, receive: (bytes: Buffer) => void): Promise<{ stop(): void }> {
  let inode: bigint | undefined;
  let offset = 0n;
  const look = async (isFirst: boolean): Promise<void> => {
    const file = await open(name, 'r');
    try {
      const { ino, size } = await file.stat({ bigint: true });
      if (isFirst) [inode, offset] = [ino, size];
      if (ino !== inode || size < offset) [inode, offset] = [ino, 0n];
      const buffer = Buffer.alloc(chunkBytes);
      while (offset < size) {
        const { bytesRead } = await file.read(buffer, 0, chunkBytes, Number(offset));
        if (bytesRead === 0) break;
        offset += BigInt(bytesRead);
        receive(Buffer.from(buffer.subarray(0, bytesRead)));
      }
    } finally {
      await file.close();
    }
  };
  const absent = (): void => undefined; // It may come, or become readable, later.
  await look(true).catch(absent);
  let isLooking = false;
  const timer = setInterval(() => {
    if (isLooking) return;
    isLooking = true;
    void look(false)
      .catch(absent)
      .finally(() => (isLooking = false));
  }, lookEveryMs);
  return { stop: () => clearInterval(timer) };
}
