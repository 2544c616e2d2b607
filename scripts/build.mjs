// Installs and builds everything that is missing or out of date; quick if nothing is.
import './node-version.cjs';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { currentState, researchState, root, stampedState, writeStamp } from './fresh.mjs';

const mostOutputBytes = 64 * 1024 * 1024;

async function run(command, args, what) {
  try {
    await promisify(execFile)(command, args, { cwd: root, maxBuffer: mostOutputBytes });
  } catch (error) {
    const printed = `${error.stdout ?? ''}${error.stderr ?? ''}`;
    console.error(`${what} failed:\n${printed === '' ? error.message : printed}`);
    process.exit(1);
  }
}

/**
 * Brings the clone up to date; ends the process with a message if that fails. `site`: the documentation site, too, and
 * `research`: the workspace of this name, which most commands do without.
 */
export async function ensureBuilt({ site = false, research = false } = {}) {
  await ensureCodeBuilt();
  if (research) await ensureResearchBuilt();
  if (!site) return;
  const { ensureSite } = await import('./site/build.mjs');
  try {
    await ensureSite();
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}

/** Has the documentation site built behind this process, which does not wait for it. The code must be built. */
export async function buildSiteBehind() {
  const { isSiteFresh } = await import('./site/build.mjs');
  if (isSiteFresh()) return;
  // Ctrl-C ends it, too: it is in the same process group.
  spawn(process.execPath, [join(root, 'scripts', 'site', 'build.mjs')], {
    stdio: ['ignore', 'ignore', 'inherit'],
  }).unref();
}

async function ensureCodeBuilt() {
  const stamped = stampedState();
  let state = currentState();
  if (state.install !== stamped.install || state.node !== stamped.node || !existsSync(join(root, 'node_modules'))) {
    console.log('Installing dependencies (once) ...');
    await run('npm', ['ci', '--no-audit', '--no-fund'], 'npm ci');
    state = currentState();
    stamped.build = undefined;
  }
  if (state.build === stamped.build) return;
  console.log('Building (once) ...');
  // The TypeScript build takes one processor.
  await Promise.all([buildTypeScript().then(installActionPackages), buildNativeParts()]);
  writeStamp(currentState());
}

/** Compiles research, and makes one file of its baselines, which `gpu.policyModules` can name. */
async function ensureResearchBuilt() {
  const stamp = join(root, 'research', 'dist', 'stamp');
  const state = researchState();
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === state) return;
  console.log('Building research (once) ...');
  await runTypeScript('research');
  const { bundleBaselines } = await import('../research/bundle.mjs');
  await bundleBaselines();
  writeFileSync(stamp, state);
}

const runTypeScript = (...projects) =>
  run(
    process.execPath,
    [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '-b', ...projects],
    'The TypeScript build',
  );

async function buildTypeScript() {
  await runTypeScript();
  writeFileSync(join(root, 'server', 'dist', 'build.json'), JSON.stringify({ date: sourceDate() }));
  // esbuild is there only after the dependencies have been installed.
  const { bundlePrograms } = await import('./bundle.mjs');
  await bundlePrograms();
  const { build } = await import('vite');
  await build({ configFile: join(root, 'console', 'vite.config.mjs') });
}

async function buildNativeParts() {
  const nativeBuild = join(root, 'native', 'build.mjs');
  if (!existsSync(nativeBuild)) return;
  const { buildNative } = await import(pathToFileURL(nativeBuild).href);
  const { note } = await buildNative();
  if (note) console.log(note);
}

/**
 * The day of the sources in UTC, `YYYY-MM-DD`, which the API shows. The day is that of SOURCE_DATE_EPOCH (seconds) if
 * set, else of the commit, else, without git, today.
 */
function sourceDate() {
  const given = process.env.SOURCE_DATE_EPOCH || commitSeconds();
  return (given ? new Date(Number(given) * 1000) : new Date()).toISOString().slice(0, 10);
}

/** Seconds since 1970 of this clone's commit; undefined outside a clone or without git. */
function commitSeconds() {
  if (!existsSync(join(root, '.git'))) return undefined;
  const { status, stdout } = spawnSync('git', ['log', '-1', '--format=%ct'], { cwd: root, encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}

/**
 * Installs the packages that OpenWhisk's images bring for actions. A machine without a network builds without them and
 * reports it.
 */
async function installActionPackages() {
  const built = (name) => import(pathToFileURL(join(root, 'invoker', 'dist', 'runtimes', `${name}.js`)).href);
  const { builtPackages, installImagePackages } = await built('image-packages');
  const { findPython } = await built('find-toolchains');
  const runtimesDir = join(root, 'runtimes');
  const folder = builtPackages(runtimesDir);
  const notes = await installImagePackages(runtimesDir, folder, await findPython(join(folder, 'python.json')));
  for (const note of notes) console.log(note);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href)
  await ensureBuilt({ site: process.argv.includes('--site'), research: process.argv.includes('--research') });
