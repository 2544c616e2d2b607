import AdmZip from 'adm-zip';

/** A file in an archive. */
export interface ZipFile {
  /** With `/` between folders. */
  name: string;
  content: Buffer;
  /** Permission bits. */
  mode: number;
}

/** The first day of the format, in local time as the format has it: equal files make equal archives. */
const date = new Date(1980, 0, 1);

/** A zip archive of the files in this order, without the extensions for more than 4 GiB. */
export function zip(files: readonly ZipFile[]): Buffer {
  const archive = new AdmZip({ noSort: true });
  for (const { name, content, mode } of files) {
    const entry = archive.addFile(name, content, '', mode);
    entry.header.time = date;
  }
  return archive.toBuffer();
}
