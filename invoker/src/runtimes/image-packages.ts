import { createHash } from 'node:crypto';
import { access, constants, copyFile, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fillFolder, isThere } from '../host/partial-folders.js';
import { ProgramError, runProgram } from '../host/programs.js';
import type { Python } from './find-toolchains.js';
import { findNpm } from './node-runtime.js';
import { compileCommand, compileReport, compilerPath, isCompiled } from './python-compiler.js';
import type { CompileReport } from './python-compiler.js';

const installTimeoutMs = 300_000;

/** A set of packages of OpenWhisk's image of a language, in pinned versions with their digests. */
export interface PackageSet {
  language: 'nodejs' | 'python';
  /** Name of the set's folder, which changes with the versions and all else that the packages depend on. */
  name: string;
  /** Fills an empty folder. Rejects with ProgramError. */
  fill(folder: string, stop: AbortSignal | undefined): Promise<void>;
  /** Compiles the modules of a folder that is filled; absent if the language needs none. Rejects with ProgramError. */
  compile?: (folder: string, stop: AbortSignal | undefined) => Promise<CompileReport>;
}

/** The packages of Node.js actions, which runtimes/nodejs/packages lists: folder `node_modules` below the set's folder. */
export async function nodePackages(runtimesDir: string): Promise<PackageSet> {
  const listed = join(runtimesDir, 'nodejs', 'packages');
  const lock = await readFile(join(listed, 'package-lock.json'));
  return {
    language: 'nodejs',
    name: `nodejs-packages-${digestOf(lock)}`,
    async fill(folder, stop) {
      for (const name of ['package.json', 'package-lock.json']) await copyFile(join(listed, name), join(folder, name));
      const options = [
        '--omit=dev',
        '--ignore-scripts',
        '--no-audit',
        '--no-fund',
        '--fetch-retries=1',
        '--loglevel=error',
      ];
      await runProgram(await findNpm(), ['ci', ...options, '--prefix', folder], {
        timeoutMs: installTimeoutMs,
        ...(stop && { stop }),
      });
    },
  };
}

/** The packages of Python actions, which runtimes/python/packages.txt lists, for one interpreter. */
export async function pythonPackages(runtimesDir: string, python: Python): Promise<PackageSet> {
  const listed = join(runtimesDir, 'python', 'packages.txt');
  const text = await readFile(listed);
  const version = python.version.replace(/\.\d+$/, '');
  return {
    language: 'python',
    name: `python-${version}-${python.platform}-packages-${digestOf(text)}`,
    async fill(folder, stop) {
      const options = [
        '--only-binary=:all:',
        '--require-hashes',
        '--no-deps',
        '--no-compile',
        '--no-input',
        '--retries=1',
      ];
      const program = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
      await runProgram(python.installer, [...program, ...options, '--target', folder, '--requirement', listed], {
        timeoutMs: installTimeoutMs,
        env: { ...process.env, PIP_ROOT_USER_ACTION: 'ignore', PIP_NO_WARN_SCRIPT_LOCATION: '1' },
        ...(stop && { stop }),
      });
    },
    async compile(folder, stop) {
      const [program, ...args] = compileCommand(python, folder);
      const options = { timeoutMs: installTimeoutMs, ...(stop && { stop }) };
      return compileReport(await runProgram(program, args, options));
    },
  };
}

/** The set's folder below one of `roots`, or undefined if no root has it. */
export async function findPackages(roots: readonly string[], { name }: PackageSet): Promise<string | undefined> {
  for (const root of roots) if (await isThere(join(root, name))) return join(root, name);
  return undefined;
}

/** Installs the set below `root` if it is missing, and resolves with its folder. Rejects with ProgramError. */
export async function installPackages(root: string, set: PackageSet, stop?: AbortSignal): Promise<string> {
  const folder = join(root, set.name);
  await fillFolder(folder, (partial) => set.fill(partial, stop));
  return folder;
}

/**
 * Compiles the modules of an installed set, unless that is done: without compiled files, every process compiles the sources at
 * each import. Resolves with the report if this call did it. Rejects with ProgramError, also if the folder is read-only.
 */
export async function compilePackages(
  folder: string,
  { compile }: PackageSet,
  stop?: AbortSignal,
): Promise<CompileReport | undefined> {
  if (compile === undefined || (await isCompiled(folder))) return undefined;
  await access(folder, constants.W_OK).catch(() => {
    throw new ProgramError(compilerPath, `'${folder}' cannot be written`);
  });
  return compile(folder, stop);
}

/** Folder of the sets that the build of a clone or a release has installed. */
export const builtPackages = (runtimesDir: string): string => join(dirname(runtimesDir), 'build', 'packages');

/**
 * Installs and compiles a set below `root`. Resolves with a line if that fails, for example without a network; the invoker
 * retries at its start.
 */
export async function installImagePackages(root: string, set: PackageSet): Promise<string | undefined> {
  try {
    await compilePackages(await installPackages(root, set), set);
    return undefined;
  } catch (error) {
    if (!(error instanceof ProgramError)) throw error;
    return `The packages ${set.name} could not be installed: ${error.lastLine}`;
  }
}

function digestOf(lock: Buffer): string {
  return createHash('sha256').update(lock).digest('hex').slice(0, 12);
}
