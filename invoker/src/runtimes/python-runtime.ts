import { join } from 'node:path';
import { bindsFor } from './base-view.js';
import { pythonBinds } from './find-python.js';
import type { Python } from './find-python.js';
import type { RuntimeLaunch } from './runtime-catalog.js';

/** How to start the Python runtime; `packages` is a folder of requirements. */
export function pythonLaunch(runtimesDir: string, dataDir: string, python: Python, packages?: string): RuntimeLaunch {
  const guest = join(runtimesDir, 'python');
  const folders = [...(packages === undefined ? [] : [packages]), ...python.packageFolders];
  return {
    command: [python.executable, '-I', '-S', '-B', '-X', 'utf8', join(guest, 'runtime.py'), ...folders],
    binds: [...pythonBinds(python, dataDir), ...bindsFor([guest, ...(packages === undefined ? [] : [packages])])],
    // The interpreter itself starts isolated; this is for interpreters that an action starts.
    env: packages === undefined ? {} : { PYTHONPATH: packages },
    protocol: 'framed',
  };
}
