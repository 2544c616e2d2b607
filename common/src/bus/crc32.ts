import * as zlib from 'node:zlib';

function makeTable(): Uint32Array {
  return Uint32Array.from({ length: 256 }, (_, index) => {
    let value = index;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
    return value;
  });
}

let table: Uint32Array | undefined;

/** CRC-32 (ISO 3309) of `bytes`, in plain JavaScript. */
export function tableCrc32(bytes: Uint8Array): number {
  table ??= makeTable();
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ (table[(crc ^ byte) & 0xff] ?? 0);
  return (crc ^ 0xffffffff) >>> 0;
}

/** CRC-32 (ISO 3309) of `bytes`. Node brings its own only from 20.15 and 22.2 on. */
export const crc32: (bytes: Uint8Array) => number = typeof zlib.crc32 === 'function' ? zlib.crc32 : tableCrc32;
