import { createHash } from 'node:crypto';
import { chmod, mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ProvisioningError } from '../containers/container-factory.js';
import { bindsFor } from './base-view.js';
import { pythonBinds } from './find-python.js';
import type { Python } from './find-python.js';
import { fillFolder, isThere } from '../host/partial-folders.js';
import { pipSettings } from './pip-settings.js';
import { ProgramError } from '../host/run-program.js';
import { JobLimitError } from '../containers/runtime-launch.js';
import type { RunJob, SandboxJob } from '../containers/runtime-launch.js';

const installTimeoutMs = 600_000;
const maxFiles = 300_000;
/** Of the sandbox that installs; what it writes to the disk is not counted. */
const memoryMiB = 1024;
const compilers = 4;
/** In the folder that is filled, so that pip moves what it has unpacked instead of copying it. */
const scratch = '.scratch';

/** How packages are installed. */
export interface Installation {
  run: RunJob;
  /** Bytes that a set of packages may take, with what pip fetches for it. */
  maxBytes: number;
  /** The platform's data folder. */
  dataDir: string;
}

/**
 * The folder under `root` that holds the packages, and whether they were installed now. `requirements` must have
 * passed validateRequirements. Packages are resolved, fetched and unpacked in a sandbox, and only wheels are taken, so
 * nothing of them runs there. Rejects with ProvisioningError that carries pip's last line.
 */
export async function installRequirements(
  root: string,
  python: Python,
  requirements: readonly string[],
  installation: Installation,
): Promise<{ folder: string; installed: boolean }> {
  const folder = join(root, requirementsKey(python, requirements));
  try {
    const fill = (partial: string): Promise<void> => install(python, requirements, partial, folder, installation);
    return { folder, installed: await fillFolder(folder, fill) };
  } catch (error) {
    if (error instanceof JobLimitError) {
      throw new ProvisioningError(`The requirements could not be installed: ${error.message}.`);
    }
    if (!(error instanceof ProgramError)) throw error;
    throw new ProvisioningError(`The requirements could not be installed: ${error.lastLine}`);
  }
}

/** The name of the folder with these packages. */
export function requirementsKey(python: Python, requirements: readonly string[]): string {
  const parts = [python.version, python.platform, ...[...requirements].sort()];
  return createHash('sha256').update(parts.join('\n')).digest('hex');
}

async function install(
  python: Python,
  requirements: readonly string[],
  folder: string,
  target: string,
  { run, maxBytes, dataDir }: Installation,
): Promise<void> {
  await mkdir(join(folder, scratch), { mode: 0o777 });
  await chmod(join(folder, scratch), 0o777); // Whatever the umask: the sandbox has a user of its own.
  const pip = await pipSettings(python);
  const environment = dirname(dirname(python.installer));
  const own = (await isThere(join(environment, 'pyvenv.cfg'))) ? [environment] : [];
  const job: Omit<SandboxJob, 'command'> = {
    binds: [...pythonBinds(python, dataDir), ...bindsFor([...own, python.installer]), ...pip.binds],
    env: {
      ...pip.env,
      TMPDIR: join(target, scratch),
      PIP_NO_CACHE_DIR: '1',
      PIP_ROOT_USER_ACTION: 'ignore',
      PIP_NO_WARN_SCRIPT_LOCATION: '1',
    },
    ...{ folder, target, maxBytes, maxFiles, memoryMiB, timeoutMs: installTimeoutMs },
  };
  const options = ['--only-binary=:all:', '--no-compile', '--no-input', '--disable-pip-version-check', '--quiet'];
  await run({
    ...job,
    command: [python.installer, '-m', 'pip', 'install', ...options, '--target', target, '--', ...requirements],
  });
  try {
    const each = ['-m', 'compileall', '-q', '-j', String(compilers), target];
    await run({ ...job, command: [python.executable, '-I', ...each] });
  } catch (error) {
    // Some packages carry files for other versions of Python, which do not compile and are never imported.
    if (!(error instanceof ProgramError)) throw error;
  }
  await rm(join(folder, scratch), { recursive: true, force: true });
}
