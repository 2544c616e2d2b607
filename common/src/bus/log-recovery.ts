// Reading of the log files at opening: entries in order, damage skipped, a torn tail cut off.
import type { Disk, DiskFile } from '../system/disk.js';
import type { LogDamage, LogEntry } from './append-log.js';
import { bodyBytesAt, entryHeaderBytes, fileHeaderBytes, markBytes, markOf, readEntry } from './log-format.js';

/** One file of the log. */
export interface Segment {
  path: string;
  /** Of the first entry in it; part of the file's name. */
  firstPosition: number;
  bytes: number;
}

/** What positions are advanced by behind a file that cannot be read, so that none of its positions is given again. */
const unreadablePositions = 1_000_000_000;

const namePattern = /^(\d{16})\.log$/;

/** The name of the file whose first entry has `firstPosition`; names sort as positions do. */
export function segmentName(firstPosition: number): string {
  return `${String(firstPosition).padStart(16, '0')}.log`;
}

/** The log as earlier processes left it. */
interface Recovered {
  segments: Segment[];
  damage: LogDamage[];
  nextPosition: number;
}

/** Reads every log file of a folder once, oldest first; cuts a torn tail off the newest. */
export async function recoverFolder(options: {
  disk: Disk;
  folder: string;
  onEntry: (entry: LogEntry) => void;
  onWarning?: (warning: Error) => void;
}): Promise<Recovered> {
  const { disk, folder, onEntry } = options;
  const names = (await disk.list(folder)).filter((name) => namePattern.test(name));
  const recovered: Recovered = { segments: [], damage: [], nextPosition: 1 };
  for (const [index, name] of names.entries()) {
    const path = `${folder}/${name}`;
    const firstPosition = Number(name.slice(0, 16));
    const newest = index === names.length - 1;
    const segment: Segment = { path, firstPosition, bytes: 0 };
    recovered.segments.push(segment);
    recovered.nextPosition = Math.max(recovered.nextPosition, firstPosition);
    let lastPosition = recovered.nextPosition - 1;
    const scan = await readFile(disk, path, (file) =>
      scanLogFile(file, name, newest, lastPosition, (entry) => {
        lastPosition = entry.position;
        onEntry(entry);
      }),
    );
    recovered.nextPosition = lastPosition + 1;
    if (scan instanceof Error) {
      options.onWarning?.(scan);
      recovered.damage.push({ file: name, offset: 0, reason: 'unreadable' });
      if (newest) recovered.nextPosition += unreadablePositions;
      continue;
    }
    segment.bytes = scan.fileBytes;
    recovered.damage.push(...scan.damage);
    if (newest && scan.goodBytes < scan.fileBytes) await cut(disk, segment, scan, options.onWarning);
    if (newest && segment.bytes > 0 && recovered.nextPosition === firstPosition) recovered.nextPosition++;
  }
  return recovered;
}

async function readFile(
  disk: Disk,
  path: string,
  scan: (file: Awaited<ReturnType<Disk['open']>>) => Promise<FileScan>,
): Promise<FileScan | Error> {
  try {
    const file = await disk.open(path);
    try {
      return await scan(file);
    } finally {
      await file.close();
    }
  } catch (error) {
    return error as Error;
  }
}

/** An uncut tail does no harm (appends go to a new file), it is only reported again at the next start. */
async function cut(
  disk: Disk,
  segment: Segment,
  scan: FileScan,
  onWarning: ((warning: Error) => void) | undefined,
): Promise<void> {
  try {
    const file = await disk.open(segment.path);
    try {
      await file.truncate(scan.goodBytes);
      await file.sync();
      segment.bytes = scan.goodBytes;
    } finally {
      await file.close();
    }
  } catch (error) {
    onWarning?.(error as Error);
  }
}

/** Bytes that are read at once, and so about the memory that reading takes (a longer entry takes its length). */
const windowBytes = 1024 * 1024;

/** A file seen through a window that moves forward. */
class Window {
  bytes: Buffer = Buffer.alloc(0);
  /** Offset in the file of the window's first byte. */
  start = 0;

