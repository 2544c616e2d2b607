// Installs and builds everything that is missing or out of date; quick if nothing is.
import './node-version.cjs';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { installActionPackages, languages } from './action-packages.mjs';
import { startBehind } from './behind.mjs';
import { currentState, digestOf, readRecord, researchState, root, stamp, stampedState } from './fresh.mjs';
import { writeRecord, writeWhole } from './fresh.mjs';
import { ensureInstalled } from './install.mjs';
import { timed } from './parts.mjs';
import programs from './program.cjs';

const typesTimeoutMs = 900_000;
const mostOutputBytes = 64 * 1024 * 1024;

/** Ends the process with a message if the work fails. */
async function orExit(work) {
  try {
    return await work();
  } catch (error) {
    // esbuild and compilers tell in words, for many files.
    const full = error.message.split('\n').find((line) => /ENOSPC|no space left/i.test(line));
    console.error(full === undefined ? error.message : `The disk is full: free about 1 GB, and try again (${full}).`);
    return process.exit(1);
  }
}

/**
 * Brings the clone up to date; ends the process with a message if that fails. `types`: types are checked, too, and their
 * declarations written; `site`: the documentation's site is built; `research`: so is the workspace of this name. Most commands
 * do without them.
 */
export function ensureBuilt({ site = false, types = false, research = false } = {}) {
  return orExit(async () => {
    await timed('dependencies', () => ensureInstalled({ all: true }));
    await Promise.all([timed('build', ensureCodeBuilt), types && timed('types', () => ensureTypes(research))]);
    if (research) await timed('build of research', ensureResearchBuilt);
    if (!site) return;
    const { ensureSite } = await import('./site/build.mjs');
    await timed('documentation site', ensureSite);
  });
}

/** Installs all dependencies, and checks types; ends the process with a message if that fails. */
export function ensureTypesChecked() {
  return orExit(async () => {
    await ensureInstalled({ all: true });
    await ensureTypes(true);
  });
}

/**
 * Brings what a server starts with up to date; ends the process with a message if that fails. The rest is built behind this
 * process, which becomes the server and waits for a part of it when something needs that part. Resolves with `rest`, a
 * promise of its end, and whether anything was built before it (`isNew`).
 */
export function ensureServerBuilt() {
  return orExit(async () => {
    await ensureInstalled({ all: false });
    const { server } = currentState();
    const stamped = stampedState();
    if (stamped.behind === server) return { rest: Promise.resolve(), isNew: false };
    const isBuilt = stamped.server === server;
    if (!isBuilt) console.log('Building (once) ...');
    const rest = [];
    const { buildForStart } = await import('../native/build.mjs');
    const [{ behind, note }] = await Promise.all([
      buildForStart(),
      (async () => {
        const finish = isBuilt ? undefined : await transpilePackages(programs.packages);
        rest.push(startBehind(join(root, 'scripts', 'action-packages.mjs'), languages));
        await finish?.();
      })(),
    ]);
    if (note && !isBuilt) console.log(note);
    stamp({ server });
    // The server will wait for its simulated GPUs.
    if (process.argv.some((word) => word.includes('sim:')))
      behind.sort((one, other) => Number(other === 'standIn') - Number(one === 'standIn'));
    if (behind.length > 0) rest.push(startBehind(join(root, 'native', 'build.mjs'), behind));
    const over = Promise.all(rest).then((done) => {
      if (!done.includes(false)) stamp({ behind: server });
    });
    // The server runs; the next start tries again.
    const failed = (error) => console.error(`The build behind the server failed: ${error.message}`);
    return { rest: over.catch(failed), isNew: !isBuilt };
  });
}

/** Has the documentation site built behind this process, which does not wait for it. The code must be built. */
export async function buildSiteBehind() {
  // Its generator is a tool, which npm start does not install.
  if (stampedState().installed === 'server') return;
  const { isSiteFresh } = await import('./site/build.mjs');
  if (isSiteFresh()) return;
  // Ctrl-C ends it, too: it is in the same process group.
  spawn(process.execPath, [join(root, 'scripts', 'site', 'build.mjs')], {
    stdio: ['ignore', 'ignore', 'inherit'],
  }).unref();
}

