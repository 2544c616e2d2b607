import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { proxyPath } from '../containers/mscontainer/injector.js';
import {
  pythonInjection,
  pythonPrewarmer,
  pythonPrewarmerVariables,
  residentLibrary,
} from '../containers/mscontainer/python-prewarmer.js';
import { bindsFor } from './base-view.js';
import { pythonBinds } from './find-python.js';
import type { Python } from './find-python.js';
import type { RuntimeLaunch } from './runtime-catalog.js';

/** Folders, of the sandbox, that functions may write in besides the working one. */
const writable = ['/tmp', '/dev/shm'];

/** Whether Python functions can be injected here: the proxy and the resident code were built. */
export const hasPythonPairs = (): boolean => existsSync(proxyPath) && existsSync(residentLibrary);

/** How to start the proxy with a Python pre-warmer; `packages` is a folder of requirements. */
export function pythonPairLaunch(
  runtimesDir: string,
  dataDir: string,
  python: Python,
  packages?: string,
): RuntimeLaunch {
  const own = packages === undefined ? [] : [packages];
  const how = pythonPrewarmer(runtimesDir, python, { folder: '.', packages: own, write: writable });
  const plain = pythonLaunch(runtimesDir, dataDir, python, packages);
  const { libraryFolders = [] } = pythonInjection(python, own);
  return {
    command: [proxyPath, `python:${python.version.replace(/\.\d+$/, '')}`, how.program, ...(how.arguments ?? [])],
    binds: [...plain.binds, ...bindsFor([proxyPath, residentLibrary])],
    env: {
      ...plain.env,
      ...pythonPrewarmerVariables,
      GPUWHISK_PREWARM: 'true',
      GPUWHISK_LIBRARIES: libraryFolders.join(':'),
    },
    protocol: 'framed',
    traces: true,
  };
}

/** How to start the Python runtime; `packages` is a folder of requirements. */
export function pythonLaunch(runtimesDir: string, dataDir: string, python: Python, packages?: string): RuntimeLaunch {
  const guest = join(runtimesDir, 'python');
  const cuda = join(runtimesDir, 'cuda');
  const folders = [...(packages === undefined ? [] : [packages]), ...python.packageFolders, cuda];
  return {
    command: [python.executable, '-I', '-S', '-B', '-X', 'utf8', join(guest, 'runtime.py'), ...folders],
    binds: [...pythonBinds(python, dataDir), ...bindsFor([guest, cuda, ...(packages === undefined ? [] : [packages])])],
    // The interpreter itself starts isolated; this is for interpreters that an action starts.
    env: packages === undefined ? {} : { PYTHONPATH: packages },
    protocol: 'framed',
  };
}
