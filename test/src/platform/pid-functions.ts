import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/runtimes/runtime-catalog';

/** Functions that answer with `{pid}`, the id of their own process. */
export const pidSources = {
  nodejs: 'function main() { return { pid: process.pid }; }',
  python: 'import os\ndef main(args):\n  return {"pid": os.getpid()}',
  native: `#include <stdio.h>
    #include <unistd.h>
    const char *gpuwhisk_main(const char *json) {
      static char text[40];
      (void)json;
      snprintf(text, sizeof text, "{\\"pid\\":%d}", (int)getpid());
      return text;
    }`,
};

const javaSource = `import com.google.gson.JsonObject;
public class Pid {
  public static JsonObject main(JsonObject args) {
    JsonObject result = new JsonObject();
    result.addProperty("pid", ProcessHandle.current().pid());
    return result;
  }
}`;

/** The same in Java, as a JAR whose main class is `Pid`; compiled in `folder` with what the runtime is started with. */
export function pidJar(folder: string, { command }: RuntimeLaunch): Buffer {
  const tools = dirname(command[0] ?? '');
  const classes = join(folder, 'classes');
  mkdirSync(classes, { recursive: true });
  writeFileSync(join(folder, 'Pid.java'), javaSource);
  const classPath = command[command.indexOf('-cp') + 1] ?? '';
  execFileSync(join(tools, 'javac'), ['-cp', classPath, '-d', classes, join(folder, 'Pid.java')], { timeout: 60_000 });
  execFileSync(join(tools, 'jar'), ['--create', '--file', join(folder, 'pid.jar'), '-C', classes, '.'], {
    timeout: 60_000,
  });
  return readFileSync(join(folder, 'pid.jar'));
}
