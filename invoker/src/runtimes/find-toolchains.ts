// Interpreters and compilers of the machine: Python, Go, Java.
import { mkdir, readFile, rename, stat, writeFile, realpath } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { bindsFor, isWithin } from '../containers/runtime-launch.js';
import type { Bind } from '../containers/runtime-launch.js';
import { ProgramError, runProgram, findOnPath } from '../host/programs.js';

/** A Python interpreter of the machine. */
export interface Python {
  /** The program itself, not a shim or a link of a virtual environment. */
  executable: string;
  /** Program to run pip with: the interpreter as found, in its virtual environment if it has one. */
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
 * The first Python 3.8 or newer on the PATH, or undefined. A query takes up to 100 ms, so its answer is kept in `cacheFile`
 * until the program (or a version manager's choice behind a shim) changes.
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

/** Binds that the interpreter needs in a sandbox. */
export function pythonBinds(python: Python, dataDir: string): Bind[] {
  // An interpreter directly below a home folder would bind the whole home folder.
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

/** A text that changes with the program, or with the choice of a version manager (pyenv, asdf) behind a shim. */
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
    return undefined; // The file is absent or unreadable: the interpreter is queried again.
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

/** A Java development kit of the machine. */
export interface Jdk {
  /** Folder with `bin/java` and `bin/javac`. */
  home: string;
  /** Major version, such as 17. */
  major: number;
  /** Such as `17.0.15`. */
  version: string;
}

/** A Go toolchain of the machine. */
export interface Go {
  /** GOROOT, the folder with `bin/go`. */
  root: string;
  /** Such as `1.22.3`. */
  version: string;
}

const oldestJdk = 17;

/** The JDK that the `javac` on PATH belongs to, if it is 17 or newer. Starts no program. */
export async function findJdk(path: string): Promise<Jdk | undefined> {
  for (const javac of await findOnPath('javac', path)) {
    const home = dirname(dirname(javac));
    const release = await readFile(join(home, 'release'), 'utf8').catch(() => '');
    const version = /^JAVA_VERSION="([\d.]+)/m.exec(release)?.[1] ?? '';
    const major = Number(version.split('.')[0]);
    if (major >= oldestJdk) return { home, major, version };
  }
  return undefined;
}

/** The Go toolchain that the `go` on PATH belongs to. Starts no program. */
export async function findGo(path: string): Promise<Go | undefined> {
  for (const program of await findOnPath('go', path)) {
    const root = dirname(dirname(program));
    const text = await readFile(join(root, 'VERSION'), 'utf8').catch(() => '');
    const version = /^go(1\.\d+(?:\.\d+)?)/.exec(text)?.[1];
    if (version !== undefined) return { root: await realpath(root), version };
  }
  return undefined;
}
