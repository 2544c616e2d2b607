import { basename, join } from 'node:path';
import type { RuntimeLaunch } from '../containers/runtime-launch.js';
import { findOnPath, ProgramError, runProgram } from '../host/run-program.js';
import { loopLaunch } from './proxy-runtime.js';

/** An interpreter of the machine whose actions are run by a launcher of ours that speaks the action loop. */
export interface Interpreter {
  family: 'ruby' | 'php';
  program: string;
  /** Such as `3.1`. */
  version: string;
}

const askTimeoutMs = 10_000;
const languages = {
  ruby: { oldest: 2.7, ask: ['-e', 'print RUBY_VERSION'], source: 'main__.rb', launcher: 'launcher.rb' },
  php: { oldest: 8, ask: ['-r', 'echo PHP_VERSION;'], source: 'main__.php', launcher: 'launcher.php' },
} as const;

/** The interpreter on PATH, if it is new enough. Asks it only where its file's name does not say its version. */
export async function findInterpreter(family: Interpreter['family'], path: string): Promise<Interpreter | undefined> {
  const { oldest, ask } = languages[family];
  for (const program of await findOnPath(family, path)) {
    const version = /(\d+\.\d+)$/.exec(basename(program))?.[1] ?? (await askVersion(program, ask, path));
    if (version !== undefined && Number(version) >= oldest) return { family, program, version };
  }
  return undefined;
}

async function askVersion(program: string, ask: readonly string[], path: string): Promise<string | undefined> {
  try {
    const text = await runProgram(program, ask, { timeoutMs: askTimeoutMs, env: { PATH: path } });
    return /^(\d+\.\d+)/.exec(text)?.[1];
  } catch (error) {
    if (error instanceof ProgramError) return undefined;
    throw error;
  }
}

/** How to start the proxy (in Node.js `node`) with the language's launcher. */
export function interpreterLaunch(runtimesDir: string, node: string, found: Interpreter): RuntimeLaunch {
  const { source, launcher } = languages[found.family];
  const folder = join(runtimesDir, found.family);
  return loopLaunch(runtimesDir, node, {
    kind: `${found.family}:${found.version}`,
    sourceFile: source,
    command: [found.program, join(folder, launcher)],
    needs: [found.program, folder],
  });
}
