import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The folder of a standalone server's state, as the server itself has it. */
export function dataFolderOf(environment: NodeJS.ProcessEnv): string {
  return environment['GPUWHISK_DATA_DIR'] ?? '.gpuwhisk';
}

/** The operator's `uuid:secret` that a standalone server keeps in its data folder. Throws the system's error (ENOENT). */
export function readOperatorKey(folder: string): string {
  return readFileSync(join(folder, 'operator.key'), 'utf8').trim();
}

/** Whether an API host, with or without its scheme and port, is this machine. */
export function isLoopback(apiHost: string): boolean {
  const url = /^https?:\/\//.test(apiHost) ? apiHost : `http://${apiHost}`;
  if (!URL.canParse(url)) return false;
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(url).hostname);
}
