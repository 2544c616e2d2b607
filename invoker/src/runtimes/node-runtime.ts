import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { builtPath } from '../host/native-build.js';
import { bindsFor } from './base-view.js';
import { withOwnPair } from '../containers/runtime-launch.js';
import type { RuntimeLaunch } from '../containers/runtime-launch.js';

/** The package that guest code unpacks archives with. */
export const zipLibrary = dirname(createRequire(import.meta.url).resolve('adm-zip/package.json'));

/** The addon by which the runtime reads and writes its socket, from native/build.mjs; without a compiler it is not there. */
export const channelAddon = builtPath('channel.node');

/** Where packages that are no action's own lie in a sandbox: Node.js looks there last, for `require` and `import`. */
const packagesTarget = '/node_modules';

/** What a Node.js runtime may have besides its guest code. */
export interface NodeLaunchOptions {
  /** The addon by which it reads and writes its socket; where that is no file, it uses Node's own streams. */
  addon?: string;
  /** A folder whose `node_modules` every action finds behind its own packages. */
  packages?: string | undefined;
}

/** How to start the Node.js runtime in `program`. */
export function nodeLaunch(
  runtimesDir: string,
  program: string,
  { addon = channelAddon, packages }: NodeLaunchOptions = {},
): RuntimeLaunch {
  const guest = join(runtimesDir, 'nodejs');
  const addons = existsSync(addon) ? [addon] : [];
  const shared = packages === undefined ? [] : [{ source: join(packages, 'node_modules'), target: packagesTarget }];
  return {
    command: [program, join(guest, 'main.cjs'), zipLibrary, ...addons],
    binds: [...bindsFor([program, guest, zipLibrary, ...addons]), ...shared],
    // In a sandbox without a root of its own this is the folder of the host.
    env: packages === undefined ? {} : { NODE_PATH: packagesTarget },
    protocol: 'framed',
  };
}

/**
 * A launch of Node.js with that of its pre-warmer. The engine's own timer, of 8 s after a collection, is off there: from
 * outside it looks like one that an action left.
 */
export function withNodePair(launch: RuntimeLaunch): RuntimeLaunch {
  return withOwnPair(launch, '--no-memory-reducer');
}
