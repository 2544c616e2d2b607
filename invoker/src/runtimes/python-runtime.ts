import { existsSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { bindsFor, isWithin } from '../containers/runtime-launch.js';
import type { SharedModules } from '../containers/container-factory.js';
import type { RuntimeLaunch } from '../containers/runtime-launch.js';
import { proxyPath, pythonChannel, residentLibrary } from '../host/native-programs.js';
import { runProgram } from '../host/programs.js';
import { minorOf, pythonBinds } from './find-toolchains.js';
import type { Python } from './find-toolchains.js';

/** Folders of the sandbox that functions may write in besides the working folder. */
const writable = ['/tmp', '/dev/shm'];

/** Whether Python functions can be injected on this machine, as the proxy and the resident code were built. */
export const hasPythonPairs = (): boolean => existsSync(proxyPath) && existsSync(residentLibrary);

/** The launch of the proxy with a Python pre-warmer; `packages` is a folder of requirements. */
export function pythonPairLaunch(
  runtimesDir: string,
  dataDir: string,
  python: Python,
  packages?: string,
): RuntimeLaunch {
  const own = packages === undefined ? [] : [packages];
  const how = pythonPrewarmer(runtimesDir, python, { folder: '.', packages: own, write: writable });
  const plain = pythonLaunch(runtimesDir, dataDir, python, packages);
  const { libraryFolders } = pythonInjection(python, own);
  // Functions answer by themselves where the library for that was built.
  const servesRuns = existsSync(pythonChannel);
  return {
    command: [proxyPath, `python:${python.version.replace(/\.\d+$/, '')}`, how.program, ...how.arguments],
    binds: [...plain.binds, ...bindsFor([proxyPath, residentLibrary])],
    env: {
      ...plain.env,
      ...pythonPrewarmerVariables,
      GPUWHISK_PREWARM: 'true',
      GPUWHISK_LIBRARIES: libraryFolders.join(':'),
      ...(servesRuns ? { GPUWHISK_RUNS_FD: '4' } : {}),
    },
    protocol: 'framed',
    traces: true,
    servesRuns,
    sharedModules: sharedModulesOf(python, packages),
  };
}

/** The launch of the Python runtime; `packages` is a folder of requirements. */
export function pythonLaunch(runtimesDir: string, dataDir: string, python: Python, packages?: string): RuntimeLaunch {
  const guest = join(runtimesDir, 'python');
  const modules = [join(runtimesDir, 'cuda'), join(runtimesDir, 'training')];
  const folders = [...(packages === undefined ? [] : [packages]), ...python.packageFolders, ...modules];
  // Without a compiler on this machine, frames go by Python code.
  const channel = existsSync(pythonChannel) ? [pythonChannel] : [];
  return {
    command: [
      python.executable,
      ...['-I', '-S', '-B', '-X', 'utf8', join(guest, 'start.py')],
      ...channel.flatMap((path) => ['--channel', path]),
      ...folders,
    ],
    binds: [
      ...pythonBinds(python, dataDir),
      ...bindsFor([guest, ...modules, ...channel, ...(packages === undefined ? [] : [packages])]),
    ],
    env: variablesOf(python, packages),
    protocol: 'framed',
    sharedModules: sharedModulesOf(python, packages),
  };
}

/** Modules of requirements, of the image, and of the interpreter's library. */
function sharedModulesOf(python: Python, packages: string | undefined): SharedModules {
  const library = join(python.basePrefix, 'lib', `python3.${minorOf(python)}`);
  const own = packages === undefined ? [] : [packages];
  const folders = [...own, library, join(library, 'lib-dynload'), ...python.packageFolders];
  return { language: 'python', folders };
}

/** Variables for interpreters that an action starts; the runtime's own starts isolated. */
function variablesOf(python: Python, packages: string | undefined): Record<string, string> {
  // The program is the virtual environment's base, which does not look into its packages by itself.
  const environment = dirname(dirname(python.installer));
  const ofEnvironment = python.packageFolders.filter(
    (folder) => isWithin(folder, environment) && !isWithin(folder, python.basePrefix),
  );
  const folders = [...(packages === undefined ? [] : [packages]), ...ofEnvironment];
  return folders.length === 0 ? {} : { PYTHONPATH: folders.join(':') };
}

const compileTimeoutMs = 60_000;

/**
 * Compiles the modules of the Python runtime beside their sources, unless that is done. Without compiled modules, the
 * runtime takes about twice as long to start. Rejects with ProgramError, also if the folder cannot be written.
 */
export async function compilePythonRuntime(runtimesDir: string, python: Python, stop: AbortSignal): Promise<void> {
  const guest = join(runtimesDir, 'python');
  const sources = (await readdir(guest)).filter((name) => name.endsWith('.py'));
  const compiled = await Promise.all(sources.map((name) => isCompiled(guest, name, minorOf(python))));
  if (compiled.every(Boolean)) return;
  const program = ['-I', '-S', '-m', 'compileall', '-q', '-l', guest];
  await runProgram(python.executable, program, { timeoutMs: compileTimeoutMs, stop });
}

/** Whether the compiled code of a module is that of its source: its header has the source's time and size. */
async function isCompiled(folder: string, source: string, minor: number): Promise<boolean> {
  const file = join(folder, '__pycache__', source.replace(/\.py$/, `.cpython-3${minor}.pyc`));
  try {
    const [{ mtimeMs, size }, header] = await Promise.all([stat(join(folder, source)), readFile(file)]);
    return header.readUInt32LE(8) === Math.floor(mtimeMs / 1000) && header.readUInt32LE(12) === size;
  } catch {
    return false; // Absent or cut off: it is compiled.
  }
}

/** Options of a Python pre-warmer: its imports, folders and environment. */
interface PythonPrewarmerOptions {
  /** Folder in which functions work and write; it should be empty. */
  folder: string;
  /** Modules to import, as annotation `warm` names them. */
  imports?: readonly string[];
  /** Further folders that functions may write in. */
  write?: readonly string[];
  /** Folders of installed packages, before those of the interpreter. */
  packages?: readonly string[];
  /** Further environment, as NAME=value. */
  environment?: readonly string[];
}

/** Environment for the libraries of a Python pre-warmer. */
const pythonPrewarmerVariables: Readonly<Record<string, string>> = {
  // OpenBLAS's threads would end with the first function, and its later products would wait for them without end.
  OPENBLAS_NUM_THREADS: '1',
  OMP_NUM_THREADS: '1',
  // A thread of pyarrow's second allocator would keep its modules from being loaded ahead.
  JE_ARROW_MALLOC_CONF: 'background_thread:false',
  // Makes allocations grow in few system calls: the proxy checks each call that changes mappings.
  MALLOC_TOP_PAD_: '1048576',
  MALLOC_TRIM_THRESHOLD_: '67108864',
  MALLOC_MMAP_THRESHOLD_: '67108864',
  MALLOC_ARENA_MAX: '2',
};

/** A program with its arguments, and its environment as NAME=value. */
export interface PrewarmerCommand {
  program: string;
  arguments: string[];
  environment: string[];
}

/** The command of a Python pre-warmer; `runtimesDir` is the folder of the runtimes. */
export function pythonPrewarmer(
  runtimesDir: string,
  python: Python,
  options: PythonPrewarmerOptions,
): PrewarmerCommand {
  const guest = join(runtimesDir, 'python');
  const packages = [...(options.packages ?? []), ...python.packageFolders, join(runtimesDir, 'cuda')];
  const channel = existsSync(pythonChannel) ? [pythonChannel] : [];
  const readable = [guest, residentLibrary, ...channel, python.basePrefix, ...packages];
  const each = (name: string, values: readonly string[]) => values.flatMap((value) => [name, value]);
  return {
    program: python.executable,
    arguments: [
      '-I',
      '-S',
      '-B',
      '-X',
      'utf8',
      join(guest, 'prewarmer.py'),
      residentLibrary,
      options.folder,
      ...each('--package', packages),
      ...each('--read', readable),
      ...each('--write', options.write ?? []),
      ...each('--channel', channel),
    ],
    environment: [
      'PATH=/usr/local/bin:/usr/bin:/bin',
      `GPUWHISK_IMPORTS=${(options.imports ?? []).join(' ')}`,
      ...Object.entries(pythonPrewarmerVariables).map(([name, value]) => `${name}=${value}`),
      ...(options.environment ?? []),
    ],
  };
}

/**
 * Settings for the injection of Python source or an archive: folders of extension modules, and that the code is no shared
 * object.
 */
export function pythonInjection(
  python: Python,
  packages: readonly string[] = [],
): { sharedObject: boolean; libraryFolders: string[] } {
  const folders = [python.basePrefix, ...packages, ...python.packageFolders];
  return {
    sharedObject: false,
    libraryFolders: folders.map((folder) => (folder.endsWith('/') ? folder : `${folder}/`)),
  };
}
