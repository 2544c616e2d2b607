import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Python } from '../../runtimes/find-python.js';
import type { InjectOptions, LaunchOptions } from './injector.js';

/** What a Python pre-warmer does before it is ready, and what it may see. */
export interface PythonPrewarmerOptions {
  /** Where its functions work and write; it should hold nothing else. */
  folder: string;
  /** Modules to import, as annotation `warm` names them. */
  imports?: readonly string[];
  /** Further folders that it may write in. */
  write?: readonly string[];
  /** Folders of installed packages, before those of the interpreter. */
  packages?: readonly string[];
  /** Further environment: NAME=value. */
  environment?: readonly string[];
}

/** The resident code, which the interpreter loads. */
export const residentLibrary = fileURLToPath(new URL('../../../../native/build/resident.so', import.meta.url));

/** What the libraries of a Python pre-warmer are told. */
export const pythonPrewarmerVariables: Readonly<Record<string, string>> = {
  // Its threads would be ended with the first function, and its products wait for them for ever.
  OPENBLAS_NUM_THREADS: '1',
  OMP_NUM_THREADS: '1',
  // Memory comes in few calls: each that changes mappings is one that the proxy looks at.
  MALLOC_TOP_PAD_: '1048576',
  MALLOC_TRIM_THRESHOLD_: '67108864',
  MALLOC_MMAP_THRESHOLD_: '67108864',
  MALLOC_ARENA_MAX: '2',
};

/** How to start a Python pre-warmer; `runtimesDir` is the folder of the runtimes. */
export function pythonPrewarmer(runtimesDir: string, python: Python, options: PythonPrewarmerOptions): LaunchOptions {
  const guest = join(runtimesDir, 'python');
  const packages = [...(options.packages ?? []), ...python.packageFolders, join(runtimesDir, 'cuda')];
  const readable = [guest, residentLibrary, python.basePrefix, ...packages];
  const each = (name: string, values: readonly string[]) => values.flatMap((value) => [name, value]);
  return {
    program: python.executable,
    arguments: [
      ...['-I', '-S', '-B', '-X', 'utf8', join(guest, 'prewarmer.py'), residentLibrary, options.folder],
      ...[...each('--package', packages), ...each('--read', readable), ...each('--write', options.write ?? [])],
    ],
    environment: [
      'PATH=/usr/local/bin:/usr/bin:/bin',
      `GPUWHISK_IMPORTS=${(options.imports ?? []).join(' ')}`,
      ...Object.entries(pythonPrewarmerVariables).map(([name, value]) => `${name}=${value}`),
      ...(options.environment ?? []),
    ],
  };
}

/** How to inject Python source or an archive: where extension modules may come from, and that it is no shared object. */
export function pythonInjection(
  python: Python,
  packages: readonly string[] = [],
): Pick<InjectOptions, 'sharedObject' | 'libraryFolders'> {
  const folders = [python.basePrefix, ...packages, ...python.packageFolders];
  return {
    sharedObject: false,
    libraryFolders: folders.map((folder) => (folder.endsWith('/') ? folder : `${folder}/`)),
  };
}
