// The documentation site, build/docs: pages of this repository, and a reference that is generated from the programs.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { pathToFileURL } from 'node:url';
import { currentState, root } from '../fresh.mjs';
import { readPages } from './pages.mjs';
import { referencePages } from './reference.mjs';

const timeoutMs = 300_000;
const own = import.meta.dirname;
const built = join(root, 'build', 'docs');
/** Work folders of builds, each with the number of its process as its name. */
const workFolders = join(root, 'build', 'site');
/** What the site was built from: `sources` says without reading them whether they may have changed. */
const stampFile = join(built, 'stamp.json');

const sourcesNow = () => {
  const { build, site } = currentState();
  return `${build} ${site}`;
};

function stamped() {
  try {
    return JSON.parse(readFileSync(stampFile, 'utf8'));
  } catch {
    // Never built, or ended while it was written.
    return {};
  }
}

/** Whether no source of the site has changed since it was built. */
export const isSiteFresh = () => stamped().sources === sourcesNow();

/**
 * Builds the site unless it is up to date. The TypeScript code must be compiled. Rejects if that fails, with what VitePress
 * printed: a link that leads nowhere, for example.
 */
export async function ensureSite() {
  const sources = sourcesNow();
  if (stamped().sources === sources) return;
  const pages = new Map([...readPages(), ...(await referencePages())]);
  const content = hashOf(pages);
  if (stamped().content === content) {
    writeFileSync(stampFile, JSON.stringify({ sources, content }));
    return;
  }
  removeDeadFolders();
  const work = join(workFolders, String(process.pid));
  layOut(work, pages);
  try {
    await runVitePress(work);
    writeFileSync(join(work, 'site', 'stamp.json'), JSON.stringify({ sources, content }));
    // A server may be reading the present site: the new one takes its place as a whole.
    if (existsSync(built)) renameSync(built, join(work, 'former'));
    renameSync(join(work, 'site'), built);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function hashOf(pages) {
  const hash = createHash('sha256').update(readFileSync(join(root, 'package-lock.json')));
  for (const path of ['config.mjs', 'pages.mjs', 'theme/index.mjs', 'theme/style.css'])
    hash.update(readFileSync(join(own, path)));
  for (const [path, content] of pages) hash.update(`\n${path}\n`).update(content);
  return hash.digest('hex');
}

/** Removes what builds left that were killed. */
function removeDeadFolders() {
  mkdirSync(workFolders, { recursive: true });
  for (const name of readdirSync(workFolders)) {
    if (!isAlive(Number(name))) rmSync(join(workFolders, name), { recursive: true, force: true });
  }
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Writes VitePress's folder: its pages, this folder's configuration and theme. */
function layOut(work, pages) {
  for (const [path, content] of pages) {
    const file = join(work, 'pages', path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
  const settings = join(work, '.vitepress');
  cpSync(join(own, 'theme'), join(settings, 'theme'), { recursive: true });
  const config = pathToFileURL(join(own, 'config.mjs')).href;
  writeFileSync(join(settings, 'config.mjs'), `export { default } from '${config}';\n`);
}

async function runVitePress(work) {
  const program = join(root, 'node_modules', 'vitepress', 'bin', 'vitepress.js');
  const options = { cwd: root, timeout: timeoutMs, env: { ...process.env, NODE_OPTIONS: '' } };
  try {
    await promisify(execFile)(process.execPath, [program, 'build', work], options);
  } catch (error) {
    throw new Error(`The documentation site cannot be built:\n${error.stdout}${error.stderr || error.message}`, {
      cause: error,
    });
  }
}

// npm start has it built behind the running server.
if (process.argv[1] === import.meta.filename) {
  setPriority(10);
  try {
    await ensureSite();
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}
