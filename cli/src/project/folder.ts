import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, normalize, relative, sep } from 'node:path';
import AdmZip from 'adm-zip';
import { asList, asText, type Json } from '../json/json.js';

/**
 * Zips a folder with an action's code, without the files that `exclude` names and with those that `include` names. An
 * entry of `include` is `[source]` or `[source, destination]`, with sources relative to the manifest's folder. `*`
 * stands for any part of one name.
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

/** The archive's names and the files of one entry of `include`. */
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

/** A path inside the archive: without the `../` at its beginning. */
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

/** The format's first day, in local time as the format requires: equal files make equal archives. */
const date = new Date(1980, 0, 1);

/** A zip archive of the files in this order, without the extensions for more than 4 GiB. */
function zip(files: readonly ZipFile[]): Buffer {
  const archive = new AdmZip({ noSort: true });
  for (const { name, content, mode } of files) {
    const entry = archive.addFile(name, content, '', mode);
    entry.header.time = date;
  }
  return archive.toBuffer();
}
