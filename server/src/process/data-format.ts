// The format of a data folder: changes between releases, the backup before a change, and the way back.
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, readdirSync } from 'node:fs';
import { constants, copyFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readBuildInfo } from './build-info.js';
import { DataFolderError } from './data-lock.js';

/** A change of a data folder, which no process uses meanwhile, to the next format. It may run again after a backup was put back. */
type Migration = (folder: string) => Promise<void>;

/** The formats that a release knows. */
export interface Formats {
  /** The format that it writes. */
  format: number;
  /** The changes to the next format, by the format that each begins with: one for every format before `format`. */
  migrations: Readonly<Record<number, Migration>>;
}

/**
 * The formats of this release. A change of stored data that the release before cannot read gets the next number, a migration, and
 * a folder in test/fixtures/data-formats that the release before has written.
 */
const ownFormats: Formats = { format: 1, migrations: {} };

/** The file that tells the format; a folder without it is of the first one. */
const formatFile = 'format.json';
const backupsFolder = 'backups';
/** Entries of a data folder that a start makes again: caches, sockets, folders of running functions. */
const notKept = new Set([
  ...[backupsFolder, 'server.lock', 'lost+found'],
  ...['builds', 'compiled', 'docker', 'gpus', 'requirements', 'runtimes', 'sandboxes'],
]);

interface Told {
  format: number;
  /** The release that wrote this format first. */
  release: string;
  /** Set while the folder is changed to another format: the backup is put back first if that was interrupted. */
  changing?: boolean;
}

const backupOf = (folder: string, format: number): string => join(folder, backupsFolder, `format-${format}`);
const keptIn = (folder: string): string[] => readdirSync(folder).filter((name) => !notKept.has(name));
const isDiskFull = (error: unknown): boolean =>
  ['ENOSPC', 'EDQUOT'].includes(String((error as NodeJS.ErrnoException).code));

