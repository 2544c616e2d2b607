// Builds the native parts with the C compiler found on PATH. Without one the platform starts with less isolation.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const sources = join(here, 'sandbox');
const target = join(here, 'build', 'sandbox');
const compileTimeoutMs = 120_000;

function isFresh(files) {
  if (!existsSync(target)) return false;
  const builtMs = statSync(target).mtimeMs;
  return files.every((file) => statSync(file).mtimeMs <= builtMs);
}

/**
 * Compiles native/sandbox into native/build/sandbox unless that is up to date.
 * Returns whether the binary is there; `note` is a plain line about what is missing. Throws if the source does
 * not compile.
 */
export function buildNative() {
  if (process.platform !== 'linux') {
    return { built: false, note: `Functions run without isolation: there is no sandbox for ${process.platform}.` };
  }
  const names = readdirSync(sources);
  const files = names.filter((name) => name.endsWith('.c')).map((name) => join(sources, name));
  if (isFresh([...files, join(sources, 'sandbox.h')])) return { built: true };
  const flags = ['-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror', '-D_FORTIFY_SOURCE=2', '-fstack-protector-strong'];
  mkdirSync(dirname(target), { recursive: true });
  for (const compiler of ['cc', 'gcc', 'clang']) {
    const partial = `${target}.${process.pid}`;
    const run = spawnSync(compiler, [...flags, '-o', partial, ...files], {
      encoding: 'utf8',
      timeout: compileTimeoutMs,
    });
    if (run.error?.code === 'ENOENT') continue;
    if (run.error) throw run.error;
    if (run.status !== 0) throw new Error(`${compiler} could not build the sandbox:\n${run.stderr}`);
    renameSync(partial, target);
    return { built: true };
  }
  return {
    built: false,
    note: 'Functions run without isolation: no C compiler (cc, gcc, clang) to build the sandbox.',
  };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { built, note } = buildNative();
  console.log(note ?? (built ? 'The native parts are up to date.' : 'The native parts were not built.'));
}
