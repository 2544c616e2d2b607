import { spawnSync } from 'node:child_process';
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const source = fileURLToPath(new URL('../../engines/stepped-clock.c', import.meta.url));

/** The clock of one process: its time of day, not the one that only goes forward. */
export interface SteppedClock {
  /** Words before its command. */
  before: string[];
  /** It is so much ahead of the machine's from now on. */
  setAhead(seconds: number): void;
}

/** Whether steppedClocks can be called. */
export const hasCompiler = spawnSync('cc', ['--version']).status === 0;

/** Builds, in `folder`, what gives processes clocks of their own. */
export function steppedClocks(folder: string): (name: string) => SteppedClock {
  const library = join(folder, 'stepped-clock.so');
  const built = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-Wall', '-Wextra', '-Werror', '-o', library, source]);
  if (built.status !== 0) throw new Error(built.stderr.toString());
  return (name) => {
    const file = join(folder, `clock-${name}`);
    writeFileSync(file, Buffer.alloc(8));
    // Written over, not replaced: the process has it mapped.
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
