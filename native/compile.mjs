// Compiling and linking, a file at a time. Objects and results are known by a digest of what they are made from.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, dirname, extname, join, relative } from 'node:path';

const root = dirname(import.meta.dirname);
const compileTimeoutMs = 180_000;
/** Unfinished files of builds that were killed are removed after this time, ms: no compiler runs as long. */
const partialKeptMs = 2 * compileTimeoutMs;
let compilerNames = { c: ['cc', 'gcc', 'clang'], cpp: ['c++', 'g++', 'clang++'] };

/** A part does not compile; `message` is one line, `output` all that the compiler said. */
export class CompileError extends Error {
  name = 'CompileError';

  constructor(message, output) {
    super(message);
    this.output = output;
  }
}

function run(command, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: compileTimeoutMs });
    const printed = { output: '', errors: '' };
    child.stdout.setEncoding('utf8').on('data', (text) => (printed.output += text));
    child.stderr.setEncoding('utf8').on('data', (text) => (printed.errors += text));
    child.on('error', reject);
    child.on('close', (status) => resolve({ status, ...printed }));
  });
}

const described = new Map();

/** What a compiler says of its version; undefined if there is none of the name, or it does not work. */
function describe(name) {
  if (!described.has(name)) {
    const asked = run(name, ['--version']).then(
      ({ status, output }) => (status === 0 ? output : undefined),
      (error) => {
        if (error.code === 'ENOENT') return undefined;
        throw error;
      },
    );
    described.set(name, asked);
  }
  return described.get(name);
}

/** Has this process compile with GCC for another machine: `aarch64-linux-gnu`. */
export function compileFor(machine) {
  compilerNames = { c: [`${machine}-gcc`], cpp: [`${machine}-g++`] };
}

/** The name of the compiler of a language ('c' or 'cpp') on PATH, or undefined. */
export async function findCompiler(language) {
  for (const name of compilerNames[language]) if ((await describe(name)) !== undefined) return name;
  return undefined;
}

/** The files of a folder that end in one of `endings`, as paths. */
export function sourcesIn(folder, ...endings) {
  return readdirSync(folder)
    .filter((name) => endings.includes(extname(name)))
    .map((name) => join(folder, name));
}

function digestOf(...parts) {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part).update('\0');
  return hash.digest('hex').slice(0, 20);
}

const contents = new Map();

/** A digest of a file's content, which is read once in this process. */
function contentOf(path) {
  if (!contents.has(path)) contents.set(path, digestOf(readFileSync(path)));
  return contents.get(path);
}

const languageOf = (source) => (extname(source) === '.cpp' ? 'cpp' : 'c');

/** The compilations and the link of a part. Paths in digests are relative: a copy of the clone has the same ones. */
async function planOf({ target, sources, headers, flags, cppFlags = () => [], linkFlags = [], compilers: given }) {
  const compilerOf = async (language) => given?.[language] ?? (await findCompiler(language));
  const kept = join(dirname(target), 'objects');
  const named = (args) => args.join('\0').replaceAll(root, '');
  const included = headers.map((path) => `${relative(root, path)} ${contentOf(path)}`).sort();
  const objects = [];
  for (const source of sources) {
    const language = languageOf(source);
    const compiler = await compilerOf(language);
    const standard = language === 'cpp' ? ['-std=c++20', ...cppFlags(source)] : ['-std=gnu11'];
    const args = [...standard, ...flags, '-c', source];
    const key = digestOf((await describe(compiler)) ?? '', named(args), contentOf(source), ...included);
    const path = join(kept, basename(dirname(source)), `${basename(source)}.${key}.o`);
    objects.push({ compiler, args, path });
  }
  const linker = await compilerOf(sources.some((source) => languageOf(source) === 'cpp') ? 'cpp' : 'c');
  const args = [...objects.map(({ path }) => path), ...linkFlags];
  const key = digestOf((await describe(linker)) ?? '', named(args));
  return { target, kept, keyFile: join(kept, `${basename(target)}.key`), key, objects, linker, args };
}

const sizeOf = (path) => statSync(path, { throwIfNoEntry: false })?.size;

/** Whether the plan's result is there, and whole: a crash of the machine can leave a file that is cut off. */
function isMade({ target, keyFile, key }) {
  const size = sizeOf(target);
  if (size === undefined || sizeOf(keyFile) === undefined) return false;
  return readFileSync(keyFile, 'utf8') === `${key} ${size}`;
}

