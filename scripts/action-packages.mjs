// Installs the packages that OpenWhisk's images bring for actions. A machine without a network builds without them.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './fresh.mjs';

/** Languages whose actions have packages. */
export const languages = ['nodejs', 'python'];

/** Installs the packages of a language; resolves with a line if that fails. The code must be transpiled. */
export async function installActionPackages(language) {
  const built = (name) => import(pathToFileURL(join(root, 'invoker', 'dist', 'runtimes', `${name}.js`)).href);
  const { builtPackages, installImagePackages, nodePackages, pythonPackages } = await built('image-packages');
  const runtimesDir = join(root, 'runtimes');
  const folder = builtPackages(runtimesDir);
  if (language === 'nodejs') return installImagePackages(folder, await nodePackages(runtimesDir));
  const { findPython } = await built('find-toolchains');
  const python = await findPython(join(folder, 'python.json'));
  return python && installImagePackages(folder, await pythonPackages(runtimesDir, python));
}

// Behind a server, which forked this process (behind.mjs). What cannot be installed is the invoker's to try again.
const at = process.argv.indexOf('--behind');
if (process.argv[1] === import.meta.filename && at >= 0) {
  process.on('disconnect', () => process.exit(1));
  const works = process.argv.slice(at + 1).map(async (work) => {
    const note = await installActionPackages(work);
    if (note) console.error(note);
    process.send({ work });
  });
  await Promise.all(works);
  process.disconnect();
}
