import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { Client } from '../../client/client.js';
import { messageOf, WskError, wrapError } from '../../errors.js';
import { stdout } from '../../terminal.js';
import { readTar, type TarEntry } from './tar.js';

const skeletonFile = 'blackbox.tar.gz';
const skeletonFolder = 'dockerSkeleton';
const maxUnpackedBytes = 64 * 1024 * 1024;

/** Downloads what a Docker action starts from and unpacks it in the current folder. */
export async function installDocker(client: Client): Promise<void> {
  refuseExisting('file', skeletonFile);
  try {
    const archive = await download(client, skeletonFile);
    refuseExisting('directory', skeletonFolder);
    await unpack(archive);
  } catch (error) {
    throw wrapError(error, 'The docker SDK installation failed');
  }
  stdout.print('The docker skeleton is now installed at the current directory.\n');
}

/** Downloads a file of the server's into the current folder. @throws WskError if it is there already. */
export async function downloadNew(client: Client, file: string): Promise<void> {
  refuseExisting('file', file);
  const content = await download(client, file);
  try {
    writeFileSync(file, content, { flag: 'wx' });
  } catch (error) {
    throw new WskError(`Error creating SDK file '${file}': ${messageOf(error)}`);
  }
}

async function download(client: Client, file: string): Promise<Buffer> {
  try {
    return await client.download(file);
  } catch (error) {
    throw new WskError(`Unable to retrieve '${file}' SDK: ${messageOf(error)}`);
  }
}

function refuseExisting(what: 'file' | 'directory', name: string): void {
  if (existsSync(name)) throw new WskError(`The ${what} '${name}' already exists.  Delete it and retry.`);
}

async function unpack(archive: Buffer): Promise<void> {
  let entries: TarEntry[];
  try {
    entries = await readTar(gunzipSync(archive, { maxOutputLength: maxUnpackedBytes }));
  } catch (error) {
    throw new WskError(`Error unGzipping file '${skeletonFile}': ${messageOf(error)}`);
  }
  for (const { name, mode, content } of entries) {
    if (content === undefined) {
      mkdirSync(name, { recursive: true });
    } else {
      mkdirSync(dirname(name), { recursive: true });
      writeFileSync(name, content);
      chmodSync(name, mode);
    }
  }
}