async function ensureCodeBuilt() {
  const { server, build } = currentState();
  if (build === stampedState().build) return;
  console.log('Building (once) ...');
  const { workspaces } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const packages = workspaces.filter((name) => name !== 'research');
  const { buildNative } = await import('../native/build.mjs');
  const notes = await Promise.all([
    buildNative(),
    transpilePackages(packages).then(async (finish) => {
      const [, ...failures] = await Promise.all([finish(), ...languages.map(installActionPackages)]);
      return failures;
    }),
  ]);
  for (const note of notes.flat()) if (note) console.log(note);
  stamp({ server, behind: server, build });
}

/** Compiles research, and makes one file of its baselines, which `gpu.policyModules` can name. */
async function ensureResearchBuilt() {
  const research = researchState();
  const isMade = existsSync(join(root, 'research', 'dist', 'baselines.mjs'));
  if (isMade && stampedState().research === research) return;
  console.log('Building research (once) ...');
  const { transpile } = await import('./transpile.mjs');
  await transpile(['research'], () => undefined);
  const { bundleBaselines } = await import('../research/bundle.mjs');
  await bundleBaselines();
  stamp({ research });
}

/** Makes JavaScript of packages. Resolves with what makes the programs and the console of it. */
async function transpilePackages(packages) {
  // esbuild is there only after the dependencies have been installed.
  const [{ transpile }, { bundlePrograms, removeBundles }] = await Promise.all([
    import('./transpile.mjs'),
    import('./bundle.mjs'),
  ]);
  const isProgram = (name) => programs.packages.includes(name);
  const digests = await transpile(packages, (changed) => changed.some(isProgram) && removeBundles());
  const info = JSON.stringify({ date: sourceDate() });
  writeWhole(join(root, 'server', 'dist', 'build.json'), info);
  const own = Object.entries(digests).filter(([path]) => isProgram(path.split(sep)[0]));
  return async () => {
    await Promise.all([bundlePrograms(Object.fromEntries(own)), buildConsole()]);
    // The process may become a server, whose child esbuild would stay.
    const { stop } = await import('esbuild');
    await stop();
  };
}

async function buildConsole() {
  const folder = join(root, 'console');
  const sources = readdirSync(join(folder, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const settings = ['index.html', 'package.json', 'vite.config.mjs'].map((name) => join(folder, name));
  const files = [...sources.sort(), ...settings, join(root, 'package-lock.json')];
  const key = digestOf(...files.flatMap((file) => [file.slice(root.length), readFileSync(file)]));
  const keyFile = join(root, 'build', 'console.json');
  if (readRecord(keyFile).key === key && existsSync(join(root, 'build', 'console', 'index.html'))) return;
  const { build } = await import('vite');
  await build({ configFile: join(folder, 'vite.config.mjs') });
  writeRecord(keyFile, { key });
}

/** Checks the types of the product, its tests and benches, and of research if it is to be built. */
async function ensureTypes(research) {
  const state = research ? { allTypes: researchState() } : { types: currentState().build };
  const [[name, sources]] = Object.entries(state);
  if (stampedState()[name] === sources) return;
  // ESLint reads types with TypeScript 6, whose interface this compiler, several times as quick, does not have.
  const compiler = join(root, 'node_modules', 'typescript-native', 'bin', 'tsc');
  const options = { cwd: root, timeout: typesTimeoutMs, maxBuffer: mostOutputBytes };
  try {
    await promisify(execFile)(process.execPath, [compiler, '-b', '.', ...(research ? ['research'] : [])], options);
  } catch (error) {
    throw new Error(`Types do not hold:\n${error.stdout || error.message}`, { cause: error });
  }
  stamp(state);
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

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const isWhole = process.argv.includes('--all');
  await ensureBuilt({ site: isWhole, types: isWhole, research: process.argv.includes('--research') });
}
