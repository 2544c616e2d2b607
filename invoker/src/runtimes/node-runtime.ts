import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { bindsFor } from './base-view.js';
import type { RuntimeLaunch } from './runtime-catalog.js';

/** The package that guest code unpacks archives with. */
export const zipLibrary = dirname(createRequire(import.meta.url).resolve('adm-zip/package.json'));

/** The first major version whose engine compiles what is called often after some hundred calls. */
const firstWithMaglev = 22;
/** Older ones wait for tens of thousands, which a container may never see: they are to compile three times as soon. */
const compileSooner = '--interrupt-budget=20000';

/** How to start the Node.js runtime in `program`, which is of that major version. */
export function nodeLaunch(runtimesDir: string, program: string, major: number): RuntimeLaunch {
  const guest = join(runtimesDir, 'nodejs');
  const flags = major < firstWithMaglev ? [compileSooner] : [];
  return {
    command: [program, ...flags, join(guest, 'main.cjs'), zipLibrary],
    binds: bindsFor([program, guest, zipLibrary]),
    env: {},
    protocol: 'framed',
  };
}
