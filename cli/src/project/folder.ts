import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, normalize, relative, sep } from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { asList, asText, type Json } from '../json/json.js';

/**
 * Zips a folder with an action's code: without what `exclude` names, with what `include` names (`[source]` or
 * `[source, destination]`, sources relative to the manifest's folder). `*` stands for any part of one name.
 */
export function zipFolder(folder: string, manifestFolder: string, include: Json, exclude: Json): Buffer {
  const excluded = new Set(
    asList(exclude).flatMap((pattern) => matches(join(manifestFolder, asText(pattern))).flatMap(filesBelow)),
  );
  const own = filesBelow(folder).filter((file) => !excluded.has(file));
  const names = new Map(own.map((file) => [relative(folder, file), file]));
  for (const entry of asList(include)) {
    for (const [name, file] of included(asList(entry).map(asText), manifestFolder)) names.set(name, file);
  }
  return zip([...names].map(([name, file]) => zipFile(name, file)).filter(({ content }) => content.length > 0));
}

function zipFile(name: string, file: string): ZipFile {
  return { name: name.split(sep).join('/'), content: readFileSync(file), mode: statSync(file).mode & 0o777 };
}

/** The names in the archive of what one entry of `include` names, and where each file is. */
function included([source, destination]: string[], manifestFolder: string): [string, string][] {
  if (source === undefined) return [];
  const pattern = join(manifestFolder, source);
  const hasWildcard = source.includes('*');
  return matches(pattern).flatMap((found) => {
    const target = targetOf(found, { source, destination, hasWildcard });
    return filesBelow(found).map((file): [string, string] => [normalize(join(target, relative(found, file))), file]);
  });
}

function targetOf(
  found: string,
  entry: { source: string; destination: string | undefined; hasWildcard: boolean },
): string {
  const { source, destination, hasWildcard } = entry;
  const isFolder = statSync(found).isDirectory();
  if (hasWildcard) {
    const folder = (destination ?? dirname(source)).split('*')[0] ?? '';
    return join(folder, basename(found));
  }
  if (destination === undefined) return withoutParents(source);
  return destination.endsWith('/') && !isFolder ? join(destination, basename(found)) : destination;
}

/** A path that stays in the archive: without the `../` at its beginning. */
function withoutParents(path: string): string {
  return normalize(path).replace(/^(\.\.\/)+/, '');
}

/** The file itself, or all files in the folder at any depth, in the order of their names. */
function filesBelow(path: string): string[] {
  if (!statSync(path).isDirectory()) return [normalize(path)];
  return readdirSync(path)
    .sort()
    .flatMap((name) => filesBelow(join(path, name)));
}

/** Existing files and folders that match a name with `*` in its parts. */
function matches(pattern: string): string[] {
  const parts = normalize(pattern).split(sep);
  let found = [pattern.startsWith(sep) ? sep : '.'];
  for (const part of parts.filter((name) => name !== '' && name !== '.')) {
    found = found.flatMap((folder) => inFolder(folder, part));
  }
  return found;
}

function inFolder(folder: string, part: string): string[] {
  const path = join(folder, part);
  if (!part.includes('*')) return statSync(path, { throwIfNoEntry: false }) ? [path] : [];
  if (!statSync(folder).isDirectory()) return [];
  const escaped = part.split('*').map((text) => text.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  const expression = new RegExp(`^${escaped.join('.*')}$`);
  return readdirSync(folder)
    .filter((name) => expression.test(name))
    .sort()
    .map((name) => join(folder, name));
}

/** A file in an archive. */
interface ZipFile {
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
function zip(files: ZipFile[]): Buffer {
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