  constructor(
    private readonly file: DiskFile,
    readonly fileBytes: number,
  ) {}

  /** Moves so that `length` bytes from `offset` on are inside; false where the file ends before. */
  async show(offset: number, length: number): Promise<boolean> {
    if (offset + length > this.fileBytes) return false;
    if (offset >= this.start && offset + length <= this.start + this.bytes.length) return true;
    const read = await this.file.read(offset, Math.min(Math.max(length, windowBytes), this.fileBytes - offset));
    this.bytes = Buffer.from(read.buffer, read.byteOffset, read.byteLength);
    this.start = offset;
    return this.bytes.length >= length;
  }

  /** The offset of the next place from `offset` on where `mark` lies; the file's end if there is none. */
  async find(mark: Buffer, offset: number): Promise<number> {
    while (await this.show(offset, markBytes)) {
      const found = this.bytes.indexOf(mark, offset - this.start);
      if (found !== -1) return this.start + found;
      offset = this.start + this.bytes.length - markBytes + 1;
    }
    return this.fileBytes;
  }
}

async function findMark(window: Window): Promise<Buffer | undefined> {
  if (await window.show(0, fileHeaderBytes)) {
    const mark = markOf(window.bytes);
    if (mark) return mark;
  }
  // A damaged header: the first entry starts with the same mark.
  if (!(await window.show(fileHeaderBytes, markBytes))) return undefined;
  const at = fileHeaderBytes - window.start;
  return Buffer.from(window.bytes.subarray(at, at + markBytes));
}

/** What reading one file found. */
interface FileScan {
  /** Where the last good entry ends (0 if there is none): what lies behind can be cut off. */
  goodBytes: number;
  fileBytes: number;
  /** The highest position read, or the one given. */
  lastPosition: number;
  damage: LogDamage[];
}

/**
 * Hands every readable entry of a log file to `onEntry`, in order, skipping damaged stretches. Positions must
 * rise from `lastPosition` on. Damage with nothing good behind it is a torn tail in the `newest` file, where a
 * crash may have left one.
 */
async function scanLogFile(
  file: DiskFile,
  name: string,
  newest: boolean,
  lastPosition: number,
  onEntry: (entry: LogEntry) => void,
): Promise<FileScan> {
  const window = new Window(file, await file.size());
  const scan: FileScan = { goodBytes: 0, fileBytes: window.fileBytes, lastPosition, damage: [] };
  if (window.fileBytes === 0) return scan;
  const mark = await findMark(window);
  const headerIsGood = window.start === 0 && markOf(window.bytes) !== undefined;
  let badFrom = headerIsGood ? undefined : 0;
  let at = fileHeaderBytes;
  while (mark && at < window.fileBytes) {
    const entry = await entryAt(window, at, mark);
    if (entry && entry.position > scan.lastPosition) {
      if (badFrom !== undefined) scan.damage.push({ file: name, offset: badFrom, reason: 'bad checksum' });
      badFrom = undefined;
      scan.lastPosition = entry.position;
      onEntry({ position: entry.position, stream: entry.stream, payload: Buffer.from(entry.payload) });
      at = scan.goodBytes = at + entry.bytes;
    } else {
      badFrom ??= at;
      at = await window.find(mark, at + 1);
    }
  }
  if (badFrom !== undefined) {
    scan.damage.push({ file: name, offset: badFrom, reason: newest ? 'torn tail' : 'bad checksum' });
  }
  return scan;
}

async function entryAt(
  window: Window,
  offset: number,
  mark: Buffer,
): Promise<{ position: number; stream: string; payload: Buffer; bytes: number } | undefined> {
  if (!(await window.show(offset, entryHeaderBytes))) return undefined;
  const body = bodyBytesAt(window.bytes, offset - window.start, mark);
  if (body === undefined || !(await window.show(offset, entryHeaderBytes + body))) return undefined;
  const entry = readEntry(window.bytes, offset - window.start, body);
  return entry && { ...entry, bytes: entryHeaderBytes + body };
}
