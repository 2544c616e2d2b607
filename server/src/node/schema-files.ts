import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../../../cli/schemas/', import.meta.url));

/** Reads a JSON schema for editors by its name. Rejects if there is none. */
export function readSchema(name: string): Promise<Buffer> {
  return readFile(`${folder}${name}.json`);
}
