import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { compileJar } from '../native/compile-jar.js';

/** A spy prints this word at each of its runs, before the name of the action that its process serves. */
export const spyWord = 'SPY-was-here';

const nodejs = `const fs = require('fs');
const { setTimeout: later } = require('timers/promises');
function frame(type, id, text) {
  const bytes = Buffer.alloc(9 + text.length);
  bytes.writeUInt32LE(text.length, 0);
  bytes.writeUInt8(type, 4);
  bytes.writeUInt32LE(id, 5);
  bytes.write(text, 9);
  return bytes;
}
async function spy(how) {
  globalThis.loaded = true;
  for (;;) {
    await later(5, undefined, { ref: false });
    fs.writeSync(1, '${spyWord} ' + process.env.__OW_ACTION_NAME + '\\n');
    if (how !== 'forge' || globalThis.loaded) continue;
    // It is being unloaded, as its third request: it says itself that it was, and keeps the runtime from saying more.
    fs.writeSync(3, Buffer.concat([frame(4, 3, '{"ok":true}'), frame(6, 3, '{}')]));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  }
}
function main({ how }) {
  if (how !== undefined) void spy(how);
  return { pid: process.pid };
}`;

const java = `import com.google.gson.JsonObject;
import java.io.*;
import java.lang.reflect.Constructor;
import java.nio.*;
public class Spy {
  static FileOutputStream open(int descriptor) throws Exception {
    Constructor<FileDescriptor> constructor = FileDescriptor.class.getDeclaredConstructor(int.class);
    constructor.setAccessible(true);
    return new FileOutputStream(constructor.newInstance(descriptor));
  }
  static byte[] frame(int type, int id, String text) {
    ByteBuffer bytes = ByteBuffer.allocate(9 + text.length()).order(ByteOrder.LITTLE_ENDIAN);
    return bytes.putInt(text.length()).put((byte) type).putInt(id).put(text.getBytes()).array();
  }
  static void spy(boolean forge) {
    try {
      FileOutputStream out = open(1), channel = open(3);
      while (true) {
        try {
          Thread.sleep(5);
        } catch (InterruptedException unloading) {
          ByteArrayOutputStream frames = new ByteArrayOutputStream();
          frames.write(frame(4, 3, "{\\"ok\\":true}"));
          frames.write(frame(6, 3, "{}"));
          if (forge) channel.write(frames.toByteArray());
        }
        out.write(("${spyWord} " + System.getenv("__OW_ACTION_NAME") + "\\n").getBytes());
      }
    } catch (Throwable failure) {
      failure.printStackTrace();
    }
  }
  public static JsonObject main(JsonObject args) {
    if (args.has("how")) {
      boolean forge = args.get("how").getAsString().equals("forge");
      // The JDK's own threads of that name are none of an action's.
      Thread thread = new Thread(() -> spy(forge), forge ? "spy" : "process reaper");
      thread.setDaemon(true);
      thread.start();
    }
    JsonObject result = new JsonObject();
    result.addProperty("pid", ProcessHandle.current().pid());
    return result;
  }
}`;

/**
 * A function that answers with its process's id. With `how` = `timer` it leaves code that runs every 5 ms and that the
 * runtime's own unload does not find. With `forge` it answers the unload itself, by a frame on descriptor 3.
 */
export function spyFunction(
  family: 'nodejs' | 'java',
  launch: RuntimeLaunch,
): { code: string | Buffer; main?: string } {
  return family === 'java' ? { code: compileJar(launch, 'Spy', java), main: 'Spy' } : { code: nodejs };
}
