import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, realpath, rename } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { ConfigError } from '@gpuwhisk/common/config';
import { ProvisioningError } from '../containers/container-factory.js';
import { bindsFor, withOwnPair } from '../containers/runtime-launch.js';
import type { RuntimeLaunch } from '../containers/runtime-launch.js';
import { builtPath } from '../host/native-programs.js';
import { findOnPath, ProgramError, runProgram } from '../host/programs.js';
import { removeTree } from '../host/trees.js';
import { isThere, partialPrefix } from '../host/partial-folders.js';

/** Folder of the package by which guest code unpacks archives. */
export const zipLibrary = dirname(createRequire(import.meta.url).resolve('adm-zip/package.json'));

/** The addon with the Node.js runtime's end of its socket. */
export const channelAddon = builtPath('channel.node');

/** Path in a sandbox of packages that belong to no action; Node.js searches it last, for `require` and `import`. */
const packagesTarget = '/node_modules';

/** The npm packages of an archive that does not bring them. */
export interface InstalledPackages {
  /** Their folder node_modules. */
  installed?: string;
  /** Why they could not be installed. */
  notInstalled?: string;
}

/** Options of a Node.js runtime. */
interface NodeLaunchOptions extends InstalledPackages {
  /** The addon by which the runtime reads and writes its socket; without the file, it uses Node's streams. */
  addon?: string;
  /** A folder whose `node_modules` every action finds after its own packages. */
  packages?: string | undefined;
}

/** The launch of the Node.js runtime in `program`. */
export function nodeLaunch(
  runtimesDir: string,
  program: string,
  { addon = channelAddon, packages, installed, notInstalled }: NodeLaunchOptions = {},
): RuntimeLaunch {
  const guest = join(runtimesDir, 'nodejs');
  const addons = existsSync(addon) ? [addon] : [];
  const folder = packages && join(packages, 'node_modules');
  const shared = folder === undefined ? [] : [{ source: folder, target: packagesTarget }];
  // Named in the command, so that the folder is seen to be in use also where it is no mount.
  const own = installed === undefined ? [] : [installed];
  return {
    command: [program, join(guest, 'main.cjs'), zipLibrary, addons[0] ?? '', ...own],
    binds: [...bindsFor([program, guest, zipLibrary, ...addons, ...own.map((each) => dirname(each))]), ...shared],
    env: {
      // In a sandbox without a private root, this becomes the folder of the host.
      ...(folder !== undefined && { NODE_PATH: packagesTarget }),
      ...(notInstalled !== undefined && { GPUWHISK_NOT_INSTALLED: notInstalled }),
    },
    protocol: 'framed',
    ...(folder !== undefined && { sharedModules: { language: 'nodejs', folders: [folder] } }),
  };
}

/**
 * A launch of Node.js with its pair. The pair has the engine's timer of 8 s after a collection off: it would look to the
 * check of unloads like a timer that an action left.
 */
export function withNodePair(launch: RuntimeLaunch): RuntimeLaunch {
  return withOwnPair(launch, '--no-memory-reducer');
}

/** The major version of this Node.js. */
export const ownMajor = Number.parseInt(process.versions.node, 10);

/**
 * Programs of these major versions of Node.js: those of `paths`, and those on the PATH but of this version that are named by their version, such as
 * `node24` or `node-24`. Rejects with ConfigError for a path that is no Node.js of its version.
 */
export async function findNodes(
  majors: readonly number[],
  paths: Readonly<Record<string, string>>,
  path: string,
): Promise<Map<number, string>> {
  const found = new Map<number, string>();
  await Promise.all(
    majors.map(async (major) => {
      const given = paths[String(major)];
      if (given === undefined && major === ownMajor) return;
      const names = [`node${major}`, `node-${major}`];
      const [program] =
        given === undefined ? (await Promise.all(names.map((name) => findOnPath(name, path)))).flat() : [given];
      if (program === undefined) return;
      const version = await versionOf(program);
      if (version?.startsWith(`v${major}.`) === true) found.set(major, await realpath(program));
      else if (given !== undefined) {
        const what = version === undefined ? 'no Node.js that answers' : `Node.js ${version}`;
        throw new ConfigError(`'runtimePaths' has '${program}' for 'nodejs:${major}', which is ${what}.`);
      }
    }),
  );
  return found;
}

/** The version that a program of Node.js tells, such as `v24.1.0`; undefined if it is none. */
async function versionOf(program: string): Promise<string | undefined> {
  try {
    const told = await runProgram(program, ['--version'], { timeoutMs: versionTimeoutMs });
    return /^v\d+\.\d+\.\d+\S*/.exec(told)?.[0];
  } catch (error) {
    if (error instanceof ProgramError) return undefined;
    throw error;
  }
}

const fetchTimeoutMs = 300_000;
const versionTimeoutMs = 10_000;

/**
 * The Node.js program of a major version under `root`. If it is missing, it is fetched from the npm registry: package
 * `node-<platform>-<arch>`, newest release of that major, without its scripts. `npm` is the program to call; `stop` ends it.
 * Rejects with ProvisioningError.
 */
export async function fetchNodeRelease(
  root: string,
  major: number,
  { npm, stop }: { npm?: string; stop?: AbortSignal } = {},
): Promise<string> {
  const folder = join(root, `nodejs-${major}`);
  const program = join(folder, 'bin', 'node');
  if (await isThere(program)) return program;
  await mkdir(root, { recursive: true });
  const partial = await mkdtemp(join(root, partialPrefix));
  const name = `node-${process.platform}-${process.arch}`;
  try {
    const options = [
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      '--no-package-lock',
      '--no-save',
      '--loglevel=error',
    ];
    await runProgram(npm ?? (await findNpm()), ['install', ...options, '--prefix', partial, `${name}@${major}`], {
      timeoutMs: fetchTimeoutMs,
      ...(stop && { stop }),
    });
    const fetched = join(partial, 'node_modules', name);
    await verify(join(fetched, 'bin', 'node'), major);
    await chmod(fetched, 0o755);
    await removeTree(folder);
    await rename(fetched, folder);
    return program;
  } catch (error) {
    if (!(error instanceof ProgramError)) throw error;
    throw new ProvisioningError(`Node.js ${major} could not be fetched: ${error.lastLine}`);
  } finally {
    await removeTree(partial);
  }
}

async function verify(program: string, major: number): Promise<void> {
  const version = (await runProgram(program, ['--version'], { timeoutMs: versionTimeoutMs })).trim();
  if (version.startsWith(`v${major}.`)) return;
  throw new ProvisioningError(`Node.js ${major} could not be fetched: the package holds ${version}.`);
}

/** The npm of this Node.js installation, or the one on the PATH. */
export async function findNpm(): Promise<string> {
  const own = join(dirname(process.execPath), 'npm');
  return (await isThere(own)) ? own : 'npm';
}
