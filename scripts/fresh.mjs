// Whether the clone is installed and built: one stamp file stores the state of the sources at the last build.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
const stampFile = join(root, 'build', 'stamp.json');
const sourceFolders = [
  'common',
  'gpu',
  'engines',
  'controller',
  'invoker',
  'server',
  'standalone',
  'cli',
  'console',
  'bench',
  'test',
  'native',
  'runtimes/native',
  'runtimes/cuda',
];
/** What the build goes by besides: its settings, how programs are bundled, and lists of packages that it installs for actions. */
const settings = [
  'tsconfig.base.json',
  'scripts/bundle.mjs',
  'scripts/program.cjs',
  'runtimes/nodejs/packages/package-lock.json',
  'runtimes/python/packages.txt',
];
const skipped = new Set(['node_modules', 'dist', 'build']);
/** Sources of the documentation site besides the code. */
const siteFolders = ['docs', 'examples', 'scripts/site'];
const siteFiles = ['README.md', 'CONTRIBUTING.md', 'GUARANTEES.md', 'gpu/README.md', 'native/README.md'];

function listFiles(folder, files, wanted = /\.(ts|tsx|css|html|svg|mjs|c|cpp|h|S|json)$/) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (!skipped.has(entry.name)) listFiles(path, files, wanted);
    } else if (wanted.test(entry.name) && entry.name !== 'package-lock.json') files.push(path);
  }
  return files;
}

function fingerprint(files) {
  const hash = createHash('sha256');
  for (const file of files) {
    const { mtimeMs, size } = statSync(file);
    hash.update(`${file} ${mtimeMs} ${size}\n`);
  }
  return hash.digest('hex');
}

/**
 * The present state of the sources: `install` covers the dependencies, `build` everything that is compiled, `site` the
 * documentation's texts.
 */
export function currentState() {
  const sources = sourceFolders
    .filter((name) => existsSync(join(root, name)))
    .flatMap((name) => listFiles(join(root, name), []));
  const lock = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
  return {
    node: process.versions.modules,
    install: lock,
    build: fingerprint([...sources, ...settings.map((name) => join(root, name))]),
    site: fingerprint([
      ...siteFolders.flatMap((name) => listFiles(join(root, name), [], /\.(md|svg|mjs|css)$/)),
      ...siteFiles.map((name) => join(root, name)),
    ]),
  };
}

/** The present state of research and of all that it is made of; it has a stamp of its own. */
export function researchState() {
  return `${currentState().build} ${fingerprint(listFiles(join(root, 'research'), []))}`;
}

/** The state that the stamp stores; empty if there is no stamp. */
export function stampedState() {
  try {
    return JSON.parse(readFileSync(stampFile, 'utf8'));
  } catch {
    return {};
  }
}

export function writeStamp(state) {
  mkdirSync(dirname(stampFile), { recursive: true });
  writeFileSync(stampFile, JSON.stringify(state));
}
