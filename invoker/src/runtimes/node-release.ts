import { chmod, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ProvisioningError } from '../containers/container-factory.js';
import { ProgramError, runProgram } from '../host/run-program.js';
import { isThere, partialPrefix } from '../host/partial-folders.js';

const fetchTimeoutMs = 300_000;
const versionTimeoutMs = 10_000;

/**
 * The Node.js program of a major version under `root`, fetched from the npm registry if it is not there: package
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
    await rm(folder, { recursive: true, force: true });
    await rename(fetched, folder);
    return program;
  } catch (error) {
    if (!(error instanceof ProgramError)) throw error;
    throw new ProvisioningError(`Node.js ${major} could not be fetched: ${error.lastLine}`);
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
}

async function verify(program: string, major: number): Promise<void> {
  const version = (await runProgram(program, ['--version'], { timeoutMs: versionTimeoutMs })).trim();
  if (version.startsWith(`v${major}.`)) return;
  throw new ProvisioningError(`Node.js ${major} could not be fetched: the package holds ${version}.`);
}

/** npm as it came with this Node.js, or the one on the PATH. */
export async function findNpm(): Promise<string> {
  const own = join(dirname(process.execPath), 'npm');
  return (await isThere(own)) ? own : 'npm';
}
