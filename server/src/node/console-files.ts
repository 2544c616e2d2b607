import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Where the build puts the console. */
const folder = fileURLToPath(new URL('../../../build/console/', import.meta.url));

/** Reads the files of the console by path. Rejects if it was not built. */
export async function readConsole(): Promise<Map<string, Buffer>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = new Map<string, Buffer>();
  for (const entry of entries) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    files.set(relative(folder, file), await readFile(file));
  }
  return files;
}
