import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { compileObject, echoSource } from '../native/native-functions.js';
import { marker, padding, testBadFunctions } from './injected-cases.js';
import type { BadCase } from './injected-cases.js';
import { pidSources } from './pid-functions.js';

const timeout = 60_000;
const constructor = (statement: string) => () => ({
  code: compileObject(`#include <stdlib.h>
    static int *volatile nowhere;
    __attribute__((constructor)) static void first(void) { ${statement} }
    const char *gpuwhisk_main(const char *json) { return json; }`),
});
const inMain = (statement: string) => () => ({
  code: compileObject(`#include <pthread.h>
    #include <signal.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    static void *sleeps(void *none) { (void)none; sleep(600); return 0; }
    static void ignores(int number) { (void)number; }
    const char *gpuwhisk_main(const char *json) { (void)json; (void)sleeps; (void)ignores; ${statement} return "{\\"done\\":1}"; }`),
});

function withAbsentLibrary(): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-absent-'));
  try {
    const [source, library] = [join(folder, 'absent.c'), join(folder, 'libabsent.so')];
    writeFileSync(source, 'int absent(void) { return 1; }');
    spawnSync('cc', ['-shared', '-fPIC', '-o', library, source], { timeout });
    const text = 'int absent(void); const char *gpuwhisk_main() { return absent() ? "1" : "2"; }';
    return compileObject(text, ['-fPIC', '-shared', library]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function forAnotherMachine(): Buffer {
  const code = compileObject(echoSource);
  code.writeUInt16LE(183, 18);
  return code;
}

const cases: BadCase[] = [
  { name: 'for another machine', upload: () => ({ code: forAnotherMachine() }), says: /is for another machine/ },
  {
    name: 'truncated',
    upload: () => ({ code: compileObject(echoSource).subarray(0, 4096) }),
    says: /is truncated/,
  },
  { name: 'a constructor that crashes', upload: constructor('*nowhere = 1;'), says: /SIGSEGV/ },
  {
    name: 'a constructor that loops',
    upload: constructor('for (;;);'),
    limits: { timeout: 300 },
    says: /exceeded its time limits of 300 milliseconds/,
  },
  { name: 'a constructor that exits', upload: constructor('_Exit(3);'), says: /exited unexpectedly/ },
  {
    name: 'text relocations',
    upload: () => ({
      code: compileObject('int other; int *gpuwhisk_main() { return &other; }', [
        ...['-shared', '-fno-pic', '-mcmodel=large', '-Wl,-z,notext'],
      ]),
    }),
    says: /has text relocations/,
  },
  { name: 'a library that is absent', upload: () => ({ code: withAbsentLibrary() }), says: /libabsent\.so/ },
  {
    name: 'not what was registered',
    upload: () => ({ code: compileObject(`${echoSource}\nconst char pad[] = "${padding}";`) }),
    damaged: marker,
    says: /SHA-256/,
  },
  {
    name: 'all the memory',
    upload: inMain('for (;;) memset(malloc(1 << 20), 1, 1 << 20);'),
    says: /exhausted its memory/,
    isReplaced: true,
  },
  {
    name: 'a process, and an exit',
    upload: inMain('if (fork() == 0) sleep(600); else _exit(3);'),
    says: /exited unexpectedly/,
    isReplaced: true,
  },
  {
    name: 'threads that outlive it',
    upload: inMain('pthread_t thread; for (int i = 0; i < 4; i++) pthread_create(&thread, 0, sleeps, 0);'),
    status: 'success',
    says: /done/,
  },
  {
    name: 'signal handlers and a timer',
    upload: inMain('signal(SIGALRM, ignores); signal(SIGSEGV, ignores); alarm(1);'),
    status: 'success',
    says: /done/,
  },
];

testBadFunctions({
  name: 'native',
  ...(hasNative() ? {} : { lack: 'the native parts are not built' }),
  good: () => ({ code: compileObject(pidSources.native) }),
  cases,
});
