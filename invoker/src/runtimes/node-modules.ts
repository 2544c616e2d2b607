import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';

const bareName = /^((?:@[\w.-]+\/)?[A-Za-z_][\w.-]*)((?:\/[\w@-][\w@.-]*)*)$/;
/** What `require` puts behind the path of a file or folder. */
const endings = ['', '.js', '.json', '/index.js', '/package.json'];

/**
 * The names among `names` that `require` finds in one of these folders of packages: of a package, or of a file in one. Files that a package
 * names otherwise in its `exports` are not found.
 */
export async function nodeModulesIn(folders: readonly string[], names: readonly string[]): Promise<Set<string>> {
  const isFound = async (name: string): Promise<boolean> =>
    (await Promise.all(folders.map((folder) => isIn(folder, name)))).includes(true);
  const found = await Promise.all(names.map(isFound));
  return new Set(names.filter((_, at) => found[at]));
}

async function isIn(folder: string, name: string): Promise<boolean> {
  const [, packageName, path] = bareName.exec(name) ?? [];
  if (packageName === undefined || path === undefined) return false;
  const description = await read(join(folder, packageName, 'package.json'));
  if (description === undefined) return false;
  if (path === '') return true;
  const exported = exportsOf(description);
  if (exported !== undefined) return typeof exported === 'object' && exported !== null && `.${path}` in exported;
  const candidates = endings.map((ending) => isFile(join(folder, `${name}${ending}`)));
  return (await Promise.all(candidates)).includes(true);
}

/** A package's `exports`; undefined if it has none, so that all of its files can be named. */
function exportsOf(description: string): unknown {
  try {
    return (JSON.parse(description) as { exports?: unknown }).exports ?? undefined;
  } catch {
    return null; // No package that could be loaded.
  }
}

const read = (path: string): Promise<string | undefined> => readFile(path, 'utf8').catch(() => undefined);

const isFile = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