function sync(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Copies a file or folder; when it returns, the copy survives a power loss. */
function copy(from: string, to: string): void {
  const { mode } = statSync(from);
  if (statSync(from).isDirectory()) {
    mkdirSync(to, { mode });
    for (const name of readdirSync(from)) copy(join(from, name), join(to, name));
  } else copyFileSync(from, to, constants.COPYFILE_FICLONE);
  sync(to);
}

function bytesOf(path: string): number {
  const { size, blocks } = statSync(path);
  if (!statSync(path).isDirectory()) return Math.min(size, blocks * 512);
  return readdirSync(path).reduce((sum, name) => sum + bytesOf(join(path, name)), 0);
}

function readTold(folder: string): Told | undefined {
  const file = join(folder, formatFile);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const told = parsed(text);
  if (told !== undefined) return told;
  throw new DataFolderError(
    `The file ${file} is damaged, so that the format of the data is unknown; write {"format":N,"release":"VERSION"} into it, with the format of the release that wrote the data (docs/install.md).`,
  );
}

function parsed(text: string): Told | undefined {
  try {
    const told = JSON.parse(text) as Partial<Told> | null;
    return Number.isInteger(told?.format) && typeof told?.release === 'string' ? (told as Told) : undefined;
  } catch {
    return undefined;
  }
}

function writeTold(folder: string, told: Told): void {
  const file = join(folder, formatFile);
  writeFileSync(`${file}.new`, `${JSON.stringify(told)}\n`, { mode: 0o600 });
  sync(`${file}.new`);
  renameSync(`${file}.new`, file);
  sync(folder);
}

const present = (folder: string): Told => readTold(folder) ?? { format: 1, release: 'of the first format' };

/**
 * Throws DataFolderError, with a line that names the backup if there is one, if this release cannot open the folder. Reads one file,
 * and changes nothing: a server may use the folder.
 */
export function checkDataFormat(folder: string, { format }: Formats = ownFormats): void {
  const told = present(folder);
  if (told.format <= format) return;
  const backups = Array.from({ length: format }, (_, index) => backupOf(folder, format - index));
  const backup = backups.find((path) => existsSync(path));
  const back =
    backup === undefined
      ? `There is no backup from before that change in ${join(folder, backupsFolder)}`
      : `Or return to the data of before that change, without what was written since, with 'gpuwhisk serve --restore-backup --data ${folder}': its backup is ${backup}`;
  throw new DataFolderError(
    `The data in ${folder} has format ${told.format}, of gpuwhisk ${told.release}; this is ${readBuildInfo().number}, which reads up to format ${format}. Install ${told.release} or newer. ${back}.`,
  );
}

/**
 * Brings a locked data folder to this release's format. Before a change all kept data is copied to `backups/format-N`, which stays
 * until an operator removes it. Rejects with DataFolderError, and leaves the data as it was, for a newer format and for a disk
 * without space for the copy.
 */
export async function openDataFormat(folder: string, formats: Formats = ownFormats): Promise<void> {
  checkDataFormat(folder, formats);
  const isNew = !keptIn(folder).some((name) => name !== formatFile);
  const own: Told = { format: formats.format, release: readBuildInfo().number };
  const told = readTold(folder);
  const { format, changing } = isNew ? own : present(folder);
  if (format === formats.format && changing !== true) {
    if (told === undefined) writeTold(folder, own);
    return;
  }
  if (changing === true) putBack(folder, format);
  else backUp(folder, format, formats.format);
  writeTold(folder, { ...present(folder), changing: true });
  for (let from = format; from < formats.format; from += 1) {
    const migration = formats.migrations[from];
    if (migration === undefined) throw new Error(`there is no migration from format ${from}`);
    await migration(folder);
  }
  writeTold(folder, own);
}

/** Copies kept data to the backup of its format, whole or not at all. */
function backUp(folder: string, format: number, next: number): void {
  const backup = backupOf(folder, format);
  const unfinished = `${backup}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  try {
    mkdirSync(unfinished, { recursive: true, mode: 0o700 });
    for (const name of keptIn(folder)) copy(join(folder, name), join(unfinished, name));
    // From an earlier change that was put back: the present data counts.
    rmSync(backup, { recursive: true, force: true });
    renameSync(unfinished, backup);
    sync(join(folder, backupsFolder));
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    if (!isDiskFull(error)) throw error;
    const mib = Math.ceil(keptIn(folder).reduce((sum, name) => sum + bytesOf(join(folder, name)), 0) / 2 ** 20);
    throw new DataFolderError(
      `The disk of ${folder} has no space for the backup before the change from format ${format} to ${next}: free ${mib} MiB, and start again. The data is unchanged, and the release before can open it.`,
      { cause: error },
    );
  }
}

/** Replaces kept data by the backup of a format. */
function putBack(folder: string, format: number): void {
  const backup = backupOf(folder, format);
  // The file of the format comes last: until then an interrupted return is begun again.
  const names = readdirSync(backup).filter((name) => name !== formatFile);
  for (const name of keptIn(folder))
    if (name !== formatFile) rmSync(join(folder, name), { recursive: true, force: true });
  for (const name of names) copy(join(backup, name), join(folder, name));
  writeTold(folder, present(backup));
}

/**
 * Puts back the backup of the newest format that this release reads, in a locked data folder of a newer format; the newer data is kept in
 * `backups/format-N`. Returns a line about it. Throws DataFolderError if there is no backup, the data is not newer, or the disk is full.
 */
export function restoreBackup(folder: string, { format }: Formats = ownFormats): string {
  const told = present(folder);
  if (told.format <= format && told.changing !== true)
    throw new DataFolderError(
      `The data in ${folder} has format ${told.format}, which this release reads: nothing is restored.`,
    );
  const formats = Array.from({ length: format }, (_, index) => format - index);
  const found = formats.find((one) => existsSync(backupOf(folder, one)));
  if (found === undefined)
    throw new DataFolderError(`There is no backup of a format up to ${format} in ${join(folder, backupsFolder)}.`);
  if (told.changing !== true) backUp(folder, told.format, found);
  // An interrupted return is begun again, by either release.
  writeTold(folder, { ...told, changing: true });
  putBack(folder, found);
  return `The data in ${folder} has format ${found} again. The data of format ${told.format} is in ${backupOf(folder, told.format)}.`;
}
