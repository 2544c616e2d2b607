import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
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

const native = `#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <unistd.h>
static char answer[1 << 16];
static void add(const char *text) { strncat(answer, text, sizeof answer - strlen(answer) - 1); }
static void attempt(long result) {
  char text[64];
  snprintf(text, sizeof text, "%s\\"%s\\"", answer[strlen(answer) - 1] == '[' ? "" : ",", result < 0 ? strerrorname_np(errno) : "reached");
  add(text);
}
static long open_of(int pid, const char *name, int flags) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
  return open(path, flags);
}
static void tries(int pid) {
  if (pid == getpid()) return;
  attempt(ptrace(PTRACE_SEIZE, pid, 0, 0));
  attempt(kill(pid, SIGKILL));
  attempt(open_of(pid, "environ", O_RDONLY));
  attempt(open_of(pid, "mem", O_RDWR));
}
static void *flag(void) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[512];
  unsigned long start = 0;
  while (maps && fgets(line, sizeof line, maps)) if (strstr(line, "gpuwhisk-state")) sscanf(line, "%lx", &start);
  if (maps) fclose(maps);
  return (void *)start;
}
const char *gpuwhisk_main(const char *json) {
  char text[64];
  snprintf(answer, sizeof answer, "{\\"pid\\":%d,\\"codes\\":[", getpid());
  char *at = strchr(json, '[');
  while (at && *at != ']') tries((int)strtol(at + 1, &at, 10));
  tries(getppid());
  attempt(mprotect(flag(), 4096, PROT_READ | PROT_WRITE));
  int zeros = open("/dev/zero", O_RDONLY);
  attempt(read(zeros, flag(), 4));
  close(zeros);
  add("],\\"seen\\":[");
  DIR *folder = opendir("/proc");
  for (struct dirent *entry; folder && (entry = readdir(folder));)
    if (atoi(entry->d_name) > 0) {
      snprintf(text, sizeof text, "%s%d", answer[strlen(answer) - 1] == '[' ? "" : ",", atoi(entry->d_name));
      add(text);
    }
  if (folder) closedir(folder);
  add("]}");
  return answer;
}
`;

/** Java can signal or trace only through other programs, one of which does both. */
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
 * Functions that try to end, trace and read the processes `pids` and their own parent, and to raise the Ready flag if
 * there is one. They answer `{pid, codes, seen}`: `codes` has each attempt's error, or the result of a success, and
 * `seen` the processes that the function sees. `launch` starts the kind's runtime.
 */
export function intruder(family: string, launch: RuntimeLaunch): { code: string | Buffer; main?: string } {
  if (family === 'java') return { code: compileJar(launch, 'Intruder', java), main: 'Intruder' };
  return { code: { nodejs, python, native }[family] ?? '' };
}
