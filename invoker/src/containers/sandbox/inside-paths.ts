// Paths of a launch as a sandbox sees them: without the names of the host's folders, which would stand in functions' errors.
import { join } from 'node:path';
import { installationFolder } from '../../host/native-programs.js';
import { isWithin } from '../runtime-launch.js';
import type { RuntimeLaunch } from '../runtime-launch.js';

/** Folders of a data folder that functions see, and their place in a sandbox. */
const ofData = { runtimes: '/runtimes', requirements: '/requirements' } as const;
/** The place of the installation. */
const ofInstallation = '/gpuwhisk';

/** The place in a sandbox for a path of the host; undefined for paths that keep theirs. */
function placeOf(path: string, dataDir: string, installation: string): string | undefined {
  // The data folder may lie in the installation's.
  if (isWithin(path, dataDir)) {
    const found = Object.entries(ofData).find(([name]) => isWithin(path, join(dataDir, name)));
    return found && found[1] + path.slice(join(dataDir, found[0]).length);
  }
  return isWithin(path, installation) ? ofInstallation + path.slice(installation.length) : undefined;
}

/**
 * The launch with its places in a sandbox as paths: files of the installation, and packages and runtimes in the data folder, have
 * other ones than on the host. A launch that keeps its paths is returned as it is.
 */
export function insideLaunch(
  launch: RuntimeLaunch,
  dataDir: string,
  installation: string = installationFolder,
): RuntimeLaunch {
  if (launch.keepsPaths) return launch;
  const moves = new Map<string, string>();
  const binds = launch.binds.map((bind) => {
    const place = bind.source === bind.target ? placeOf(bind.source, dataDir, installation) : undefined;
    if (place === undefined) return bind;
    moves.set(bind.source, place);
    return { ...bind, target: place };
  });
  const moved = (path: string): string => {
    for (const [from, place] of moves) if (isWithin(path, from)) return place + path.slice(from.length);
    return path;
  };
  const env = Object.entries(launch.env).map(([name, value]) => [name, value.split(':').map(moved).join(':')]);
  return {
    ...launch,
    command: launch.command.map(moved),
    binds,
    env: Object.fromEntries(env) as Record<string, string>,
  };
}
