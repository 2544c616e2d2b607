/** A file, or a folder if it has no content. */
export interface TarEntry {
  /** Relative, without `..`. */
  name: string;
  mode: number;
  content?: Buffer;
}

const blockBytes = 512;

/**
 * Reads the files and folders of a tar archive.
 * @throws Error if the archive is cut short, holds anything else (links, devices) or a path that leaves its folder.
 */
export function readTar(archive: Buffer): TarEntry[] {
  const entries: TarEntry[] = [];
  let at = 0;
  while (at + blockBytes <= archive.length && archive[at] !== 0) {
    const header = archive.subarray(at, at + blockBytes);
    const size = octal(header, 124, 12);
    const start = at + blockBytes;
    if (start + size > archive.length) throw new Error('unexpected EOF');
    const type = String.fromCharCode(header[156] ?? 0);
    const prefix = text(header, 345, 155);
    const name = `${prefix === '' ? '' : `${prefix}/`}${text(header, 0, 100)}`;
    const entry = { name: within(name), mode: octal(header, 100, 8) & 0o777 };
    if (type === '5') entries.push(entry);
    else if (type === '0' || type === '\0') entries.push({ ...entry, content: archive.subarray(start, start + size) });
    else if (type !== 'x' && type !== 'g') throw new Error(`unexpected tar file type '${type}'`); // x, g: only metadata
    at = start + Math.ceil(size / blockBytes) * blockBytes;
  }
  return entries;
}

function text(header: Buffer, start: number, length: number): string {
  const field = header.subarray(start, start + length);
  const end = field.indexOf(0);
  return field.toString('utf8', 0, end < 0 ? length : end);
}

function octal(header: Buffer, start: number, length: number): number {
  return Number.parseInt(text(header, start, length).trim() || '0', 8);
}

function within(name: string): string {
  if (name.startsWith('/') || name.split('/').includes('..')) throw new Error(`'${name}' leads out of the folder`);
  return name;
}
