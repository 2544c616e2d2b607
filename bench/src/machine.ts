import { execFile } from 'node:child_process';
import { cpus, release, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** Properties of a machine that affect figures; none of them identifies the machine. */
export interface Machine {
  model: string;
  cores: number;
  memoryMiB: number;
  kernel: string;
  node: string;
}

/** This machine. */
export function thisMachine(): Machine {
  const processors = cpus();
  return {
    model: processors[0]?.model.trim() ?? 'unknown',
    cores: processors.length,
    memoryMiB: Math.round(totalmem() / 1024 / 1024),
    kernel: release(),
    node: process.version,
  };
}

/**
 * The commit that is checked out, with `-dirty` if tracked files differ from it; `unknown` outside git. A copy that was
 * packed for another machine has its commit in BENCH_COMMIT.
 */
export async function currentCommit(): Promise<string> {
  const packed = process.env['BENCH_COMMIT'];
  if (packed !== undefined && packed !== '') return packed;
  const git = async (...args: string[]): Promise<string> => {
    const { stdout } = await promisify(execFile)('git', args, { cwd: repositoryDir, timeout: 10_000 });
    return stdout.trim();
  };
  try {
    const commit = await git('rev-parse', 'HEAD');
    const changes = await git('status', '--porcelain', '--untracked-files=no');
    return changes === '' ? commit : `${commit}-dirty`;
  } catch {
    return 'unknown';
  }
}

/** The root of the repository. */
export const repositoryDir = fileURLToPath(new URL('../../', import.meta.url));
/** This package's folder. */
export const benchDir = fileURLToPath(new URL('../', import.meta.url));
