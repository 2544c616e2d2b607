// The npm packages that an action's archive needs: those of its package.json, if it has no folder node_modules.
import { createHash } from 'node:crypto';
import { inflateRawSync } from 'node:zlib';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import type { NpmFiles } from '../containers/container-factory.js';

/** Largest package.json, and largest lock file, bytes. */
const [maxManifestBytes, maxLockBytes] = [256 * 1024, 8 * 1024 * 1024];
const maxDependencies = 500;
const folder = 'node_modules/';
/** Fields of a package.json that decide what npm installs. */
const fields = ['dependencies', 'optionalDependencies', 'peerDependencies', 'peerDependenciesMeta', 'overrides'];

const name = '(?:@[\\w.~-]+/)?[\\w.~-]+';
const dependencyName = new RegExp(`^${name}$`);
/** A version, a range or a tag of npm's registry, also of a package of another name. */
const registryVersion = new RegExp(`^(?:npm:${name}@?)?[\\w .~^<>=|*+-]*$`);

/**
 * The files that npm installs an archive's dependencies from; undefined if the code is no zip, has no dependencies, or brings its
 * own folder node_modules.
 */
export function npmFilesIn(archive: Uint8Array): NpmFiles | undefined {
  const entries = entriesOf(archive);
  const described = entries?.get('package.json');
  if (described === undefined) return undefined;
  const manifest = parsed(textOf(archive, described, maxManifestBytes));
  if (!isJsonObject(manifest)) return undefined; // Node.js tells what is wrong with it.
  const wanted = [manifest.dependencies, manifest.optionalDependencies].filter(isNonEmpty);
  if (wanted.length === 0) return undefined;
  const problem = problemOf([...wanted, ...[manifest.peerDependencies].filter(isNonEmpty), overriddenIn(manifest)]);
  if (problem !== undefined) return { problem };
  const found = entries?.get('package-lock.json');
  const lock = found && textOf(archive, found, maxLockBytes);
  if (found !== undefined && lock === undefined) return { problem: 'package-lock.json is larger than 8 MiB' };
  // npm compares all fields with the lock file.
  const kept = lock === undefined ? fields : [...fields, 'devDependencies'];
  const own = Object.fromEntries(kept.flatMap((key) => (manifest[key] === undefined ? [] : [[key, manifest[key]]])));
  const given = ['name', 'version'].flatMap((key) => (typeof manifest[key] === 'string' ? [[key, manifest[key]]] : []));
  const text = JSON.stringify({ ...(Object.fromEntries(given) as JsonObject), private: true, ...own });
  return { manifest: text, ...(lock !== undefined && { lock: withoutAddresses(lock) }) };
}

/** Names what is the same for equal packages. */
export function npmKey(files: NpmFiles): string {
  return createHash('sha256').update(JSON.stringify(files)).digest('hex');
}

const isNonEmpty = (value: JsonValue | undefined): value is JsonObject =>
  isJsonObject(value) && Object.keys(value).length > 0;

/** The versions that `overrides` names, with the names that they are for; one that refers to a dependency (`$name`) is left out. */
function overriddenIn({ overrides }: JsonObject): JsonObject {
  const found: JsonObject = {};
  const collect = (value: JsonValue | undefined): void => {
    for (const [key, version] of Object.entries(isJsonObject(value) ? value : {})) {
      if (isJsonObject(version)) collect(version);
      else if (typeof version !== 'string' || !version.startsWith('$')) found[nameIn(key)] = version;
    }
  };
  collect(overrides);
  return found;
}

/** The name in the key of an override, such as `b` of `b@^2`; `.` is the package around it. */
function nameIn(key: string): string {
  const [found = key] = new RegExp(`^${name}(?=@|$)`).exec(key) ?? [];
  return found;
}

