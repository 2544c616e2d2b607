import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bindsFor } from './base-view.js';
import type { RuntimeLaunch } from './runtime-catalog.js';

/** The package that guest code unpacks archives with. */
export const zipLibrary = dirname(createRequire(import.meta.url).resolve('adm-zip/package.json'));

/** The addon by which the runtime reads and writes its socket, from native/build.mjs; without a compiler it is not there. */
export const channelAddon = fileURLToPath(new URL('../../../native/build/channel.node', import.meta.url));

/** How to start the Node.js runtime in `program`. Without `addon`, or where it is no file, it uses Node's own streams. */
export function nodeLaunch(
  runtimesDir: string,
  program: string,
  addon: string | undefined = channelAddon,
): RuntimeLaunch {
  const guest = join(runtimesDir, 'nodejs');
  const addons = addon !== undefined && existsSync(addon) ? [addon] : [];
  return {
    command: [program, join(guest, 'main.cjs'), zipLibrary, ...addons],
    binds: bindsFor([program, guest, zipLibrary, ...addons]),
    env: {},
    protocol: 'framed',
  };
}
