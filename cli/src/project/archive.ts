import AdmZip from 'adm-zip';

/** A file of an archive; `name` is a relative path without `..`. */
export interface ArchiveFile {
  name: string;
  content: Buffer;
  /** Permission bits. */
  mode: number;
}

const maxFiles = 50_000;
const maxUnpackedBytes = 512 * 1024 * 1024;
const symbolicLink = 0o120000;
const fileType = 0o170000;

/**
 * Reads a zip archive of a repository, whose one folder at the top is left out. Symbolic links are left out too.
 * @throws Error if it is no archive, is too large, or has a path that leads out of its folder.
 */
export function readArchive(bytes: Buffer): ArchiveFile[] {
  const entries = new AdmZip(bytes).getEntries();
  if (entries.length > maxFiles) throw new Error(`it has more than ${maxFiles} files`);
  const unpackedBytes = entries.reduce((sum, { header }) => sum + header.size, 0);
  if (unpackedBytes > maxUnpackedBytes) throw new Error(`it unpacks to more than ${maxUnpackedBytes} bytes`);
  return entries
    .filter(({ isDirectory, attr }) => !isDirectory && ((attr >>> 16) & fileType) !== symbolicLink)
    .map((entry) => ({
      name: withoutTop(entry.entryName),
      content: entry.getData(),
      mode: (entry.attr >>> 16) & 0o100 ? 0o755 : 0o644,
    }));
}

function withoutTop(path: string): string {
  const [, ...parts] = path.split(/[/\\]/);
  if (parts.length === 0 || parts.includes('..')) throw new Error(`'${path}' leads out of the folder`);
  return parts.join('/');
}
