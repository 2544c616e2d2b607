import { readFile, realpath } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { kindsOf } from '@gpuwhisk/common/runtimes';
import type { RuntimeManifest } from '@gpuwhisk/common/runtimes';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { ProvisioningError } from '../containers/container-factory.js';
import { bindsFor } from './base-view.js';
import { findPython, minorOf, pythonBinds } from './find-python.js';
import type { Python } from './find-python.js';
import { fitManifest } from './fit-manifest.js';
import { installRequirements } from './install-requirements.js';
import { fetchNodeRelease } from './node-release.js';
import { removeAbandoned } from './partial-folders.js';
import type { RuntimeCatalog, RuntimeLaunch } from './runtime-catalog.js';
import { SharedWork } from './shared-work.js';

const failureKeptMs = 30_000;

/** What createRuntimeCatalog needs. */
export interface RuntimeCatalogOptions {
  /** Folder `runtimes` of the repository: guest code and runtimes.json. */
  runtimesDir: string;
  /** Where fetched releases and packages are kept: `runtimes/` and `requirements/` in it. */
  dataDir: string;
  clock: Clock;
  logger?: { info(message: string): void };
  /** Where to look for Python; the process's own environment if absent. */
  env?: NodeJS.ProcessEnv;
}

/** Finds the runtimes of this machine: the platform's own Node.js, and Python. Fetches and installs nothing yet. */
export async function createRuntimeCatalog(options: RuntimeCatalogOptions): Promise<RuntimeCatalog> {
  const runtimesDir = resolve(options.runtimesDir);
  const dataDir = resolve(options.dataDir);
  const releasesDir = join(dataDir, 'runtimes');
  const requirementsDir = join(dataDir, 'requirements');
  const [manifestText, python] = await Promise.all([
    readFile(join(runtimesDir, 'runtimes.json'), 'utf8'),
    findPython(join(releasesDir, 'python.json'), options.env),
    removeAbandoned(releasesDir, options.clock),
    removeAbandoned(requirementsDir, options.clock),
  ]);
  const ownMajor = Number(process.versions.node.split('.')[0]);
  const manifest = fitManifest(JSON.parse(manifestText) as RuntimeManifest, {
    nodeMajor: ownMajor,
    ...(python ? { pythonMinor: minorOf(python) } : {}),
  });
  const kinds = new Set(kindsOf(manifest));
  const launches = new SharedWork<RuntimeLaunch>(options.clock, failureKeptMs);
  const info = (message: string): void => options.logger?.info(message);

  async function launchNode(major: number): Promise<RuntimeLaunch> {
    if (major === ownMajor) return nodeLaunch(runtimesDir, await realpath(process.execPath));
    info(`Node.js ${major} is fetched for actions, once, if it is not there.`);
    return nodeLaunch(runtimesDir, await fetchNodeRelease(releasesDir, major));
  }

  async function launchPython(found: Python, requirements: readonly string[]): Promise<RuntimeLaunch> {
    if (requirements.length === 0) return pythonLaunch(runtimesDir, dataDir, found);
    info(`Python packages are installed for actions, once, if they are not there: ${requirements.join(' ')}`);
    const packages = await installRequirements(requirementsDir, found, requirements);
    return pythonLaunch(runtimesDir, dataDir, found, packages);
  }

  return {
    manifest,
    notes: python ? [] : ['Python 3.8 or newer was not found: python actions are not available.'],
    supports: (kind) => kinds.has(kind),
    launch(kind, requirements) {
      if (!kinds.has(kind))
        return Promise.reject(new ProvisioningError(`The runtime '${kind}' is not available here.`));
      const [family, version] = kind.split(':');
      if (family === 'nodejs') return launches.do(kind, () => launchNode(Number(version)));
      if (family === 'python' && python) {
        return launches.do(`${kind} ${requirements.join(' ')}`, () => launchPython(python, requirements));
      }
      return Promise.reject(new ProvisioningError(`There is no runtime for '${kind}'.`));
    },
  };
}

function nodeLaunch(runtimesDir: string, program: string): RuntimeLaunch {
  const guest = join(runtimesDir, 'nodejs');
  const zipLibrary = dirname(createRequire(import.meta.url).resolve('adm-zip/package.json'));
  return {
    command: [program, join(guest, 'main.cjs'), zipLibrary],
    binds: bindsFor([program, guest, zipLibrary]),
    env: {},
    protocol: 'framed',
  };
}

function pythonLaunch(runtimesDir: string, dataDir: string, python: Python, packages?: string): RuntimeLaunch {
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
