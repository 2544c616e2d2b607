import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import AdmZip from 'adm-zip';
import { messageOf } from '../errors.js';

/** A folder of a repository on GitHub or a server like it, at a branch, tag or commit. */
export interface Repository {
  /** `https://host/owner/name`, without credentials. */
  url: string;
  /** Below the repository; empty for the repository itself. */
  folder: string;
  version: string;
  /** `user:password`; empty if the location has none. */
  credentials: string;
}

/** Environment variable with a replacement for `https://github.com`, such as a mirror. */
const gitHubVariable = 'WHISK_GITHUB_URL';

const downloadTimeoutMs = 60_000;
const maxDownloadBytes = 64 * 1024 * 1024;

/**
 * Reads a dependency's location such as `github.com/owner/name/folder`; undefined for hosts other than GitHub's. As in
 * OpenWhisk's wskdeploy, a host counts if its name contains `github`. The protocol is always HTTPS.
 * @throws Error if the location names no repository.
 */
export function repositoryAt(location: string, version: string): Repository | undefined {
  const [host = '', ...path] = location.replace(/^https?:\/\//, '').split('/');
  if (!host.includes('github')) return undefined;
  const [owner, name, ...folder] = path.filter((part) => part !== '');
  const at = host.lastIndexOf('@');
  if (owner === undefined || name === undefined) throw new Error(`[${host.slice(at + 1)}] alone names no repository`);
  if (folder.includes('..')) throw new Error(`the folder [${folder.join('/')}] leads out of the repository`);
  if (version.includes('..')) throw new Error(`[${version}] is no branch, tag or commit`);
  const url = `https://${host.slice(at + 1)}/${owner}/${name.replace(/\.git$/, '')}`;
  return { url, folder: folder.join('/'), version: version || 'master', credentials: at < 0 ? '' : host.slice(0, at) };
}

/** Folder of a repository in a project: `Packages/LABEL-VERSION`. */
export function repositoryFolder(projectFolder: string, label: string, { version }: Repository): string {
  return join(projectFolder, 'Packages', `${label}-${version}`.replace(/[/\\]/g, '-'));
}

/**
 * Downloads a repository into a folder and replaces the folder's content.
 * @throws Error with the address and the reason of a failure; the folder is then unchanged.
 */
export async function downloadRepository(repository: Repository, folder: string): Promise<void> {
  const url = `${mirrored(repository.url)}/zipball/${encodeURI(repository.version)}`;
  let files: ArchiveFile[];
  try {
    files = readArchive(await download(url, repository.credentials));
  } catch (error) {
    throw new Error(`${url} could not be downloaded: ${reasonOf(error)}`, { cause: error });
  }
  mkdirSync(dirname(folder), { recursive: true });
  const unpacked = mkdtempSync(join(dirname(folder), '.download-'));
  try {
    for (const { name, content, mode } of files) {
      const path = join(unpacked, name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, content, { mode });
    }
    chmodSync(unpacked, 0o755);
    rmSync(folder, { recursive: true, force: true });
    renameSync(unpacked, folder);
  } catch (error) {
    rmSync(unpacked, { recursive: true, force: true });
    throw error;
  }
}

function mirrored(url: string): string {
  const mirror = process.env[gitHubVariable]?.replace(/\/+$/, '') ?? '';
  const gitHub = 'https://github.com/';
  return mirror !== '' && url.startsWith(gitHub) ? `${mirror}/${url.slice(gitHub.length)}` : url;
}

async function download(url: string, credentials: string): Promise<Buffer> {
  const headers = new Headers();
  if (credentials !== '') headers.set('authorization', `Basic ${Buffer.from(credentials).toString('base64')}`);
  const response = await fetch(url, { headers, signal: AbortSignal.timeout(downloadTimeoutMs) });
  if (!response.ok || response.body === null) {
    await response.body?.cancel();
    throw new Error(`HTTP status code ${response.status}`);
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response.body) {
    bytes += (chunk as Uint8Array).length;
    if (bytes > maxDownloadBytes) throw new Error(`it has more than ${maxDownloadBytes} bytes`);
    chunks.push(Buffer.from(chunk as Uint8Array));
  }
  return Buffer.concat(chunks);
}

/** The reason of a failed fetch, which its `cause` holds. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  const first = cause instanceof AggregateError ? (cause.errors[0] as unknown) : cause;
  return messageOf(first ?? error);
}

/** A file of an archive; `name` is a relative path without `..`. */
interface ArchiveFile {
  name: string;
  content: Buffer;
  /** Permission bits. */
  mode: number;
}

const maxFiles = 50_000;
const maxUnpackedBytes = 512 * 1024 * 1024;
const symbolicLink = 0o120000;
const fileType = 0o170000;

/**
 * Reads a zip archive of a repository, without its one folder at the top and without symbolic links.
 * @throws Error if the file is no archive, is too large, or has a path that leads out of its folder.
 */
function readArchive(bytes: Buffer): ArchiveFile[] {
  const entries = new AdmZip(bytes).getEntries();
  if (entries.length > maxFiles) throw new Error(`it has more than ${maxFiles} files`);
  const unpackedBytes = entries.reduce((sum, { header }) => sum + header.size, 0);
  if (unpackedBytes > maxUnpackedBytes) throw new Error(`it unpacks to more than ${maxUnpackedBytes} bytes`);
  return entries
    .filter(({ isDirectory, attr }) => !isDirectory && ((attr >>> 16) & fileType) !== symbolicLink)
    .map((entry) => ({
      name: withoutTop(entry.entryName),
      content: entry.getData(),
      mode: (entry.attr >>> 16) & 0o100 ? 0o755 : 0o644,
    }));
}

function withoutTop(path: string): string {
  const [, ...parts] = path.split(/[/\\]/);
  if (parts.length === 0 || parts.includes('..')) throw new Error(`'${path}' leads out of the folder`);
  return parts.join('/');
}