function problemOf(lists: readonly JsonObject[]): string | undefined {
  const all = lists.flatMap((list) => Object.entries(list));
  if (all.length > maxDependencies) return `package.json has ${all.length} dependencies; at most ${maxDependencies}`;
  const odd = all.find(
    ([key, version]) => !dependencyName.test(key) || typeof version !== 'string' || !registryVersion.test(version),
  );
  if (odd === undefined) return undefined;
  const [key, version] = odd.map((part) => JSON.stringify(part).slice(0, 200));
  return `dependency ${key} is ${version}, but must be a version of a package in npm's registry`;
}

/** A lock file without the addresses of packages: they come from the operator's registry, and have the digests of the lock file. */
function withoutAddresses(lock: string): string {
  try {
    const isAddress = (key: string, value: unknown): boolean =>
      key === 'resolved' && typeof value === 'string' && value.includes('://');
    return JSON.stringify(JSON.parse(lock, (key, value: unknown) => (isAddress(key, value) ? undefined : value)));
  } catch {
    return lock; // npm tells what is wrong with it.
  }
}

function parsed(text: string | undefined): JsonValue | undefined {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as JsonValue);
  } catch {
    return undefined;
  }
}

/** A file of a zip, by its record in the central directory. */
interface Entry {
  method: number;
  packedBytes: number;
  bytes: number;
  /** Offset of its header. */
  at: number;
}

const endSignature = 0x06054b50;
const entrySignature = 0x02014b50;
const headerSignature = 0x04034b50;
const [endBytes, entryBytes, headerBytes] = [22, 46, 30];
const maxCommentBytes = 65_535;

/**
 * The files at the root of a zip that npm reads. Undefined if the bytes are no zip, and from the first file below node_modules
 * on: an archive with thousands of them is not read to its end.
 */
function entriesOf(archive: Uint8Array): Map<string, Entry> | undefined {
  const zip = Buffer.from(archive.buffer, archive.byteOffset, archive.byteLength);
  const end = endOf(zip);
  if (end === undefined) return undefined;
  const found = new Map<string, Entry>();
  let at = zip.readUInt32LE(end + 16);
  for (let left = zip.readUInt16LE(end + 10); left > 0; left--) {
    if (at + entryBytes > end || zip.readUInt32LE(at) !== entrySignature) return undefined;
    const nameEnd = at + entryBytes + zip.readUInt16LE(at + 28);
    const path = zip.toString('utf8', at + entryBytes, nameEnd);
    if (path.startsWith(folder)) return undefined;
    if (path === 'package.json' || path === 'package-lock.json') {
      found.set(path, {
        method: zip.readUInt16LE(at + 10),
        packedBytes: zip.readUInt32LE(at + 20),
        bytes: zip.readUInt32LE(at + 24),
        at: zip.readUInt32LE(at + 42),
      });
    }
    at = nameEnd + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
  }
  return found;
}

function endOf(zip: Buffer): number | undefined {
  for (let at = zip.length - endBytes; at >= 0 && at >= zip.length - endBytes - maxCommentBytes; at--) {
    if (zip.readUInt32LE(at) === endSignature) return at;
  }
  return undefined;
}

/** The text of a file; undefined if it is larger than `maxBytes`, or not as the zip's directory says. */
function textOf(archive: Uint8Array, { method, packedBytes, bytes, at }: Entry, maxBytes: number): string | undefined {
  const zip = Buffer.from(archive.buffer, archive.byteOffset, archive.byteLength);
  if (bytes > maxBytes || at + headerBytes > zip.length || zip.readUInt32LE(at) !== headerSignature) return undefined;
  const begin = at + headerBytes + zip.readUInt16LE(at + 26) + zip.readUInt16LE(at + 28);
  const packed = zip.subarray(begin, begin + packedBytes);
  try {
    const text = method === 0 ? packed : inflateRawSync(packed, { maxOutputLength: Math.max(bytes, 1) });
    return text.toString('utf8').replace(/^\uFEFF/, '');
  } catch {
    return undefined; // Broken: the runtime's library tells so.
  }
}
