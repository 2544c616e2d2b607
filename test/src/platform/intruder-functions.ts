import type { RuntimeLaunch } from '@gpuwhisk/invoker/runtimes/runtime-catalog';
import { compileJar } from '../native/compile-jar.js';

const nodejs = `const fs = require('fs');
function main({ pids }) {
  const codes = [];
  for (const pid of [...pids.filter((one) => one !== process.pid), process.ppid]) {
    for (const act of [() => process.kill(pid, 'SIGKILL'), () => fs.readFileSync('/proc/' + pid + '/environ'),
      () => fs.openSync('/proc/' + pid + '/mem', 'r+')]) {
      try { act(); codes.push('reached ' + pid + ' by ' + act); } catch (error) { codes.push(error.code); }
    }
  }
  const seen = fs.readdirSync('/proc').filter((name) => Number(name) > 0).map(Number);
  return { pid: process.pid, codes, seen };
}`;

const python = `import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def attempt(codes, act):
  try:
    codes.append("reached by " + repr(act()))
  except OSError as error:
    codes.append(errno.errorcode[error.errno])
def call(name, *args):
  if getattr(libc, name)(*args) < 0:
    raise OSError(ctypes.get_errno(), name)
def flag():
  for line in open("/proc/self/maps"):
    if "gpuwhisk-state" in line:
      return int(line.split("-")[0], 16)
def main(args):
  codes = []
  for pid in [one for one in args["pids"] if one != os.getpid()] + [os.getppid()]:
    attempt(codes, lambda: call("ptrace", 16, pid, 0, 0))
    attempt(codes, lambda: os.kill(pid, 9))
    attempt(codes, lambda: open("/proc/%d/environ" % pid).read())
    attempt(codes, lambda: os.open("/proc/%d/mem" % pid, os.O_RDWR))
  page = ctypes.c_void_p(flag())
  attempt(codes, lambda: call("mprotect", page, 4096, 3))
  zeros = os.open("/dev/zero", os.O_RDONLY)
  attempt(codes, lambda: call("read", zeros, page, 4))
  os.close(zeros)
  return {"pid": os.getpid(), "codes": codes, "seen": [int(name) for name in os.listdir("/proc") if name.isdigit()]}
`;

/** Java has no call for signals or tracing but by other programs, one of which does both. */
const java = `import com.google.gson.*;
import java.io.*;
import java.nio.file.*;
public class Intruder {
  interface Act { Object run() throws Exception; }
  static void attempt(JsonArray codes, Act act) {
    try { codes.add("reached by " + act.run()); }
    catch (AccessDeniedException denied) { codes.add("EACCES"); }
    catch (NoSuchFileException absent) { codes.add("ENOENT"); }
    catch (FileNotFoundException refused) { codes.add(refused.getMessage().contains("denied") ? "EACCES" : refused.getMessage().contains("No such") ? "ENOENT" : refused.getMessage()); }
    catch (Exception other) { codes.add(String.valueOf(other.getMessage())); }
  }
  static Object kill(long pid) throws Exception {
    if (ProcessHandle.of(pid).map(ProcessHandle::destroyForcibly).orElse(false)) return "destroyForcibly";
    Process process = new ProcessBuilder("/bin/sh", "-c", "kill -9 " + pid).redirectErrorStream(true).start();
    process.getInputStream().readAllBytes();
    if (process.waitFor() == 0) return "kill";
    throw new Exception("EPERM");
  }
  public static JsonObject main(JsonObject args) throws Exception {
    long own = ProcessHandle.current().pid();
    JsonArray codes = new JsonArray(), seen = new JsonArray();
    JsonArray pids = args.getAsJsonArray("pids");
    ProcessHandle.current().parent().ifPresent(parent -> pids.add(parent.pid()));
    for (JsonElement each : pids) {
      long pid = each.getAsLong();
      if (pid == own) continue;
      attempt(codes, () -> kill(pid));
      attempt(codes, () -> Files.readAllBytes(Path.of("/proc/" + pid + "/environ")));
      attempt(codes, () -> new RandomAccessFile("/proc/" + pid + "/mem", "rw"));
    }
    for (String name : new File("/proc").list()) if (name.matches("[0-9]+")) seen.add(Long.parseLong(name));
    JsonObject result = new JsonObject();
    result.addProperty("pid", own);
    result.add("codes", codes);
    result.add("seen", seen);
    return result;
  }
}`;

/**
 * Functions that try to end, trace and read the processes `pids` and their own parent, and to raise the Ready flag where
 * there is one; they answer `{pid, codes, seen}`: the name of each attempt's error, or what it reached, and the processes
 * that they see. `launch` starts the kind's runtime.
 */
export function intruder(family: string, launch: RuntimeLaunch): { code: string | Buffer; main?: string } {
  if (family === 'java') return { code: compileJar(launch, 'Intruder', java), main: 'Intruder' };
  return { code: { nodejs, python }[family] ?? '' };
}