/** Whether a part is built from its present sources. Its compilers must be there. */
export async function isCurrent(part) {
  return isMade(await planOf(part));
}

let partials = 0;

/** A place for an unfinished file, and the step that puts it at its path. */
function unfinished(kept, path) {
  const partial = join(kept, 'partial', `${process.pid}-${partials++}`);
  mkdirSync(dirname(partial), { recursive: true });
  mkdirSync(dirname(path), { recursive: true });
  return { partial, finish: () => renameSync(partial, path) };
}

async function make({ compiler, args, path, kept }) {
  const { partial, finish } = unfinished(kept, path);
  const { status, errors } = await run(compiler, [...args, '-o', partial]);
  if (status === 0) return finish();
  rmSync(partial, { force: true });
  const lines = errors.split('\n').filter((line) => line.trim() !== '');
  const took = `it took longer than ${compileTimeoutMs / 1000} s`;
  const why = lines.find((line) => /error|unrecognized|no space left/i.test(line)) ?? lines[0] ?? took;
  const name = basename(path).replace(/\.[0-9a-f]+\.o$/, '');
  throw new CompileError(`${compiler} could not build ${name}: ${why.replaceAll(`${root}/`, '').trim()}`, errors);
}

const waiting = [];
let free = availableParallelism();

/** Runs `work` when a processor is free for it, in the order of the calls. */
async function onProcessor(work) {
  if (free > 0) free--;
  else await new Promise((resolve) => waiting.push(resolve));
  try {
    return await work();
  } finally {
    const next = waiting.shift();
    if (next === undefined) free++;
    else next();
  }
}

/** Objects that this process has used, and those being compiled: parts share some. */
const used = new Set();
const underWay = new Map();

function compileObject(object, kept) {
  used.add(object.path);
  if (sizeOf(object.path) > 0) return Promise.resolve();
  if (!underWay.has(object.path)) {
    const done = onProcessor(() => make({ ...object, kept })).finally(() => underWay.delete(object.path));
    underWay.set(object.path, done);
  }
  return underWay.get(object.path);
}

/** Resolves when all have; rejects with the first failure, then. */
async function all(works) {
  const failed = (await Promise.allSettled(works)).find(({ status }) => status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

const compileObjects = ({ objects, kept }) => all(objects.map((object) => compileObject(object, kept)));

async function link(plan) {
  const { linker, args, target, kept, keyFile, key } = plan;
  await onProcessor(() => make({ compiler: linker, args, path: target, kept }));
  const { partial, finish } = unfinished(kept, keyFile);
  writeFileSync(partial, `${key} ${sizeOf(target)}`);
  finish();
}

const isDiskFull = (error) => error.code === 'ENOSPC' || /no space left/i.test(error.output ?? '');

/** Compiles a part's sources, as far as they are not compiled yet, for a later `build` in this process. */
export async function compileSources(part) {
  const plan = await planOf(part);
  if (!isMade(plan)) await compileObjects(plan);
}

/**
 * Builds `target` from `sources` and `headers` unless it is built from their present content. The language of the linker is
 * 'cpp' if any source is. `cppFlags(source)` gives further flags of a C++ source. `compilers` ({c, cpp}) are used in place of
 * those found. Rejects with CompileError if it does not compile; the compilers must be there.
 */
export async function build(part) {
  const plan = await planOf(part);
  if (isMade(plan)) {
    for (const { path } of plan.objects) used.add(path);
    return;
  }
  const earlier = plan.objects.filter(({ path }) => sizeOf(path) > 0 && !underWay.has(path));
  await compileObjects(plan);
  try {
    await link(plan);
  } catch (error) {
    // An object of an earlier build may be damaged: they are compiled again, once.
    if (earlier.length === 0 || isDiskFull(error)) throw error;
    for (const { path } of earlier) rmSync(path, { force: true });
    await compileObjects(plan);
    await link(plan);
  }
}

/** Removes objects below a folder that this process has not used, and unfinished files of builds that were killed. */
export function removeUnused(folder) {
  const paths = readdirSync(folder, { recursive: true }).map((path) => join(folder, path));
  for (const path of paths) {
    const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: Infinity };
    const isLeft = basename(dirname(path)) === 'partial' && Date.now() - mtimeMs > partialKeptMs;
    if (isLeft || (path.endsWith('.o') && !used.has(path))) rmSync(path, { force: true });
  }
}
