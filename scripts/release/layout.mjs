// The folder of a release: a built server and client with their dependencies, which need no compiler and no network.
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createHash } from 'node:crypto';
import { basename, dirname, join, relative, sep } from 'node:path';
import { ensureBuilt } from '../build.mjs';
import { root } from '../fresh.mjs';
import { fetchPackage } from './registry.mjs';
import { run } from './run.mjs';

export const packages = ['common', 'gpu', 'engines', 'controller', 'invoker', 'server', 'standalone', 'cli'];
const whole = ['bin', 'docker', 'examples', 'runtimes', 'LICENSE', 'README.md', 'CHANGELOG.md'];
/**
 * Leaves out compiled tests, types and maps, which a release does not use, code that V8 compiled for this machine, and
 * secrets of this clone's cluster, which must not leave it.
 */
const isWanted = (path) =>
  !/(\.d\.ts|\.map|\.tsbuildinfo|\.test\.js|\.code)$/.test(path) &&
  !['objects', '__pycache__', '.env', 'secrets'].includes(basename(path));

/** The package.json of this clone. */
export const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

function copy(path, folder) {
  cpSync(join(root, path), join(folder, path), { recursive: true, filter: isWanted });
}

/** Folders of the packages in node_modules that a release needs, as this clone has them, links to our own included. */
function dependencies() {
  const workspaces = packages.map((name) => `--workspace=${name}`);
  const listed = run('npm', ['ls', '--omit=dev', '--all', '--parseable', ...workspaces], { cwd: root });
  return listed.split('\n').filter((line) => line.includes(`${sep}node_modules${sep}`));
}

/** Copies dependencies: npm lists them, as an installation takes the network and most of a minute. */
function copyDependencies(folder) {
  for (const path of dependencies()) {
    const target = join(folder, relative(root, path));
    mkdirSync(dirname(target), { recursive: true });
    // npm lists the dependencies of a dependency by themselves.
    const isOwn = (inside) =>
      !inside.slice(path.length).includes(`${sep}node_modules`) && !/\.(d\.[cm]?ts|map)$/.test(inside);
    if (lstatSync(path).isSymbolicLink()) symlinkSync(readlinkSync(path), target);
    else cpSync(path, target, { recursive: true, filter: isOwn });
  }
}

/** Puts the packages with another processor's programs in the place of this one's, which have it in their names. */
function replacePrograms(folder, arch) {
  const modules = join(folder, 'node_modules');
  const own = new RegExp(`-linux-${process.arch}(-gnu|-glibc)?$`);
  for (const path of readdirSync(modules, { recursive: true }).filter((name) => own.test(name))) {
    const { version } = JSON.parse(readFileSync(join(modules, path, 'package.json'), 'utf8'));
    const name = path.replace(`-linux-${process.arch}`, `-linux-${arch}`);
    rmSync(join(modules, path), { recursive: true });
    fetchPackage(name, version, join(modules, name));
  }
}

/** The head of commands that are run by the Node.js beside them, whatever the machine has. */
const commandHead = `#!/bin/sh
':' //; exec "$(dirname "$(readlink -f "$0")")/../node/bin/node" "$0" "$@"
`;

function setVersion(file, version) {
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, text.replace(/"version": "[^"]+"/, `"version": "${version}"`));
}

/** Every file below a folder, as sorted relative paths. */
function filesIn(folder) {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map(({ parentPath, name }) => relative(folder, join(parentPath, name)))
    .sort();
}

function digestOfFiles(folder) {
  const hash = createHash('sha256');
  for (const path of filesIn(folder)) {
    const file = join(folder, path);
    hash.update(`${path}\0`).update(lstatSync(file).isSymbolicLink() ? readlinkSync(file) : readFileSync(file));
  }
  return hash.digest('hex').slice(0, 12);
}

/**
 * Makes the folder of a release, building the clone before if that is missing or out of date; on request without the site of
 * the documentation. `arch` is Node.js's name of the processor; `node`, the path of a program for it, makes the release run
 * without another Node.js. The folder's file `build-id` tells its content: version and digest.
 */
export async function layOutRelease(
  folder,
  { site = true, version = manifest.version, arch = process.arch, node = undefined } = {},
) {
  await ensureBuilt({ site });
  const { nodePackages } = await import('../../invoker/dist/runtimes/image-packages.js');
  // Python's packages depend on the machine: its invoker installs them when it starts.
  const set = join('build', 'packages', (await nodePackages(join(root, 'runtimes'))).name);
  if (!existsSync(join(root, set))) throw new Error(`The packages of Node.js actions (${set}) are not installed.`);
  mkdirSync(folder);
  for (const path of [...whole, set]) copy(path, folder);
  for (const script of ['node', 'own-node.cjs', 'own-node.txt', 'node-version.cjs', 'program.cjs', 'serve.cjs'])
    copy(join('scripts', script), folder);
  copy(join('build', 'programs'), folder);
  copy(join('build', 'console'), folder);
  if (site) copy(join('build', 'docs'), folder);
  if (arch === process.arch) copy(join('native', 'build'), folder);
  else {
    run(process.execPath, [join(root, 'native', 'build.mjs'), '--target', arch]);
    const built = join(root, 'build', `native-${arch}`);
    cpSync(built, join(folder, 'native', 'build'), { recursive: true, filter: isWanted });
  }
  for (const path of packages) {
    copy(join(path, 'dist'), folder);
    copy(join(path, 'package.json'), folder);
    setVersion(join(folder, path, 'package.json'), version);
  }
  for (const path of ['bin', 'schemas']) copy(join('cli', path), folder);
  // Types are for users: the filter leaves out ours.
  cpSync(join(root, 'cli', 'schemas'), join(folder, 'cli', 'schemas'), { recursive: true });
  copyDependencies(folder);
  if (arch !== process.arch) replacePrograms(folder, arch);
  const tools = { dependencies: undefined, devDependencies: undefined, scripts: undefined };
  const released = { ...manifest, version, workspaces: packages, ...tools };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(released, null, 2)}\n`);
  if (node !== undefined) {
    mkdirSync(join(folder, 'node', 'bin'), { recursive: true });
    cpSync(node, join(folder, 'node', 'bin', 'node'));
    chmodSync(join(folder, 'node', 'bin', 'node'), 0o755);
    for (const name of ['gpuwhisk', 'wsk', 'wskadmin']) {
      const file = join(folder, 'bin', name);
      writeFileSync(file, readFileSync(file, 'utf8').replace(/^#!.*\n':'.*\n/, commandHead));
    }
  }
  writeFileSync(join(folder, 'build-id'), `${version}-${digestOfFiles(folder)}\n`);
}
