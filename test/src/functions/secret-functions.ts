import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { compileJar } from '../native/compile-jar.js';

/** One function of each kind, as it is uploaded. */
export interface SecretFunction {
  code: string | Buffer;
  main?: string;
}

const nodejs = `const fs = require('fs');
const kept = [];
function main({ plant, first, second }) {
  const folders = ['.', '/tmp', '/dev/shm'];
  if (plant) {
    const secret = first + second;
    kept.push(Buffer.from(secret));
    globalThis.planted = process.env.planted = Array.prototype.planted = secret;
    for (const folder of folders) fs.writeFileSync(folder + '/planted', secret);
  }
  let found = 0, mappings = 0;
  const memory = fs.openSync('/proc/self/mem');
  const block = Buffer.alloc(1 << 20);
  for (const line of fs.readFileSync('/proc/self/maps', 'latin1').split('\\n')) {
    const [, from, to] = /^(\\w+)-(\\w+) r.*(?<!vvar.*|vsyscall.)$/.exec(line) ?? [];
    if (!from) continue;
    mappings++;
    for (let at = parseInt(from, 16); at < parseInt(to, 16); at += block.length) {
      let size = 0;
      try { size = fs.readSync(memory, block, 0, Math.min(block.length, parseInt(to, 16) - at), at); } catch {}
      for (let i = 0; (i = block.subarray(0, size).indexOf(first, i)) >= 0; i++)
        if (block.toString('latin1', i + first.length, i + first.length + second.length) === second) found++;
    }
  }
  fs.closeSync(memory);
  const files = folders.flatMap((folder) => fs.readdirSync(folder)).filter((name) => name === 'planted').length;
  const named = [globalThis.planted, process.env.planted, [].planted].filter((one) => one !== undefined).length;
  return { pid: process.pid, mappings, found, named: files + named };
}`;

const python = `import builtins, os, re, sys
kept = []
def main(args):
  folders = [".", "/tmp", "/dev/shm"]
  if args.get("plant"):
    secret = args["first"] + args["second"]
    kept.append(secret)
    builtins.planted = os.environ["planted"] = sys.modules["planted"] = secret
    for folder in folders:
      with open(folder + "/planted", "w") as file:
        file.write(secret)
  first, second = args["first"].encode(), args["second"].encode()
  found = mappings = 0
  memory = os.open("/proc/self/mem", os.O_RDONLY)
  with open("/proc/self/maps") as file:
    lines = file.readlines()
  for line in lines:
    start, end = (int(part, 16) for part in line.split()[0].split("-"))
    if line.split()[1][0] != "r" or "[v" in line:
      continue
    mappings += 1
    try:
      content = os.pread(memory, end - start, start)
    except OSError:
      continue
    at = content.find(first)
    while at >= 0:
      found += content.startswith(second, at + len(first))
      at = content.find(first, at + 1)
  os.close(memory)
  files = sum("planted" in os.listdir(folder) for folder in folders)
  named = sum([hasattr(builtins, "planted"), "planted" in os.environ, "planted" in sys.modules])
  return {"pid": os.getpid(), "mappings": mappings, "found": found, "named": files + named}
`;

