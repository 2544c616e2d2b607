import { buffer } from 'node:stream/consumers';
import { pack } from 'tar-stream';

/** A file, or a folder if it has no content. */
export interface TarFile {
  name: string;
  mode: number;
  content?: string;
}

/** A tar archive (POSIX ustar) of these files; equal files make equal archives, since all are dated 1 January 1970. */
export async function writeTar(files: readonly TarFile[]): Promise<Buffer> {
  const archive = pack();
  for (const { name, mode, content } of files) {
    const type = content === undefined ? 'directory' : 'file';
    archive.entry({ name, mode, type, mtime: new Date(0) }, content);
  }
  archive.finalize();
  return buffer(archive);
}
