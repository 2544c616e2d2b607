import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Cleanup } from '../cleanup.js';
import { repositoryDir } from '../paths.js';

const compileTimeoutMs = 60_000;
const answerTimeoutMs = 120_000;

/** A program that answers each line with a line. */
export interface LineProgram {
  /** The numbers in its answer. Rejects if it ends, or takes too long. */
  ask(line: string): Promise<number[]>;
  end(): Promise<void>;
}

/** Starts a program with only `env`; it is ended with the run at the latest. */
export function startLineProgram(
  path: string,
  args: readonly string[],
  env: Record<string, string>,
  cleanup: Cleanup,
): LineProgram {
  const child = spawn(path, args, { stdio: ['pipe', 'pipe', 'inherit'], env });
  const closed = once(child, 'close');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const end = async (): Promise<void> => {
    child.kill('SIGKILL');
    await closed;
  };
  cleanup.add(path, end);
  return {
    async ask(line) {
      child.stdin.write(`${line}\n`);
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error(`${path} does not answer '${line}'.`)), answerTimeoutMs);
      });
      const { value, done } = await Promise.race([lines.next(), late]);
      clearTimeout(timer);
      if (done === true) throw new Error(`${path} has ended at '${line}'.`);
      return String(value).split(' ').map(Number);
    },
    end,
  };
}

/** Compiles the driver that only counts, and the program that launches on it, in `folder`. */
export function compileLauncher(folder: string): string {
  const fixture = (name: string): string => join(repositoryDir, 'test', 'fixtures', 'tokens', name);
  const compile = (...options: string[]): Buffer =>
    execFileSync('cc', ['-O2', '-pthread', ...options], { timeout: compileTimeoutMs });
  const launcher = join(folder, 'launcher');
  compile('-fPIC', '-shared', '-Wl,-soname,libcuda.so.1', fixture('fake_cuda.c'), '-o', join(folder, 'libcuda.so.1'));
  compile(fixture('client.c'), '-o', launcher, '-ldl');
  return launcher;
}