const native = `#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char kept[256], answer[128], block[1 << 16];
static int text_of(const char *json, const char *name, char *to) {
  const char *at = strstr(json, name);
  if (!at) return 0;
  at = strchr(at + strlen(name) + 1, '"') + 1;
  int length = (int)(strchr(at, '"') - at);
  memcpy(to, at, length);
  return length;
}
const char *gpuwhisk_main(const char *json) {
  static const char *const files[] = {"planted", "/tmp/planted", "/dev/shm/planted"};
  char first[64] = "", second[64] = "", line[512];
  int sizes[] = {text_of(json, "\\"first\\"", first), text_of(json, "\\"second\\"", second)};
  int found = 0, mappings = 0;
  if (strstr(json, "\\"plant\\"")) {
    snprintf(kept, sizeof kept, "%s%s", first, second);
    setenv("planted", kept, 1);
    strcpy(malloc(4096), kept);
    for (int i = 0; i < 3; i++) {
      FILE *file = fopen(files[i], "w");
      if (file) { fputs(kept, file); fclose(file); }
    }
  }
  FILE *maps = fopen("/proc/self/maps", "r");
  int memory = open("/proc/self/mem", O_RDONLY);
  if (!maps || memory < 0) return "{\\"error\\":\\"no memory to look at\\"}";
  while (fgets(line, sizeof line, maps)) {
    unsigned long start, end;
    char mode[8];
    if (sscanf(line, "%lx-%lx %7s", &start, &end, mode) != 3 || mode[0] != 'r' || strstr(line, "[v")) continue;
    mappings++;
    for (unsigned long at = start; at < end; at += sizeof block / 2) {
      long size = pread(memory, block, end - at < sizeof block ? end - at : sizeof block, (long)at);
      char *hit = block, *last = block + (size > (long)sizeof block / 2 ? (long)sizeof block / 2 : size);
      while (size > 0 && (hit = memmem(hit, last - hit, first, sizes[0]))) {
        hit += sizes[0];
        if (hit + sizes[1] <= block + size && !memcmp(hit, second, sizes[1])) found++;
      }
    }
  }
  fclose(maps);
  close(memory);
  int named = getenv("planted") != 0;
  for (int i = 0; i < 3; i++) named += access(files[i], F_OK) == 0;
  snprintf(answer, sizeof answer, "{\\"pid\\":%d,\\"mappings\\":%d,\\"found\\":%d,\\"named\\":%d}", getpid(), mappings, found, named);
  return answer;
}
`;

const java = `import com.google.gson.JsonObject;
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
public class Secret {
  static byte[] kept;
  public static JsonObject main(JsonObject args) throws Exception {
    byte[] first = bytes(args, "first"), second = bytes(args, "second");
    String[] files = {"planted", "/tmp/planted", "/dev/shm/planted"};
    if (args.has("plant")) {
      kept = (args.get("first").getAsString() + args.get("second").getAsString()).getBytes(StandardCharsets.UTF_8);
      System.setProperty("planted", new String(kept, StandardCharsets.UTF_8));
      for (String file : files) Files.write(Path.of(file), kept);
    }
    int found = 0, mappings = 0;
    byte[] block = new byte[1 << 20];
    try (RandomAccessFile memory = new RandomAccessFile("/proc/self/mem", "r")) {
      for (String line : Files.readAllLines(Path.of("/proc/self/maps"))) {
        String[] words = line.split(" ");
        if (words[1].charAt(0) != 'r' || line.contains("[v")) continue;
        mappings++;
        long at = Long.parseLong(words[0].split("-")[0], 16), end = Long.parseLong(words[0].split("-")[1], 16);
        for (; at < end; at += block.length) {
          int size;
          try {
            memory.seek(at);
            size = memory.read(block, 0, (int) Math.min(block.length, end - at));
          } catch (IOException unreadable) { continue; }
          for (int i = 0; i + first.length + second.length <= size; i++)
            if (block[i] == first[0] && isAt(block, i, first) && isAt(block, i + first.length, second)) found++;
        }
      }
    }
    int named = System.getProperty("planted") == null ? 0 : 1;
    for (String file : files) if (new File(file).exists()) named++;
    JsonObject result = new JsonObject();
    result.addProperty("pid", ProcessHandle.current().pid());
    result.addProperty("mappings", mappings);
    result.addProperty("found", found);
    result.addProperty("named", named);
    return result;
  }
  static byte[] bytes(JsonObject args, String name) { return args.get(name).getAsString().getBytes(StandardCharsets.UTF_8); }
  static boolean isAt(byte[] block, int at, byte[] wanted) {
    for (int i = 0; i < wanted.length; i++) if (block[at + i] != wanted[i]) return false;
    return true;
  }
}`;

/**
 * Functions that look for a secret in all memory of their process, in their writable folders, and where their language
 * keeps objects by name. They answer `{pid, mappings, found, named}`: `mappings` and `found` are about memory, `named`
 * about the other places. The secret comes in two parts, `first` and `second`, so that a function does not find its own
 * parameter. With `plant` a function first leaves the secret in all these places. `launch` starts the kind's runtime.
 */
export function secretFunction(family: string, launch: RuntimeLaunch): SecretFunction {
  if (family === 'java') return { code: compileJar(launch, 'Secret', java), main: 'Secret' };
  return { code: { nodejs, python, native }[family] ?? '' };
}
