import { createHash } from 'node:crypto';
import { copyFile, readdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { ProvisioningError } from '../containers/container-factory.js';
import { bindsFor, withOwnPair } from '../containers/runtime-launch.js';
import type { RuntimeLaunch } from '../containers/runtime-launch.js';
import { fillFolder, isThere, partialPrefix } from '../host/partial-folders.js';
import { findOnPath, ProgramError, runProgram } from '../host/programs.js';
import { removeTree } from '../host/trees.js';
import type { Jdk } from './find-toolchains.js';

const compileTimeoutMs = 60_000;
const fetchTimeoutMs = 120_000;
const firstHeapMiB = 16;
/**
 * The library of JsonObject, the type of actions' arguments and results; on the class path as in OpenWhisk's Java runtime.
 */
const gson = 'com.google.code.gson:gson:2.10.1';
/** Paths of gson in Debian's and Fedora's packages. */
const systemGson = ['/usr/share/java/gson.jar', '/usr/share/java/google-gson/gson.jar'];
/** Packages of java.base that are opened for the descriptor, the environment, and the state that an unload restores. */
const opened = ['java.io', 'java.util', 'java.lang', 'java.net', 'java.security'].map(
  (name) => `--add-opens=java.base/${name}=ALL-UNNAMED`,
);

/** Whether gson is installed, or can be fetched by the machine's Maven. */
export async function canHaveGson(path: string): Promise<boolean> {
  return (await firstExisting(systemGson)) !== undefined || (await findOnPath('mvn', path)).length > 0;
}

/**
 * The folder under `root` with the compiled runtime, gson and an archive of their loaded classes; made now if it is missing.
 * `guest` is the folder of the sources. Rejects with ProvisioningError.
 */
export async function prepareJava(root: string, guest: string, jdk: Jdk): Promise<string> {
  const sources = (await readdir(join(guest, 'gpuwhisk'))).sort().map((name) => join(guest, 'gpuwhisk', name));
  const folder = join(root, `java-${jdk.major}-${await keyOf(jdk, sources)}`);
  const archive = join(folder, 'classes.jsa');
  if (await isThere(archive)) return folder;
  try {
    await fillFolder(folder, (partial) => compile(partial, jdk, sources));
    // The archive contains the paths of the classes, so it is made in place.
    const partial = join(folder, `${partialPrefix}${process.pid}.jsa`);
    await runProgram(
      join(jdk.home, 'bin', 'java'),
      [...flags(folder, jdk), `-XX:ArchiveClassesAtExit=${partial}`, 'gpuwhisk.Runtime', '--warm'],
      { timeoutMs: compileTimeoutMs },
    );
    await rename(partial, archive);
  } catch (error) {
    if (!(error instanceof ProgramError)) throw error;
    throw new ProvisioningError(`The Java runtime could not be made: ${error.lastLine}`);
  }
  return folder;
}

/** The version that the runtime's sources are written for. */
const sourcesJdk = 17;

async function compile(folder: string, jdk: Jdk, sources: string[]): Promise<void> {
  const library = join(folder, 'gson.jar');
  await provideGson(folder, library);
  const classes = join(folder, 'classes');
  // Later compilers warn of more.
  const checks = jdk.major === sourcesJdk ? ['-Xlint:all', '-Werror'] : [];
  const javac = ['-d', classes, '-cp', library, ...checks, '-encoding', 'UTF-8', ...sources];
  await runProgram(join(jdk.home, 'bin', 'javac'), javac, { timeoutMs: compileTimeoutMs });
  // Archived classes come from JARs only.
  const jar = ['--create', '--file', join(folder, 'runtime.jar'), '-C', classes, '.'];
  await runProgram(join(jdk.home, 'bin', 'jar'), jar, { timeoutMs: compileTimeoutMs });
  await removeTree(classes);
}

async function provideGson(folder: string, target: string): Promise<void> {
  const installed = await firstExisting(systemGson);
  if (installed !== undefined) return copyFile(installed, target);
  const goal = 'org.apache.maven.plugins:maven-dependency-plugin:copy';
  const options = [`-Dartifact=${gson}`, `-DoutputDirectory=${folder}`, '-Dmdep.stripVersion=true'];
  await runProgram('mvn', ['-q', '-B', goal, ...options], { timeoutMs: fetchTimeoutMs });
}

function flags(folder: string, { major }: Jdk): string[] {
  return [
    '-Xshare:auto',
    '-XX:-UsePerfData',
    '-XX:+UseSerialGC',
    '-Dfile.encoding=UTF-8',
    '-Dstdout.encoding=UTF-8',
    '-Dstderr.encoding=UTF-8',
    ...opened,
    // Later JVMs print notes on the archive of classes, and on native libraries, where functions print.
    ...(major > sourcesJdk ? ['-Xlog:disable'] : []),
    ...(major >= 22 ? ['--enable-native-access=ALL-UNNAMED'] : []),
    '-cp',
    classPath(folder),
  ];
}

function classPath(folder: string): string {
  return [join(folder, 'runtime.jar'), join(folder, 'gson.jar')].join(':');
}

/** The launch of the runtime in a sandbox of `memoryMiB`, half of which is the heap. */
export function javaLaunch(folder: string, jdk: Jdk, memoryMiB: number): RuntimeLaunch {
  const heapMiB = Math.floor(memoryMiB / 2);
  // A small initial heap keeps a pre-warmer small: memory that garbage has used is never returned.
  const sizes = [`-Xms${Math.min(heapMiB, firstHeapMiB)}m`, `-Xmx${heapMiB}m`];
  const heap = [...sizes, `-XX:SharedArchiveFile=${join(folder, 'classes.jsa')}`];
  return {
    command: [join(jdk.home, 'bin', 'java'), ...heap, ...flags(folder, jdk), 'gpuwhisk.Runtime'],
    binds: bindsFor([jdk.home, folder]),
    env: {},
    protocol: 'framed',
    // The archive of classes has the paths of their files.
    keepsPaths: true,
  };
}

/**
 * A launch of Java with its pair. The pair's compiler threads all start at once: a later one would look to the check of
 * unloads like a thread that an action left.
 */
export function withJavaPair(launch: RuntimeLaunch): RuntimeLaunch {
  return withOwnPair(launch, '-XX:-UseDynamicNumberOfCompilerThreads');
}

async function keyOf(jdk: Jdk, sources: string[]): Promise<string> {
  const hash = createHash('sha256').update(`${jdk.home} ${jdk.version} ${gson}`);
  for (const source of sources) hash.update(await readFile(source));
  return hash.digest('hex').slice(0, 12);
}

async function firstExisting(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) if (await isThere(path)) return path;
  return undefined;
}
