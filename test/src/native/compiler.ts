import { spawnSync } from 'node:child_process';
import { describe } from '@jest/globals';

const probeTimeoutMs = 20_000;
const answers = (compiler: string): boolean =>
  spawnSync(compiler, ['--version'], { timeout: probeTimeoutMs, stdio: 'ignore' }).status === 0;

/** Whether this machine has C and C++ compilers, which the build of the native parts needs, too. */
export const canCompile = answers('cc') && answers('c++');

/** A `describe` that is skipped, with a message, on a machine without compilers. */
export const withCompiler: (name: string, body: () => void) => void = canCompile
  ? describe
  : (name, body) => describe.skip(`${name} (skipped: no C compiler)`, body);
