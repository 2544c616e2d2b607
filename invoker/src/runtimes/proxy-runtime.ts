// Runtimes that are started by the proxy in Node.js (executables, action loops, builds), and those that speak HTTP
// themselves.
import { existsSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { join, isAbsolute, basename } from 'node:path';
import type { RuntimeEntry } from '@gpuwhisk/common/runtimes';
import { bindsFor } from '../containers/runtime-launch.js';
import type { RuntimeLaunch } from '../containers/runtime-launch.js';
import { channelAddon, zipLibrary } from './node-runtime.js';
import { findOnPath, ProgramError, runProgram } from '../host/programs.js';

/** The image whose actions are executables. */
export const executableKind = 'blackbox:openwhisk/dockerskeleton';

const imagePrefix = 'blackbox:';
const executableImage = /^(docker\.io\/)?openwhisk\/dockerskeleton(:[^/]*)?$/;

/** The kind of an image's actions. */
export function kindOfImage(image: string): string {
  return `${imagePrefix}${image}`;
}

/** The image of a kind that kindOfImage gave; undefined for other kinds. */
export function imageOfKind(kind: string): string | undefined {
  return kind.startsWith(imagePrefix) ? kind.slice(imagePrefix.length) : undefined;
}

/** Whether the kind's actions are executables, for any tag of the image. */
export function isExecutableKind(kind: string): boolean {
  return executableImage.test(imageOfKind(kind) ?? '');
}

/** The launch of the proxy (in Node.js `program`) that runs an action's executable once per run. */
export function executableLaunch(runtimesDir: string, program: string): RuntimeLaunch {
  return proxyLaunch(runtimesDir, program, [executableKind, 'executable']);
}

/**
 * The launch of the proxy for a program that speaks the action loop: `command`, or the action's own `exec` if `command` is
 * empty. Source that is no archive goes into `sourceFile`.
 */
export function loopLaunch(
  runtimesDir: string,
  program: string,
  loop: { kind: string; sourceFile: string; command: readonly string[]; needs: readonly string[] },
): RuntimeLaunch {
  return buildLaunch(runtimesDir, program, { ...loop, style: 'loop' });
}

/** The launch of the proxy for a build, in a named style of runtimes/proxy/main.cjs. */
export function buildLaunch(
  runtimesDir: string,
  program: string,
  build: { kind: string; style: string; sourceFile: string; command: readonly string[]; needs: readonly string[] },
): RuntimeLaunch {
  const launch = proxyLaunch(runtimesDir, program, [build.kind, build.style, build.sourceFile, ...build.command]);
  // With the addon a builder hides its descriptors from the compiler, which has the action's source.
  const hides = build.style.startsWith('build-') && existsSync(channelAddon);
  return {
    ...launch,
    binds: [...launch.binds, ...bindsFor(hides ? [...build.needs, channelAddon] : build.needs)],
    env: hides ? { ...launch.env, GPUWHISK_CHANNEL: channelAddon } : launch.env,
  };
}

function proxyLaunch(runtimesDir: string, program: string, words: readonly string[]): RuntimeLaunch {
  const guests = ['proxy', 'nodejs'].map((name) => join(runtimesDir, name));
  return {
    command: [program, join(runtimesDir, 'proxy', 'main.cjs'), zipLibrary, ...words],
    binds: bindsFor([program, ...guests, zipLibrary]),
    env: {},
    protocol: 'framed',
  };
}

/**
 * The launch of a server of `/init` and `/run` that the manifest gives as a command. The server sees the files named in the
 * command.
 */
export async function commandLaunch({ command, binds, env }: RuntimeEntry): Promise<RuntimeLaunch> {
  const words = command ?? [];
  const named: string[] = [];
  for (const word of words.filter((each) => isAbsolute(each))) {
    const found = await access(word).then(
      () => true,
      () => false,
    );
    if (found) named.push(word);
  }
  return {
    command: words,
    binds: bindsFor([...named, ...(binds ?? [])]),
    env: env ?? {},
    protocol: 'http',
    keepsPaths: true,
  };
}

/** The languages with an interpreter: how its version is found, and its guest in the language's folder of `runtimes`. */
const languages = {
  ruby: { oldest: 2.7, ask: ['-e', 'print RUBY_VERSION'], source: 'main__.rb', launcher: 'launcher.rb' },
  php: { oldest: 8, ask: ['-r', 'echo PHP_VERSION;'], source: 'main__.php', launcher: 'launcher.php' },
} as const;

/** The families of these languages. */
export const interpreterFamilies = Object.keys(languages) as (keyof typeof languages)[];

/** An interpreter of the machine; the platform's launcher runs its actions and speaks the action loop. */
export interface Interpreter {
  family: keyof typeof languages;
  program: string;
  /** Such as `3.1`. */
  version: string;
}

const askTimeoutMs = 10_000;

/** The interpreter on PATH, if it is new enough. The interpreter is run only if its file name lacks the version. */
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

/** The launch of the proxy (in Node.js `node`) with the language's launcher. */
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
