import { deflateRawSync } from 'node:zlib';

/** A file in an archive. */
export interface ZipFile {
  /** With `/` between folders. */
  name: string;
  content: Buffer;
  /** Permission bits. */
  mode: number;
}

const crcTable = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

function crc32(bytes: Buffer): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crcTable[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

const version = 20;
const utf8Names = 0x0800;
const deflated = 8;
/** 1 January 1980, the first day of the format: equal files make equal archives. */
const date = 0x21;

/** A zip archive, without the extensions for more than 4 GiB. */
export function zip(files: ZipFile[]): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, content, mode } of files) {
    const nameBytes = Buffer.from(name);
    const data = deflateRawSync(content);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(version, 0);
    common.writeUInt16LE(utf8Names, 2);
    common.writeUInt16LE(deflated, 4);
    common.writeUInt16LE(date, 8);
    common.writeUInt32LE(crc32(content), 10);
    common.writeUInt32LE(data.length, 14);
    common.writeUInt32LE(content.length, 18);
    common.writeUInt16LE(nameBytes.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), common, nameBytes, data]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE((0o100000 | mode) * 0x10000, 6);
    tail.writeUInt32LE(offset, 10);
    const madeOnUnix = Buffer.from([version, 3]);
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02', 'latin1'), madeOnUnix, common, tail, nameBytes]));
    parts.push(local);
    offset += local.length;
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(files.length, 8);
  end.writeUInt16LE(files.length, 10);
  end.writeUInt32LE(central.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, central, end]);
}
