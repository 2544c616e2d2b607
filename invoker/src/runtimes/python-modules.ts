import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isModuleName } from '@gpuwhisk/common/entities/action-annotations';

/** The names among `names` of modules that lie in one of the folders: source, package or extension. */
export async function pythonModulesIn(folders: readonly string[], names: readonly string[]): Promise<Set<string>> {
  const listed = new Map<string, Promise<Set<string>>>();
  const list = (folder: string): Promise<Set<string>> => {
    const known = listed.get(folder) ?? readdir(folder).then(withModules, () => new Set<string>()); // There is none.
    listed.set(folder, known);
    return known;
  };
  const isIn = async (folder: string, name: string): Promise<boolean> => {
    const path = join(folder, ...name.split('.'));
    const beside = await list(dirname(path));
    if (beside.has(`${basename(path)}.py`)) return true;
    return beside.has(basename(path)) && (await list(path)).has('__init__.py');
  };
  const found = new Set<string>();
  for (const name of names.filter(isModuleName)) {
    for (const folder of folders) {
      if (!(await isIn(folder, name))) continue;
      found.add(name);
      break;
    }
  }
  return found;
}

/** Names of files, and for an extension such as `x.cpython-311.so` also that of its source form, `x.py`. */
function withModules(files: readonly string[]): Set<string> {
  const extensions = files
    .filter((file) => file.endsWith('.so'))
    .map((file) => `${file.slice(0, file.indexOf('.'))}.py`);
  return new Set([...files, ...extensions]);
}
