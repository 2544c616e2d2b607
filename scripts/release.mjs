// npm run release -- [OUT.tgz]: packs a built server and client for machines of this platform that have only Node.js.
// The archive has one folder `gpuwhisk-<version>` with bin/, the packages and their dependencies.
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { ensureBuilt } from './build.mjs';
import { root } from './fresh.mjs';

const timeoutMs = 300_000;
const packages = ['common', 'gpu', 'engines', 'controller', 'invoker', 'server', 'standalone', 'cli'];
const whole = ['bin', 'docker', 'runtimes', 'LICENSE', 'README.md'];
/**
 * Leaves out compiled tests, types and maps, which a release does not use, code that V8 compiled for this machine, and
 * secrets of this clone's cluster, which must not leave it.
 */
const isWanted = (path) =>
  !/(\.d\.ts|\.map|\.tsbuildinfo|\.test\.js|\.code)$/.test(path) &&
  !['objects', '__pycache__', '.env', 'secrets'].includes(basename(path));

function run(command, args, cwd) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8', timeout: timeoutMs });
  if (status !== 0) throw new Error(`${command} ${args[0]} failed: ${stderr || error?.message}`);
  return stdout;
}

function copy(path, folder) {
  cpSync(join(root, path), join(folder, path), { recursive: true, filter: isWanted });
}

/**
 * Copies the dependencies as this clone has them, links to the packages included. npm lists them: an installation takes
 * the network and most of a minute.
 */
function copyDependencies(folder) {
  const workspaces = packages.map((name) => `--workspace=${name}`);
  const listed = run('npm', ['ls', '--omit=dev', '--all', '--parseable', ...workspaces], root);
  const nested = `${sep}node_modules${sep}`;
  for (const path of listed.split('\n').filter((line) => line.includes(nested))) {
    const target = join(folder, relative(root, path));
    mkdirSync(dirname(target), { recursive: true });
    // npm lists the dependencies of a dependency by themselves.
    const isOwn = (inside) =>
      !inside.slice(path.length).includes(`${sep}node_modules`) && !/\.(d\.[cm]?ts|map)$/.test(inside);
    if (lstatSync(path).isSymbolicLink()) symlinkSync(readlinkSync(path), target);
    else cpSync(path, target, { recursive: true, filter: isOwn });
  }
}

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
/** The name of a release's only folder. */
export const name = `gpuwhisk-${manifest.version}`;

/**
 * Makes the folder of a release, building the clone before if that is missing or out of date; on request without the site of
 * the documentation.
 */
export async function layOutRelease(folder, { site = true } = {}) {
  await ensureBuilt({ site });
  const { nodePackages } = await import('../invoker/dist/runtimes/image-packages.js');
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
  copy(join('native', 'build'), folder);
  for (const path of packages) {
    copy(join(path, 'dist'), folder);
    copy(join(path, 'package.json'), folder);
  }
  for (const path of ['bin', 'schemas']) copy(join('cli', path), folder);
  copyDependencies(folder);
  const tools = { dependencies: undefined, devDependencies: undefined, scripts: undefined };
  const released = { ...manifest, workspaces: packages, ...tools };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(released, null, 2)}\n`);
}

if (process.argv[1] === import.meta.filename) {
  const out = resolve(process.argv[2] ?? join('build', `${name}.tgz`));
  const parent = mkdtempSync(join(tmpdir(), 'gpuwhisk-release-'));
  try {
    await layOutRelease(join(parent, name));
    mkdirSync(dirname(out), { recursive: true });
    run('tar', ['-czf', out, '-C', parent, name], parent);
  } finally {
    rmSync(parent, { recursive: true, force: true });
  }
  console.log(out);
}
