// Interpreters and compilers of the machine: Python, Go, Java.
import { mkdir, readdir, readFile, rename, stat, writeFile, realpath } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, delimiter, dirname, join } from 'node:path';
import { ConfigError } from '@gpuwhisk/common/config';
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
 * The first Python 3.8 or newer on the PATH under one of `names`, or undefined. A query takes up to 100 ms, so its answer is kept in
 * `cacheFile` until a program (or a version manager's choice behind a shim) changes.
 */
export async function findPython(
  cacheFile: string,
  env: NodeJS.ProcessEnv = process.env,
  names: readonly string[] = ['python3', 'python'],
): Promise<Python | undefined> {
  const candidates = await candidatesOn(env.PATH ?? '', names);
  if (candidates.length === 0) return undefined;
  const key = (await Promise.all(candidates.map((path) => stateOf(path, env)))).join('\n');
  const cached = await readCache(cacheFile, key);
  if (cached !== undefined) return cached ?? undefined;
  let found: Python | undefined;
  for (const candidate of candidates) if ((found ??= await ask(candidate, env)) !== undefined) break;
  await writeCache(cacheFile, key, found ?? null);
  return found;
}

/**
 * The machine's Pythons, at most one of each minor version: `python3` of the PATH, then those of `versions` such as `3.12` by their
 * own names, `python3.12`, without shims of version managers. `paths` has programs of versions that are used in place of these. Answers are kept in files of
 * `cacheFolder`. Rejects with ConfigError for a path that is no Python of its version.
 */
export async function findPythons(
  cacheFolder: string,
  versions: readonly string[],
  paths: Readonly<Record<string, string>>,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Python[]> {
  const named = await Promise.all(
    Object.entries(paths).map(async ([version, path]): Promise<Python> => {
      const python = await ask(path, env);
      if (python !== undefined && isOf(python, version)) return python;
      const found = python === undefined ? 'no Python that answers' : `Python ${python.version}`;
      throw new ConfigError(`'runtimePaths' has '${path}' for 'python:${version}', which is ${found}.`);
    }),
  );
  const own = await findPython(join(cacheFolder, 'python.json'), env);
  const others = await Promise.all(
    versions
      .filter((version) => !(version in paths) && !(own && isOf(own, version)))
      .map(async (version) => {
        const cacheFile = join(cacheFolder, `python-${version}.json`);
        const python = await findPython(cacheFile, withoutShims(env), [`python${version}`]);
        return python && isOf(python, version) ? python : undefined;
      }),
  );
  const all = named.filter((one) => own === undefined || minorOf(one) !== minorOf(own));
  // The machine's own comes first, so that it is the default.
  const first = own && (named.find((one) => minorOf(one) === minorOf(own)) ?? own);
  return [...(first ? [first] : []), ...all, ...others.filter((python) => python !== undefined)];
}

/** An environment whose PATH is without the folders of version managers: a shim takes long to tell that its version is not chosen. */
function withoutShims(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const folders = (env.PATH ?? '').split(delimiter).filter((folder) => basename(folder) !== 'shims');
  return { ...env, PATH: folders.join(delimiter) };
}

function isOf(python: Python, version: string): boolean {
  return `3.${minorOf(python)}` === version;
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

async function candidatesOn(path: string, names: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const name of names) {
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

/** The answer that is kept: null if there is no Python behind these programs; undefined if the answer is not known. */
async function readCache(cacheFile: string, key: string): Promise<Python | null | undefined> {
  try {
    const cached = JSON.parse(await readFile(cacheFile, 'utf8')) as { key: string; python: Python | null };
    if (cached.key !== key) return undefined;
    return cached.python === null || (await isFile(cached.python.executable)) ? cached.python : undefined;
  } catch {
    return undefined; // The file is absent or unreadable: the interpreter is queried again.
  }
}

async function writeCache(cacheFile: string, key: string, python: Python | null): Promise<void> {
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

/** Folder in which distributions put JDKs, one in each of its folders. */
const jdksFolder = '/usr/lib/jvm';

/**
 * The machine's JDKs of version 17 or newer, at most one of each: those whose `javac` is on the PATH, then, if there is one, those
 * of /usr/lib/jvm. `paths` has the folders of versions that are used in place of these. Starts no program. Rejects with ConfigError
 * for a path that is no JDK of its version.
 */
export async function findJdks(path: string, paths: Readonly<Record<string, string>>): Promise<Jdk[]> {
  const named = await Promise.all(
    Object.entries(paths).map(async ([version, home]) => {
      const jdk = await jdkIn(home);
      if (String(jdk?.major) === version && jdk !== undefined) return jdk;
      const found = jdk === undefined ? 'no JDK of 17 or newer' : `JDK ${jdk.version}`;
      throw new ConfigError(`'runtimePaths' has '${home}' for 'java:${version}', which is ${found}.`);
    }),
  );
  const onPath = (await findOnPath('javac', path)).map((javac) => dirname(dirname(javac)));
  const folders = onPath.length === 0 ? [] : await readdir(jdksFolder).catch(() => []);
  const homes = [...onPath, ...folders.sort().map((name) => join(jdksFolder, name))];
  const found = (await Promise.all(homes.map(jdkIn))).filter((jdk) => jdk !== undefined);
  const all = new Map(found.toReversed().map((jdk) => [jdk.major, jdk]));
  for (const jdk of named) all.set(jdk.major, jdk);
  return [...all.values()].sort((a, b) => b.major - a.major);
}

async function jdkIn(home: string): Promise<Jdk | undefined> {
  const release = await readFile(join(home, 'release'), 'utf8').catch(() => '');
  const version = /^JAVA_VERSION="([\d.]+)/m.exec(release)?.[1] ?? '';
  const major = Number(version.split('.')[0]);
  const isWhole = major >= oldestJdk && (await isFile(join(home, 'bin', 'javac')));
  return isWhole ? { home: await realpath(home), major, version } : undefined;
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
