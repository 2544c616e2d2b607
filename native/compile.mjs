// Compiling and linking, a file at a time and only what is out of date.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, dirname, extname, join } from 'node:path';

const compileTimeoutMs = 180_000;
const compilers = { c: ['cc', 'gcc', 'clang'], cpp: ['c++', 'g++', 'clang++'] };
const found = new Map();

function run(command, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], timeout: compileTimeoutMs });
    let errors = '';
    child.stderr.setEncoding('utf8').on('data', (text) => (errors += text));
    child.on('error', reject);
    child.on('close', (status) => resolve({ status, errors }));
  });
}

/** The compiler of a language ('c' or 'cpp') on PATH, or undefined. */
export async function findCompiler(language) {
  if (found.has(language)) return found.get(language);
  let compiler;
  for (const name of compilers[language]) {
    const works = await run(name, ['--version']).then(
      ({ status }) => status === 0,
      (error) => {
        if (error.code === 'ENOENT') return false;
        throw error;
      },
    );
    if (!works) continue;
    compiler = name;
    break;
  }
  found.set(language, compiler);
  return compiler;
}

/** The files of a folder that end in one of `endings`, as paths. */
export function sourcesIn(folder, ...endings) {
  return readdirSync(folder)
    .filter((name) => endings.includes(extname(name)))
    .map((name) => join(folder, name));
}

function isFresh(target, files) {
  if (!existsSync(target)) return false;
  const builtMs = statSync(target).mtimeMs;
  return files.every((file) => statSync(file).mtimeMs <= builtMs);
}

async function make(compiler, args, target) {
  mkdirSync(dirname(target), { recursive: true });
  const partial = `${target}.${process.pid}`;
  const { status, errors } = await run(compiler, [...args, '-o', partial]);
  if (status !== 0) throw new Error(`${compiler} could not build ${basename(target)}:\n${errors}`);
  renameSync(partial, target);
}

async function eachInParallel(items, work) {
  const queue = [...items];
  const workers = Array.from({ length: availableParallelism() }, async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item);
  });
  await Promise.all(workers);
}

/**
 * Builds `target` from `sources` unless it is newer than they and `headers`. The language of the linker is 'cpp' if
 * any source is; objects are shared, so that a folder is compiled with the same flags for all that it goes into.
 * `compilers` ({c, cpp}) are used in place of those found. Throws with the compiler's words if it does not compile; the
 * compilers must be there.
 */
export async function build({ target, sources, headers, flags, cppFlags = [], linkFlags = [], compilers: given }) {
  const compilerOf = async (language) => given?.[language] ?? (await findCompiler(language));
  if (isFresh(target, [...sources, ...headers])) return;
  const objects = sources.map((source) =>
    join(dirname(target), 'objects', basename(dirname(source)), `${basename(source)}.o`),
  );
  await eachInParallel(sources.keys(), async (i) => {
    const isCpp = extname(sources[i]) === '.cpp';
    if (isFresh(objects[i], [sources[i], ...headers])) return;
    const compiler = await compilerOf(isCpp ? 'cpp' : 'c');
    const standard = isCpp ? ['-std=c++20', ...cppFlags] : ['-std=gnu11'];
    await make(compiler, [...standard, ...flags, '-c', sources[i]], objects[i]);
  });
  const language = sources.some((source) => extname(source) === '.cpp') ? 'cpp' : 'c';
  await make(await compilerOf(language), [...objects, ...linkFlags], target);
}
