import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  realpathSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { DockerEngine } from './docker-engine.js';

const sources = fileURLToPath(new URL('../../../native/entry', import.meta.url));

/** Path of the program in an image made here. */
export const entryInside = '/opt/gpuwhisk/entry';

/** The libraries that programs of this machine load at their start. */
function librariesOf(programs: readonly string[]): Set<string> {
  const listed = execFileSync('ldd', programs, { encoding: 'utf8' });
  // A line that names a program itself starts in the first column.
  return new Set([...listed.matchAll(/^\s+(?:\S+ => )?(\/\S+)/gm)].map(([, path = '']) => path));
}

/** Puts a file of this machine at a path of the file system in `root`. */
export function place(source: string, root: string, target = source): void {
  const to = join(root, target);
  if (existsSync(to)) return;
  mkdirSync(dirname(to), { recursive: true });
  const from = realpathSync(source);
  try {
    linkSync(from, to);
  } catch {
    // The folders are on different file systems.
    copyFileSync(from, to);
  }
}

/** Path of a program of this machine. Throws if the machine does not have the program. */
export function programPath(name: string): string {
  return execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim();
}

/** Adds programs of this machine, with the libraries that they load. */
export function addPrograms(root: string, programs: readonly string[]): void {
  for (const path of [...programs, ...librariesOf(programs)]) place(path, root);
}

/** Path of Node.js in an image made here. Its own may be below /tmp, where a container has another file system. */
export const nodeInside = '/usr/local/bin/node';

/** Makes a file system of this machine's programs, and Node.js, in `folder`. */
export function makeRoot(folder: string, programs: readonly string[]): string {
  const root = join(folder, 'root');
  for (const name of ['tmp', 'etc', 'proc', 'dev', 'run', 'usr/local/bin', 'opt/gpuwhisk']) {
    mkdirSync(join(root, name), { recursive: true });
  }
  chmodSync(join(root, 'tmp'), 0o1777);
  addPrograms(root, programs);
  for (const library of librariesOf([process.execPath])) place(library, root);
  place(process.execPath, root, nodeInside);
  execFileSync('cc', [
    '-O2',
    '-Wall',
    '-Wextra',
    '-Werror',
    '-static',
    '-o',
    join(root, entryInside),
    join(sources, 'main.c'),
  ]);
  return root;
}

/** Makes an image of a folder. `changes` are instructions of a Dockerfile. */
export async function importImage(
  engine: DockerEngine,
  name: string,
  root: string,
  changes: readonly string[],
): Promise<void> {
  const flags = changes.flatMap((change) => ['--change', change]);
  const tar = spawn('tar', ['-C', root, '--owner=0', '--group=0', '-cf', '-', '.'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const docker = spawn('docker', ['import', ...flags, '-', name], {
    stdio: [tar.stdout, 'ignore', 'inherit'],
    env: { ...process.env, DOCKER_HOST: `unix://${engine.socketPath}` },
  });
  const [[packed], [imported]] = (await Promise.all([once(tar, 'exit'), once(docker, 'exit')])) as [number[], number[]];
  if (packed !== 0 || imported !== 0) throw new Error(`The image ${name} could not be imported.`);
}

/**
 * Files of a C compiler besides its headers: programs, and the files that they link, statically or into a shared
 * object.
 */
function compilerFiles(): { programs: string[]; linked: string[] } {
  const ask = (question: string): string => execFileSync('cc', [question], { encoding: 'utf8' }).trim();
  const programs = ['cc1', 'collect2', 'as', 'ld'].map((name) => {
    const path = ask(`-print-prog-name=${name}`);
    return path.startsWith('/') ? path : programPath(path);
  });
  const names = [
    ...['crt1.o', 'crti.o', 'crtn.o', 'crtbeginT.o', 'crtend.o', 'crtbeginS.o', 'crtendS.o'],
    ...['libc.a', 'libgcc.a', 'libgcc_eh.a', 'libc_nonshared.a'],
    ...['libc.so', 'libm.so', 'libgcc_s.so', 'libgcc_s.so.1'],
  ];
  const files = names.map((name) => ask(`-print-file-name=${name}`));
  // Two of those files are linker scripts that name others, by paths that are links on this machine.
  const named = files
    .filter((path) => /\/lib[cm]\.so$/.test(path))
    .flatMap((path) => [...readFileSync(path, 'utf8').matchAll(/\/\S+/g)].map(([name]) => name));
  const linked = [...files, ...named].filter((path) => path.startsWith('/') && existsSync(path));
  return { programs: [...programs, ask('-print-file-name=liblto_plugin.so')], linked };
}

/** Adds the machine's C compiler with its headers. */
export function addCompiler(root: string): void {
  const compiler = programPath('cc');
  const { programs, linked } = compilerFiles();
  const loaded = [compiler, ...programs];
  addPrograms(root, loaded);
  for (const path of linked) place(path, root);
  const inner = execFileSync('cc', ['-print-file-name=include'], { encoding: 'utf8' }).trim();
  copyFolder(inner, root, []);
  copyFolder('/usr/include', root, ['c++', 'node', 'python3*', 'llvm*', 'unicode', 'valgrind', 'tcl*', 'X11', 'nss']);
}

/** Adds the interpreter at `home` (its prefix) of that minor version with its library, without packages. */
export function addPython(root: string, home: string, version: string): void {
  const program = join(home, 'bin', `python${version}`);
  const library = join(home, 'lib', `python${version}`);
  place(program, root);
  copyFolder(library, root, [
    'test',
    'site-packages',
    'dist-packages',
    'idlelib',
    'ensurepip',
    '__pycache__',
    'config-*',
  ]);
  mkdirSync(join(root, library, 'site-packages'), { recursive: true });
  const modules = join(library, 'lib-dynload');
  const extensions = readdirSync(modules).filter((name) => name.endsWith('.so'));
  const loaded = [program, ...extensions.map((name) => join(modules, name))];
  for (const needed of librariesOf(loaded)) place(needed, root);
}

/** Adds the JDK at `home` without sources, and the folder of its configuration. */
export function addJdk(root: string, home: string): void {
  copyFolder(
    home,
    root,
    ['jmods', 'src.zip', 'lib/src.zip', 'man', 'legal', 'docs', 'demo', 'sample'],
    ['--dereference'],
  );
  const libraries = readdirSync(join(home, 'lib')).filter((name) => name.endsWith('.so'));
  const loaded = [join('bin', 'java'), ...['server/libjvm.so', ...libraries].map((name) => join('lib', name))];
  for (const library of librariesOf(loaded.map((name) => join(home, name)))) place(library, root);
}

/** Copies a folder; `flags` are flags of the tar that reads the archive. */
function copyFolder(folder: string, root: string, except: readonly string[], flags: readonly string[] = []): void {
  const to = join(root, folder);
  mkdirSync(to, { recursive: true });
  const all = [...except.map((name) => `--exclude=./${name}`), ...flags].join(' ');
  execFileSync('sh', ['-c', `tar -C "$1" ${all} -cf - . | tar -C "$2" -xf -`, 'copy', realpathSync(folder), to]);
}
