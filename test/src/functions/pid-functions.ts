import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { compileJar } from '../native/compile-jar.js';

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

/** The same in Java, as a JAR whose main class is `Pid`. */
export function pidJar(launch: RuntimeLaunch): Buffer {
  return compileJar(launch, 'Pid', javaSource);
}
