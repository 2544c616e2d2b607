// Whether the clone is installed and built: one stamp file stores the state of the sources at the last build.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
const stampFile = join(root, 'build', 'stamp.json');
/** Sources of what a server runs; `testFolders` are for tests and benches. */
const serverFolders = [
  'common',
  'gpu',
  'engines',
  'controller',
  'invoker',
  'server',
  'standalone',
  'cli',
  'console',
  'native',
  'runtimes/native',
  'runtimes/cuda',
];
const testFolders = ['bench', 'test'];
/** What the build goes by besides: its settings, how programs are bundled, and lists of packages that it installs for actions. */
const settings = [
  'tsconfig.base.json',
  'scripts/build.mjs',
  'scripts/bundle.mjs',
  'scripts/program.cjs',
  'scripts/transpile.mjs',
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
 * The present state of the sources: `install` covers the dependencies, `server` what a server runs, `build` everything that is
 * compiled, `site` the documentation's texts.
 */
export function currentState() {
  const sourcesOf = (folders) =>
    folders.filter((name) => existsSync(join(root, name))).flatMap((name) => listFiles(join(root, name), []));
  const ofServer = [...sourcesOf(serverFolders), ...settings.map((name) => join(root, name))];
  return {
    node: process.versions.modules,
    install: digestOf(readFileSync(join(root, 'package-lock.json'))),
    server: fingerprint(ofServer),
    build: fingerprint([...ofServer, ...sourcesOf(testFolders)]),
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

/** A digest of texts and buffers, which stands for them as a list. */
export function digestOf(...parts) {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part).update('\0');
  return hash.digest('hex');
}

/** The content of a JSON file of the build; empty if it was never written, or is damaged. */
export function readRecord(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return {};
  }
}

export const writeRecord = (file, content) => writeWhole(file, JSON.stringify(content));

/** Writes a file whole or not at all. */
export function writeWhole(file, text) {
  mkdirSync(dirname(file), { recursive: true });
  const partial = `${file}.${process.pid}`;
  try {
    writeFileSync(partial, text);
    renameSync(partial, file);
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  }
}

/**
 * What the stamp stores of the last build; empty if there is none. `installed` is `server` if dependencies of tests and
 * tools are not installed; `server`, `behind`, `types` and `build` are states of the sources at the end of these parts.
 */
export const stampedState = () => readRecord(stampFile);

/** Changes fields of the stamp. */
export const stamp = (fields) => writeRecord(stampFile, { ...stampedState(), ...fields });
