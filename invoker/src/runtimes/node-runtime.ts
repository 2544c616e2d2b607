import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { bindsFor } from './base-view.js';
import type { RuntimeLaunch } from './runtime-catalog.js';

/** The package that guest code unpacks archives with. */
export const zipLibrary = dirname(createRequire(import.meta.url).resolve('adm-zip/package.json'));

/** How to start the Node.js runtime in `program`. */
export function nodeLaunch(runtimesDir: string, program: string): RuntimeLaunch {
  const guest = join(runtimesDir, 'nodejs');
  return {
    command: [program, join(guest, 'main.cjs'), zipLibrary],
    binds: bindsFor([program, guest, zipLibrary]),
    env: {},
    protocol: 'framed',
  };
}
