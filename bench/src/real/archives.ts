// Code of functions that bring their packages along.
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runProgram } from '@gpuwhisk/invoker/host/programs';
import type { FunctionCode } from './module-sets.js';

const timeoutMs = 300_000;
const gson = 'com.google.code.gson:gson:2.10.1';

/** A zip with `__main__.py`, and the packages in a virtual environment without compiled files. Rejects with ProgramError. */
export async function virtualEnvironmentZip(
  folder: string,
  main: string,
  packages: readonly string[],
): Promise<FunctionCode> {
  const target = join(folder, 'virtualenv', 'lib', 'python3', 'site-packages');
  await mkdir(target, { recursive: true });
  await writeFile(join(folder, '__main__.py'), main);
  const run = (...words: string[]): Promise<string> => runProgram('python3', words, { timeoutMs, cwd: folder });
  await run('-m', 'pip', 'install', '--quiet', '--no-compile', '--only-binary=:all:', '--target', target, ...packages);
  await run('-m', 'zipfile', '-c', 'archive.zip', '__main__.py', 'virtualenv');
  return { code: await readFile(join(folder, 'archive.zip'), 'base64'), binary: true };
}

const source = `import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.gson.JsonObject;

public class Words {
  private static final ObjectMapper mapper = new ObjectMapper();

  public static JsonObject main(JsonObject args) throws Exception {
    if (args.has("holdS")) Thread.sleep((long) (1000 * args.get("holdS").getAsDouble()));
    JsonObject result = new JsonObject();
    result.addProperty("result", mapper.readTree("{\\"words\\":[\\"a\\",\\"b\\"]}").get("words").size());
    return result;
  }
}
`;

/** A JAR with a class, and a Maven artifact of Jackson with what it needs. Needs Maven and a JDK. Rejects with ProgramError. */
export async function jacksonJar(folder: string, artifact: string): Promise<FunctionCode> {
  const libraries = join(folder, 'libraries');
  const provided = join(folder, 'provided');
  const classes = join(folder, 'classes');
  for (const each of [libraries, provided, classes]) await mkdir(each, { recursive: true });
  const [group, , version] = artifact.split(':');
  for (const one of [artifact, `${group}:jackson-core:${version}`, `${group}:jackson-annotations:${version}`])
    await copyArtifact(one, libraries);
  await copyArtifact(gson, provided);
  await writeFile(join(folder, 'Words.java'), source);
  const jars = await readdir(libraries);
  const classPath = [...jars.map((jar) => join(libraries, jar)), join(provided, 'gson.jar')].join(':');
  await runProgram('javac', ['-cp', classPath, '-d', classes, 'Words.java'], { timeoutMs, cwd: folder });
  for (const jar of jars)
    await runProgram('jar', ['--extract', '--file', join(libraries, jar)], { timeoutMs, cwd: classes });
  await runProgram('jar', ['--create', '--file', 'words.jar', '-C', classes, '.'], { timeoutMs, cwd: folder });
  return { code: await readFile(join(folder, 'words.jar'), 'base64'), binary: true, main: 'Words' };
}

/** Copies a JAR from Maven's repositories, without the version in its name. */
async function copyArtifact(artifact: string, folder: string): Promise<void> {
  const goal = 'org.apache.maven.plugins:maven-dependency-plugin:copy';
  const options = [`-Dartifact=${artifact}`, `-DoutputDirectory=${folder}`, '-Dmdep.stripVersion=true'];
  await runProgram('mvn', ['-q', '-B', goal, ...options], { timeoutMs });
}
