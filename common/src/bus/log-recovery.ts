import type { Disk } from '../system/disk.js';
import type { LogDamage, LogEntry } from './append-log.js';
import type { FileScan } from './log-reader.js';
import { scanLogFile } from './log-reader.js';

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

/** What earlier lives left. */
export interface Recovered {
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
