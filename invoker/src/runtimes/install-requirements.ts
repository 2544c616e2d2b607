import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ProvisioningError } from '../containers/container-factory.js';
import type { Python } from './find-python.js';
import { partialPrefix } from './partial-folders.js';
import { ProgramError, runProgram } from './run-program.js';

const installTimeoutMs = 600_000;

/**
 * The folder under `root` that holds the packages, and whether they were installed now. `requirements` must have
 * passed validateRequirements. Only wheels are taken, so nothing of the packages runs on the host. Rejects with
 * ProvisioningError that carries pip's last line.
 */
export async function installRequirements(
  root: string,
  python: Python,
  requirements: readonly string[],
): Promise<{ folder: string; installed: boolean }> {
  const folder = join(root, requirementsKey(python, requirements));
  if (await exists(folder)) return { folder, installed: false };
  await mkdir(root, { recursive: true });
  const partial = await mkdtemp(join(root, partialPrefix));
  try {
    await install(python, requirements, partial);
    await chmod(partial, 0o755);
    await rename(partial, folder);
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return { folder, installed: false }; // Another process was first.
    if (!(error instanceof ProgramError)) throw error;
    throw new ProvisioningError(`The requirements could not be installed: ${error.lastLine}`);
  }
  return { folder, installed: true };
}

/** The name of the folder with these packages. */
export function requirementsKey(python: Python, requirements: readonly string[]): string {
  const parts = [python.version, python.platform, ...[...requirements].sort()];
  return createHash('sha256').update(parts.join('\n')).digest('hex');
}

async function install(python: Python, requirements: readonly string[], target: string): Promise<void> {
  const options = ['--only-binary=:all:', '--no-compile', '--no-input', '--disable-pip-version-check', '--quiet'];
  await runProgram(python.installer, ['-m', 'pip', 'install', ...options, '--target', target, '--', ...requirements], {
    timeoutMs: installTimeoutMs,
    env: { ...process.env, PIP_ROOT_USER_ACTION: 'ignore', PIP_NO_WARN_SCRIPT_LOCATION: '1' },
  });
  try {
    await runProgram(python.executable, ['-I', '-m', 'compileall', '-q', '-j', '0', target], {
      timeoutMs: installTimeoutMs,
    });
  } catch (error) {
    // Some packages carry files for other versions of Python, which do not compile and are never imported.
    if (!(error instanceof ProgramError)) throw error;
  }
}

async function exists(folder: string): Promise<boolean> {
  return stat(folder).then(
    () => true,
    () => false,
  );
}
