import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';

const timeout = 60_000;

/** The class path of the Java runtime of `launch`: its own JAR, and gson's. */
export function classPathOf({ command }: RuntimeLaunch): string {
  return command[command.indexOf('-cp') + 1] ?? '';
}

/** The JDK's folder of programs. */
export function javaTools({ command }: RuntimeLaunch): string {
  return dirname(command[0] ?? '');
}

/** A JAR of the classes in `source`, compiled with the runtime's JDK; `name` is the public class. */
export function compileJar(launch: RuntimeLaunch, name: string, source: string): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-jar-'));
  const tool = (program: string): string => join(javaTools(launch), program);
  try {
    const classes = join(folder, 'classes');
    mkdirSync(classes);
    const file = join(folder, `${name}.java`);
    writeFileSync(file, source);
    const javac = ['-encoding', 'UTF-8', '-cp', classPathOf(launch), '-d', classes, file];
    execFileSync(tool('javac'), javac, { timeout });
    const jar = join(folder, 'a.jar');
    execFileSync(tool('jar'), ['--create', '--file', jar, '-C', classes, '.'], { timeout });
    return readFileSync(jar);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
