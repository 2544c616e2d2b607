/** A file, or a folder if it has no content. */
export interface TarFile {
  /** At most 100 bytes. */
  name: string;
  mode: number;
  content?: string;
}

const blockBytes = 512;
/** Where the checksum stands in a header; it counts as blanks when it is made. */
const checksumAt = 148;

/** A tar archive (POSIX ustar) of these files, the same for the same files. */
export function writeTar(files: readonly TarFile[]): Buffer {
  const blocks = files.flatMap((file) => {
    const content = Buffer.from(file.content ?? '');
    const padding = Buffer.alloc((blockBytes - (content.length % blockBytes)) % blockBytes);
    return [header(file, content.length), content, padding];
  });
  return Buffer.concat([...blocks, Buffer.alloc(2 * blockBytes)]);
}

function header({ name, mode, content }: TarFile, bytes: number): Buffer {
  const folder = content === undefined;
  const block = Buffer.alloc(blockBytes);
  block.write(folder ? `${name}/` : name, 0, 100);
  block.write(octal(mode, 8), 100);
  block.write(octal(0, 8), 108); // owner
  block.write(octal(0, 8), 116); // group
  block.write(octal(bytes, 12), 124);
  block.write(octal(0, 12), 136); // time of the last change
  block.fill(' ', checksumAt, checksumAt + 8);
  block.write(folder ? '5' : '0', 156);
  block.write('ustar\0' + '00', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${octal(sum, 7)}\0`, checksumAt);
  return block;
}

/** A number in a field of this width, which ends with a NUL. */
function octal(value: number, width: number): string {
  return value.toString(8).padStart(width - 1, '0');
}
