import { realpath, stat } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

/** The files of that name in the folders of a PATH, links followed, in its order and each once. */
export async function findOnPath(name: string, path: string): Promise<string[]> {
  const found = new Set<string>();
  for (const folder of path.split(delimiter).filter((each) => each !== '')) {
    const file = await realpath(join(folder, name)).catch(() => undefined);
    if (file !== undefined && (await stat(file)).isFile()) found.add(file);
  }
  return [...found];
}
