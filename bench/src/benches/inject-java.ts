import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import type { BenchContext, Measurement } from '../bench.js';
import { launchOf, measureRuntime } from './inject-runtime.js';

const runTool = promisify(execFile);
const toolTimeoutMs = 60_000;
const source = `
public class Echo {
  public static com.google.gson.JsonObject main(com.google.gson.JsonObject argument) { return argument; }
}
`;

/** JARs loaded into a warm JVM, run and unloaded. */
export async function injectJava(context: BenchContext): Promise<Measurement[]> {
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
