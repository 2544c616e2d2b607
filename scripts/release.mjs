// npm run release -- [OUT.tgz]: packs a built server and client for machines of this platform that have only Node.js.
// The archive has one folder `gpuwhisk-<version>` with bin/, the packages and their dependencies.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { ensureBuilt } from './build.mjs';
import { root } from './fresh.mjs';

const timeoutMs = 300_000;
const packages = ['common', 'gpu', 'engines', 'controller', 'invoker', 'server', 'standalone', 'cli'];
const whole = ['bin', 'docker', 'runtimes', 'LICENSE', 'README.md', 'package-lock.json', '.npmrc'];
/**
 * Leaves out compiled tests, types and maps, which a release does not use, and secrets of this clone's cluster, which
 * must not leave it.
 */
const isWanted = (path) =>
  !/(\.d\.ts|\.map|\.tsbuildinfo|\.test\.js)$/.test(path) &&
  !['objects', '__pycache__', '.env', 'secrets'].includes(basename(path));

function run(command, args, cwd) {
  const { status, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8', timeout: timeoutMs });
  if (status !== 0) throw new Error(`${command} ${args[0]} failed: ${stderr || error?.message}`);
}

function copy(path, folder) {
  cpSync(join(root, path), join(folder, path), { recursive: true, filter: isWanted });
}

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const name = `gpuwhisk-${manifest.version}`;
const out = resolve(process.argv[2] ?? join('build', `${name}.tgz`));
await ensureBuilt();
const { nodePackages } = await import('../invoker/dist/runtimes/image-packages.js');
const parent = mkdtempSync(join(tmpdir(), 'gpuwhisk-release-'));
try {
  const folder = join(parent, name);
  mkdirSync(folder);
  for (const path of whole) copy(path, folder);
  copy(join('scripts', 'node-version.cjs'), folder);
  copy(join('native', 'build'), folder);
  for (const path of packages) {
    copy(join(path, 'dist'), folder);
    copy(join(path, 'package.json'), folder);
  }
  copy(join('cli', 'bin'), folder);
  // Python's packages depend on the machine: its invoker installs them when it starts.
  const set = join('build', 'packages', (await nodePackages(join(root, 'runtimes'))).name);
  if (!existsSync(join(root, set))) throw new Error(`The packages of Node.js actions (${set}) are not installed.`);
  copy(set, folder);
  delete manifest.devDependencies;
  delete manifest.scripts;
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ ...manifest, workspaces: packages }, null, 2)}\n`);
  run('npm', ['install', '--omit=dev', '--no-audit', '--no-fund', '--prefer-offline', '--ignore-scripts'], folder);
  mkdirSync(dirname(out), { recursive: true });
  run('tar', ['-czf', out, '-C', parent, name], parent);
} finally {
  rmSync(parent, { recursive: true, force: true });
}
console.log(out);
