import { spawnSync } from 'node:child_process';
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const source = fileURLToPath(new URL('../../engines/stepped-clock.c', import.meta.url));

/** The wall clock of one process; the monotonic clock stays as it is. */
export interface SteppedClock {
  /** Words that precede the command of the process. */
  before: string[];
  /** Sets the clock this many seconds ahead of the machine's. */
  setAhead(seconds: number): void;
}

/** Whether a C compiler is installed, which steppedClocks needs. */
export const hasCompiler = spawnSync('cc', ['--version']).status === 0;

/** Builds, in `folder`, the library that gives processes their own wall clocks. */
export function steppedClocks(folder: string): (name: string) => SteppedClock {
  const library = join(folder, 'stepped-clock.so');
  const built = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-Wall', '-Wextra', '-Werror', '-o', library, source]);
  if (built.status !== 0) throw new Error(built.stderr.toString());
  return (name) => {
    const file = join(folder, `clock-${name}`);
    writeFileSync(file, Buffer.alloc(8));
    // Overwritten in place: the process has the file mapped.
    const setAhead = (seconds: number): void => {
      const bytes = Buffer.alloc(8);
      bytes.writeBigInt64LE(BigInt(seconds));
      const descriptor = openSync(file, 'r+');
      writeSync(descriptor, bytes, 0, 8, 0);
      closeSync(descriptor);
    };
    return { before: ['env', `LD_PRELOAD=${library}`, `STEPPED_CLOCK=${file}`], setAhead };
  };
}
