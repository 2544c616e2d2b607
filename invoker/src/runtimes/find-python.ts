import { mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { bindsFor, isWithin } from './base-view.js';
import type { Bind } from '../containers/runtime-launch.js';
import { ProgramError, runProgram } from '../host/run-program.js';

/** A Python interpreter of the machine. */
export interface Python {
  /** The program itself, not a shim or a link of a virtual environment. */
  executable: string;
  /** What to call for pip: the interpreter as it was found, in its virtual environment if it has one. */
  installer: string;
  basePrefix: string;
  /** Such as `3.11.7`. */
  version: string;
  /** Such as `linux-x86_64`. */
  platform: string;
  /** Folders of installed packages, in the order of sys.path. */
  packageFolders: string[];
}

const oldestMinor = 8;
const askTimeoutMs = 10_000;
const maxCandidates = 4;

const question = `
import json, os, sys, sysconfig
print(json.dumps({
    "executable": os.path.realpath(sys.executable),
    "installer": sys.executable,
    "basePrefix": sys.base_prefix,
    "version": "%d.%d.%d" % sys.version_info[:3],
    "platform": sysconfig.get_platform(),
    "packageFolders": [p for p in sys.path if os.path.basename(p) in ("site-packages", "dist-packages") and os.path.isdir(p)],
}))`;

/**
 * The first Python 3.8 or newer on the PATH, or undefined. What it answered is kept in `cacheFile` until the
 * program (or a version manager's choice behind a shim) changes, as asking takes up to 100 ms.
 */
export async function findPython(cacheFile: string, env: NodeJS.ProcessEnv = process.env): Promise<Python | undefined> {
  const candidates = await candidatesOn(env.PATH ?? '');
  const key = (await Promise.all(candidates.map((path) => stateOf(path, env)))).join('\n');
  const cached = await readCache(cacheFile, key);
  if (cached) return cached;
  for (const candidate of candidates) {
    const python = await ask(candidate, env);
    if (!python) continue;
    await writeCache(cacheFile, key, python);
    return python;
  }
  return undefined;
}

/** The minor version: 11 of 3.11.7. */
export function minorOf(python: Python): number {
  return Number(python.version.split('.')[1]);
}

/** What a sandbox must see for the interpreter to run. */
export function pythonBinds(python: Python, dataDir: string): Bind[] {
  // An interpreter right below someone's home would take all of it along.
  const broad = [homedir(), dataDir].some((folder) => isWithin(folder, python.basePrefix));
  const own = broad ? [python.executable, join(python.basePrefix, 'lib')] : [python.basePrefix, python.executable];
  return bindsFor([...own, ...python.packageFolders]);
}

async function candidatesOn(path: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of ['python3', 'python']) {
    for (const folder of path.split(delimiter)) {
      const candidate = join(folder, name);
      if (folder !== '' && !found.includes(candidate) && (await isFile(candidate))) found.push(candidate);
    }
  }
  return found.slice(0, maxCandidates);
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}

/** Changes when the program does, or when a version manager (pyenv, asdf) would start another one for its shim. */
async function stateOf(path: string, env: NodeJS.ProcessEnv): Promise<string> {
  const choices = path.includes('shims')
    ? [
        join(dirname(dirname(path)), 'version'),
        join(process.cwd(), '.python-version'),
        join(process.cwd(), '.tool-versions'),
      ]
    : [];
  const times = await Promise.all(
    [path, ...choices].map((file) =>
      stat(file).then(
        (found) => `${found.mtimeMs}/${found.size}`,
        () => 'absent',
      ),
    ),
  );
  return [path, ...times, env.PYENV_VERSION ?? ''].join(' ');
}

async function readCache(cacheFile: string, key: string): Promise<Python | undefined> {
  try {
    const cached = JSON.parse(await readFile(cacheFile, 'utf8')) as { key: string; python: Python };
    return cached.key === key && (await isFile(cached.python.executable)) ? cached.python : undefined;
  } catch {
    return undefined; // Absent or unreadable: asked again.
  }
}

async function writeCache(cacheFile: string, key: string, python: Python): Promise<void> {
  await mkdir(dirname(cacheFile), { recursive: true });
  await writeFile(`${cacheFile}.new`, JSON.stringify({ key, python }));
  await rename(`${cacheFile}.new`, cacheFile);
}

async function ask(program: string, env: NodeJS.ProcessEnv): Promise<Python | undefined> {
  try {
    const python = JSON.parse(
      await runProgram(program, ['-I', '-c', question], { timeoutMs: askTimeoutMs, env }),
    ) as Python;
    const [major, minor] = python.version.split('.').map(Number);
    return major === 3 && minor !== undefined && minor >= oldestMinor ? python : undefined;
  } catch (error) {
    if (error instanceof ProgramError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}
