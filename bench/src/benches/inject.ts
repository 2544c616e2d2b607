import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import type { Bench, Measurement, BenchContext } from '../bench.js';
import { measureDeviceFault } from './inject-device-fault.js';
import { measureNativeLeak, measurePythonLeak } from './inject-leak.js';
import { measureNative } from './inject-native.js';
import { measurePython } from './inject-python.js';
import { measureRepeats } from './inject-repeat.js';
import { launchOf, measureRuntime } from './inject-runtime.js';

const parts = {
  native: measureNative,
  nativeLeak: measureNativeLeak,
  python: measurePython,
  pythonLeak: measurePythonLeak,
  java: injectJava,
  nodejs: injectNodejs,
  repeat: measureRepeats,
  deviceFault: measureDeviceFault,
} as const;

/** Injection into pre-warmers, compared with cold starts. */
export const inject: Bench = {
  summary: 'injection into pre-warmers: time per stage and kind, recovery from a crash, leaks after many of them',
  parts: Object.keys(parts),
  async run(context) {
    const measurements: Measurement[] = [];
    for (const [name, measure] of Object.entries(parts)) {
      if (context.options.parts.length > 0 && !context.options.parts.includes(name)) continue;
      measurements.push(...(await measure(context)));
      context.say(`  ${name} done`);
    }
    return [...measurements, ...comparisons(measurements)];
  },
};

/** Figures derived from several others, which bars bind: the worse of native and Python, and p99 over the median. */
function comparisons(measurements: readonly Measurement[]): Measurement[] {
  const values = new Map(measurements.map(({ name, value }) => [name, value]));
  const together = (name: string, parts: readonly [string, string], join: (a: number, b: number) => number) => {
    const [a, b] = parts.map((part) => values.get(part));
    return a === undefined || b === undefined ? [] : [{ name, value: join(a, b) }];
  };
  return [
    ...together('leakMiB', ['nativeLeakMiB', 'pythonLeakMiB'], Math.max),
    ...together('slowdown100k', ['nativeSlowdown100k', 'pythonSlowdown100k'], Math.max),
    ...together('nativeP99Ratio', ['nativeP99Ms', 'nativeMs'], (p99, p50) => p99 / p50),
    ...together('pythonP99Ratio', ['pythonP99Ms', 'pythonMs'], (p99, p50) => p99 / p50),
  ];
}

const runTool = promisify(execFile);
const toolTimeoutMs = 60_000;
const source = `
public class Echo {
  public static com.google.gson.JsonObject main(com.google.gson.JsonObject argument) { return argument; }
}
`;

/** JARs loaded into a warm JVM, run and unloaded. */
async function injectJava(context: BenchContext): Promise<Measurement[]> {
  const launch = await launchOf(context, 'java', () => true);
  if (!launch) return [];
  const jar = await makeJar(join(context.temporaryDir, 'echo-jar'), launch);
  const digest = createHash('sha256').update(jar).digest('hex');
  return measureRuntime(context, 'java', launch, { code: jar.toString('base64'), main: 'Echo', binary: true, digest });
}

async function makeJar(folder: string, launch: RuntimeLaunch): Promise<Buffer> {
  const classes = join(folder, 'classes');
  await mkdir(classes, { recursive: true });
  await writeFile(join(folder, 'Echo.java'), source);
  const classPath = launch.command[launch.command.indexOf('-cp') + 1] ?? '';
  const tool = (name: string): string => join(dirname(launch.command[0] ?? ''), name);
  const options = { timeout: toolTimeoutMs };
  await runTool(tool('javac'), ['-cp', classPath, '-d', classes, join(folder, 'Echo.java')], options);
  await runTool(tool('jar'), ['--create', '--file', join(folder, 'echo.jar'), '-C', classes, '.'], options);
  return readFile(join(folder, 'echo.jar'));
}

const code = 'function main(argument) { return argument }';
const digest = createHash('sha256').update(code).digest('hex');

/** Node.js functions loaded into a started process, run and unloaded. */
async function injectNodejs(context: BenchContext): Promise<Measurement[]> {
  const own = `nodejs:${process.versions.node.split('.')[0]}`;
  const launch = await launchOf(context, 'nodejs', (kind) => kind === own);
  if (!launch) return [];
  return measureRuntime(context, 'nodejs', launch, { code, main: 'main', binary: false, digest });
}
