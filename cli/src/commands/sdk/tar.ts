import { buffer } from 'node:stream/consumers';
import { extract } from 'tar-stream';

/** A file, or a folder if it has no content. */
export interface TarEntry {
  /** Relative, without `..`. */
  name: string;
  mode: number;
  content?: Buffer;
}

/**
 * Reads the files and folders of a tar archive.
 * @throws Error if the archive is damaged or cut short, holds anything else (links, devices) or a path that leaves its
 * folder.
 */
export async function readTar(archive: Buffer): Promise<TarEntry[]> {
  const entries: TarEntry[] = [];
  const stream = extract();
  stream.end(archive);
  for await (const entry of stream) {
    const { name, mode = 0, type } = entry.header;
    if (type !== 'file' && type !== 'directory') throw new Error(`unexpected tar file type '${type}'`);
    const content = await buffer(entry);
    const read = { name: within(name), mode: mode & 0o777 };
    entries.push(type === 'file' ? { ...read, content } : read);
  }
  return entries;
}

function within(name: string): string {
  if (name.startsWith('/') || name.split('/').includes('..')) throw new Error(`'${name}' leads out of the folder`);
  return name;
}
