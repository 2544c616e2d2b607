import { createHash } from 'node:crypto';
import { copyFile, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ProvisioningError } from '../containers/container-factory.js';
import { bindsFor, withOwnPair } from '../containers/runtime-launch.js';
import type { RuntimeLaunch } from '../containers/runtime-launch.js';
import { fillFolder, isThere, partialPrefix } from '../host/partial-folders.js';
import { findOnPath, ProgramError, runProgram } from '../host/programs.js';
import type { Jdk } from './find-toolchains.js';

const compileTimeoutMs = 60_000;
const fetchTimeoutMs = 120_000;
const firstHeapMiB = 16;
/** The library whose JsonObject actions take and return; OpenWhisk's Java runtime has it on the class path, too. */
const gson = 'com.google.code.gson:gson:2.10.1';
/** Where Debian's and Fedora's packages put it. */
const systemGson = ['/usr/share/java/gson.jar', '/usr/share/java/google-gson/gson.jar'];
/** Of java.base: for the descriptor, the environment, and what is put back when an action is unloaded. */
const opened = ['java.io', 'java.util', 'java.lang', 'java.net', 'java.security'].map(
  (name) => `--add-opens=java.base/${name}=ALL-UNNAMED`,
);

/** Whether gson is installed, or can be fetched by the machine's Maven. */
export async function canHaveGson(path: string): Promise<boolean> {
  return (await firstExisting(systemGson)) !== undefined || (await findOnPath('mvn', path)).length > 0;
}

/**
 * The folder under `root` with the compiled runtime, gson and an archive of their loaded classes, made now if it is
 * not there. `guest` holds the sources. Rejects with ProvisioningError.
 */
export async function prepareJava(root: string, guest: string, jdk: Jdk): Promise<string> {
  const sources = (await readdir(join(guest, 'gpuwhisk'))).sort().map((name) => join(guest, 'gpuwhisk', name));
  const folder = join(root, `java-${jdk.major}-${await keyOf(jdk, sources)}`);
  const archive = join(folder, 'classes.jsa');
  if (await isThere(archive)) return folder;
  try {
    await fillFolder(folder, (partial) => compile(partial, jdk, sources));
    // The archive remembers where the classes lay, so it is made in place.
    const partial = join(folder, `${partialPrefix}${process.pid}.jsa`);
    await runProgram(
      join(jdk.home, 'bin', 'java'),
      [...flags(folder), `-XX:ArchiveClassesAtExit=${partial}`, 'gpuwhisk.Runtime', '--warm'],
      { timeoutMs: compileTimeoutMs },
    );
    await rename(partial, archive);
  } catch (error) {
    if (!(error instanceof ProgramError)) throw error;
    throw new ProvisioningError(`The Java runtime could not be made: ${error.lastLine}`);
  }
  return folder;
}

async function compile(folder: string, jdk: Jdk, sources: string[]): Promise<void> {
  const library = join(folder, 'gson.jar');
  await provideGson(folder, library);
  const classes = join(folder, 'classes');
  const javac = ['-d', classes, '-cp', library, '-Xlint:all', '-Werror', '-encoding', 'UTF-8', ...sources];
  await runProgram(join(jdk.home, 'bin', 'javac'), javac, { timeoutMs: compileTimeoutMs });
  // Archived classes come from JARs only.
  const jar = ['--create', '--file', join(folder, 'runtime.jar'), '-C', classes, '.'];
  await runProgram(join(jdk.home, 'bin', 'jar'), jar, { timeoutMs: compileTimeoutMs });
  await rm(classes, { recursive: true });
}

async function provideGson(folder: string, target: string): Promise<void> {
  const installed = await firstExisting(systemGson);
  if (installed !== undefined) return copyFile(installed, target);
  const goal = 'org.apache.maven.plugins:maven-dependency-plugin:copy';
  const options = [`-Dartifact=${gson}`, `-DoutputDirectory=${folder}`, '-Dmdep.stripVersion=true'];
  await runProgram('mvn', ['-q', '-B', goal, ...options], { timeoutMs: fetchTimeoutMs });
}

function flags(folder: string): string[] {
  return [
    '-Xshare:auto',
    '-XX:-UsePerfData',
    '-XX:+UseSerialGC',
    '-Dfile.encoding=UTF-8',
    '-Dstdout.encoding=UTF-8',
    '-Dstderr.encoding=UTF-8',
    ...opened,
    '-cp',
    classPath(folder),
  ];
}

function classPath(folder: string): string {
  return [join(folder, 'runtime.jar'), join(folder, 'gson.jar')].join(':');
}

/** How to start the runtime in a sandbox of `memoryMiB`, half of which the action's objects may take. */
export function javaLaunch(folder: string, jdk: Jdk, memoryMiB: number): RuntimeLaunch {
  const heapMiB = Math.floor(memoryMiB / 2);
  // Starting small keeps a pre-warmer small: what was used once for garbage is never given back.
  const sizes = [`-Xms${Math.min(heapMiB, firstHeapMiB)}m`, `-Xmx${heapMiB}m`];
  const heap = [...sizes, `-XX:SharedArchiveFile=${join(folder, 'classes.jsa')}`];
  return {
    command: [join(jdk.home, 'bin', 'java'), ...heap, ...flags(folder), 'gpuwhisk.Runtime'],
    binds: bindsFor([jdk.home, folder]),
    env: {},
    protocol: 'framed',
  };
}

/**
 * A launch of Java with that of its pre-warmer, whose compiler threads are there from the start: one that comes later looks
 * from outside like one that an action left.
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
