import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { compileObject, echoSource, injector, TestPrewarmer } from './native-functions.js';

const onThisMachine = injector ? describe : describe.skip;

/** Runs each statement and returns {"name": errno or 0}; 0 is success. */
const attempts = (tries: Record<string, string>) => `
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
static char out[4096];
static int other; // A process next to the function.
static long map(int protection, int flags, int file) { return (long)mmap(0, 4096, protection, flags, file, 0); }
static long open_of(const char *name, int flags) { char path[64]; snprintf(path, 64, "/proc/%d/%s", other, name); return open(path, flags); }
static unsigned long state_page(void) {
  FILE *maps = fopen("/proc/self/maps", "r"); char line[512]; unsigned long start = 0;
  while (maps && fgets(line, 512, maps)) if (strstr(line, "gpuwhisk-state")) sscanf(line, "%lx", &start);
  if (maps) fclose(maps);
  return start;
}
static void attempt(const char *name, long result) {
  snprintf(out + strlen(out), 4096 - strlen(out), "%s\\"%s\\":%d", out[1] ? "," : "", name, result < 0 ? errno : 0);
}
const char *gpuwhisk_main(const char *json) {
  other = atoi(json);
  strcpy(out, "{");
  ${Object.entries(tries)
    .map(([name, statement]) => `errno = 0; attempt("${name}", ${statement});`)
    .join('\n  ')}
  strcat(out, "}");
  return out;
}
`;

const EPERM = 1;
const EACCES = 13;
const EINVAL = 22;
const ENOSYS = 38;

onThisMachine('hostile shared objects', () => {
  let prewarmer: TestPrewarmer;
  let neighbour: TestPrewarmer;
  let echo: Buffer;

  beforeAll(async () => {
    prewarmer = await TestPrewarmer.launch();
    neighbour = await TestPrewarmer.launch();
    echo = compileObject(echoSource);
  });
  afterAll(async () => {
    await prewarmer?.end();
    await neighbour?.end();
  });
  // Unloads after a test that failed half-way, so that later tests can run.
  afterEach(() => prewarmer.unload().catch(() => undefined));

  async function expectNextRunsRight(): Promise<void> {
    expect(await prewarmer.run(echo, 1)).toMatchObject({ kind: 'result', result: '{"got":1,"count":1}' });
    expect(await prewarmer.unload()).toMatchObject({ kind: 'result', ready: true });
  }

  const withMachine = (machine: number) => {
    const code = Buffer.from(echo);
    code.writeUInt16LE(machine, 18);
    return code;
  };
  const withExecutableData = () => {
    const code = Buffer.from(echo);
    for (let at = 64; at < 64 + code.readUInt16LE(56) * 56; at += 56) {
      const isData = code.readUInt32LE(at) === 1 && (code.readUInt32LE(at + 4) & 2) !== 0;
      if (isData) code.writeUInt32LE(7, at + 4);
    }
    return code;
  };
  const object = (source: string, ...flags: string[]) => compileObject(source, ['-fPIC', '-shared', ...flags]);
  const refused: [string, () => Buffer, string][] = [
    ['for another machine', () => withMachine(183), 'is for another machine'],
    ['truncated', () => echo.subarray(0, 4096), 'is truncated'],
    ['cut in its header', () => echo.subarray(0, 40), 'is no ELF file'],
    ['that is text', () => Buffer.from('#!/bin/sh\n'), 'is no ELF file'],
    ['that is empty', () => Buffer.alloc(0), 'has no code'],
    ['that is a program', () => compileObject('int main() { return 0; }', []), 'is a program'],
    [
      'with text relocations',
      () =>
        compileObject('int other; int *gpuwhisk_main() { return &other; }', [
          '-shared',
          '-fno-pic',
          '-mcmodel=large',
          '-Wl,-z,notext',
        ]),
      'has text relocations',
    ],
    ['with an executable stack', () => object(echoSource, '-Wl,-z,execstack'), 'asks for an executable stack'],
    ['with a writable code segment', withExecutableData, 'writable and executable'],
  ];
  test.each(refused)('one %s is refused', async (_name, code, message) => {
    await expect(prewarmer.run(code())).rejects.toMatchObject({
      code: 'payload',
      message: expect.stringContaining(message),
    });
    await expectNextRunsRight();
  });

  test('one whose library is absent is refused with the name of the library', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-absent-'));
    writeFileSync(join(folder, 'absent.c'), 'int absent(void) { return 1; }');
    const file = join(folder, 'libabsent.so');
    spawnSync('cc', ['-shared', '-fPIC', '-o', file, join(folder, 'absent.c')], { timeout: 60_000 });
    const code = object('int absent(void); const char *gpuwhisk_main() { return absent() ? "1" : "2"; }', file);
    rmSync(folder, { recursive: true });
    expect(await prewarmer.run(code)).toMatchObject({ kind: 'load', message: expect.stringContaining('libabsent.so') });
    await expectNextRunsRight();
  });

  test('one without the entry is refused', async () => {
    const outcome = await prewarmer.run(echo, {}, { entry: 'absent' });
    expect(outcome).toMatchObject({ kind: 'load', ready: true, message: expect.stringContaining('absent') });
    await expectNextRunsRight();
  });

  test.each([
    ['crashes', 'static int *volatile nowhere; *nowhere = 1;', 'signal'],
    ['loops', 'for (;;);', 'timeout'],
    ['exits', '_Exit(1);', 'exit'],
  ])('one whose constructor %s is rolled back', async (_name, statement, kind) => {
    const code = object(`#include <stdlib.h>
      __attribute__((constructor)) static void first(void) { ${statement} }
      const char *gpuwhisk_main(const char *json) { return json; }`);
    expect(await prewarmer.run(code, {}, { loadTimeoutMs: 200 }, 200)).toMatchObject({ kind, ready: true });
    await expectNextRunsRight();
  });

  async function expectEach(tries: Record<string, string>, errors: number[]): Promise<void> {
    const outcome = await prewarmer.run(object(attempts(tries)), neighbour.details.pid);
    expect(outcome).toMatchObject({ kind: 'result' });
    const got = JSON.parse(outcome.result) as Record<string, number>;
    const allowed = Object.entries(got).filter(([, error]) => !errors.includes(error));
    expect(allowed).toEqual([]);
    expect(Object.keys(got)).toEqual(Object.keys(tries));
    expect((await prewarmer.unload()).ready).toBe(true);
    await expectNextRunsRight();
    expect(await neighbour.run(echo, 2)).toMatchObject({ result: '{"got":2,"count":1}' });
    expect((await neighbour.unload()).ready).toBe(true);
  }

  test('system calls that no function needs are denied', () =>
    expectEach(
      {
        ptrace: 'ptrace(PTRACE_SEIZE, other, 0, 0)',
        traceme: 'ptrace(PTRACE_TRACEME, 0, 0, 0)',
        readv: 'process_vm_readv(other, 0, 0, 0, 0, 0)',
        writev: 'process_vm_writev(other, 0, 0, 0, 0, 0)',
        mount: 'mount("none", "/tmp", "tmpfs", 0, 0)',
        unshare: 'unshare(CLONE_NEWUSER)',
        bpf: 'syscall(SYS_bpf, 0, 0, 0)',
        module: 'syscall(SYS_init_module, 0, 0, 0)',
        keyctl: 'syscall(SYS_keyctl, 0, 0, 0, 0, 0)',
        perf: 'syscall(SYS_perf_event_open, 0, 0, 0, 0, 0)',
        userfault: 'syscall(SYS_userfaultfd, 0)',
        uring: 'syscall(425, 1, 0)',
        seccomp: 'syscall(SYS_seccomp, 0, 0, 0)',
        setSeccomp: 'prctl(PR_SET_SECCOMP, 1, 0, 0, 0)',
        dumpable: 'prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)',
        shared: 'syscall(SYS_shmget, 1, 4096, 01600)',
        personality: 'syscall(SYS_personality, 0x0400000)',
        getfd: 'syscall(438, 3, 0, 0)',
        clone3: 'syscall(435, 0, 0)',
        seal: 'syscall(462, (long)out & ~4095L, 4096, 0)',
        protectionKey: 'syscall(SYS_pkey_alloc, 0, 0)',
        faultingCpuid: 'syscall(SYS_arch_prctl, 0x1012, 0)',
        packet: 'socket(AF_PACKET, SOCK_RAW, 0)',
      },
      [EPERM, ENOSYS, 97],
    ));

  test('system calls that are on no list are unknown', () =>
    expectEach(
      {
        quota: 'syscall(443, -1, -1, -1, -1)',
        modules: 'syscall(461, -1, -1, -1)',
        later: 'syscall(500, -1)',
      },
      [ENOSYS],
    ));

  test('memory that looks as it was and may be gone later is not had', () =>
    expectEach(
      {
        free: 'madvise((void *)((long)stdout & ~4095L), 4096, 8)',
        guard: 'madvise((void *)((long)stdout & ~4095L), 4096, 102)',
      },
      [EINVAL],
    ));

  test('the proxy and the neighbours are out of reach', () =>
    expectEach(
      {
        killProxy: 'kill(getppid(), SIGKILL)',
        killNeighbour: 'kill(other, SIGKILL)',
        killGroup: 'kill(0, SIGTERM)',
        killAll: 'kill(-1, SIGTERM)',
        killSelf: 'kill(getpid(), SIGKILL)',
        stopSelf: 'kill(getpid(), SIGSTOP)',
        memory: 'open_of("mem", O_RDWR)',
        readMemory: 'open_of("mem", O_RDONLY)',
        environment: 'open_of("environ", O_RDONLY)',
        maps: 'open_of("maps", O_RDONLY)',
        limits: 'syscall(SYS_prlimit64, other, 7, (long[]){0, 0}, 0)',
        writeTmp: 'open("/tmp/gpuwhisk-hostile", O_CREAT | O_RDWR, 0600)',
      },
      [EPERM, EACCES],
    ));

  test.each([1, 2, 3, 5])('so they are with Landlock of version %d, which has no scopes', async (version) => {
    const [newer, neighbours] = [prewarmer, neighbour];
    const environment = [`GPUWHISK_LANDLOCK=${version}`];
    [prewarmer, neighbour] = [await TestPrewarmer.launch(environment), await TestPrewarmer.launch(environment)];
    try {
      expect(prewarmer.details.landlock).toBe(version);
      await expectEach(
        {
          killProxy: 'kill(getppid(), SIGKILL)',
          killNeighbour: 'kill(other, SIGKILL)',
          memory: 'open_of("mem", O_RDWR)',
          readMemory: 'open_of("mem", O_RDONLY)',
          environment: 'open_of("environ", O_RDONLY)',
          own: 'open("/proc/self/mem", O_RDWR)',
          read: 'open("/root", O_RDONLY)',
          writeTmp: 'open("/tmp/gpuwhisk-hostile", O_CREAT | O_RDWR, 0600)',
        },
        [EPERM, EACCES],
      );
    } finally {
      await Promise.all([prewarmer.end(), neighbour.end()]);
      [prewarmer, neighbour] = [newer, neighbours];
    }
  });

  test('it does not become another program, nor gets away from its tracer', () =>
    expectEach(
      {
        sharing: 'syscall(SYS_clone, SIGCHLD | CLONE_VM, 0, 0, 0, 0)',
        untracedProcess: 'syscall(SYS_clone, 0x00800000 | SIGCHLD, 0, 0, 0, 0)',
        untraced: 'syscall(SYS_clone, 0x00800000 | CLONE_VM | CLONE_THREAD | CLONE_SIGHAND, 0, 0, 0, 0)',
        exec: 'execl("/bin/true", "true", (char *)0)',
      },
      [EPERM],
    ));

  test('memory is never writable and executable', () =>
    expectEach(
      {
        anonymous: 'map(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1)',
        executable: 'map(PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1)',
        flip: 'mprotect((void *)((long)out & ~4095L), 4096, PROT_READ | PROT_EXEC)',
        code: 'mprotect((void *)((long)gpuwhisk_main & ~4095L), 4096, PROT_READ | PROT_WRITE | PROT_EXEC)',
        file: 'map(PROT_READ | PROT_EXEC, MAP_SHARED, memfd_create("mine", 0))',
        sameName: 'map(PROT_READ | PROT_EXEC, MAP_SHARED, memfd_create("gpuwhisk-function", 0))',
        proc: 'open("/proc/self/mem", O_RDWR)',
        shared: 'syscall(SYS_shmat, 0, 0, 0100000)',
      },
      [EPERM, EACCES],
    ));

  test('the Ready flag cannot be written', async () => {
    await expectEach({ protect: 'mprotect((void *)state_page(), 4096, PROT_READ | PROT_WRITE)' }, [EACCES]);
    const writes = object(attempts({ write: '(*(volatile int *)state_page() = 1, 0)' }));
    expect(await prewarmer.run(writes, 0)).toMatchObject({ kind: 'signal', ready: true });
    await expectNextRunsRight();
  });

  test('a function has the memory it is given, and the next has its own', async () => {
    const eats = object(
      attempts({ eat: '({ int n = 0; while (n < 4096 && malloc(1 << 20)) n++; n == 4096 ? 0 : -1; })' }),
    );
    expect(await prewarmer.run(eats, 0, { memoryMiB: 64 })).toMatchObject({ kind: 'result', result: '{"eat":12}' });
    expect((await prewarmer.unload()).ready).toBe(true);
    await expectNextRunsRight();
  });

  const once = (statement: string, ...headers: string[]) =>
    object(`#define _GNU_SOURCE
      #include <fcntl.h>
      #include <pthread.h>
      #include <signal.h>
      #include <stdint.h>
      #include <stdio.h>
      #include <string.h>
      #include <sys/ioctl.h>
      #include <sys/socket.h>
      #include <sys/syscall.h>
      #include <unistd.h>
      ${headers.map((header) => `#include ${header}`).join('\n')}
      const char *gpuwhisk_main(const char *json) { ${statement} }`);

  test.each([
    ['shuts down', 'shutdown(file, SHUT_RDWR);'],
    ['wants credentials of', 'setsockopt(file, SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int));'],
    ['writes to', 'for (int i = 0; i < 1000; i++) send(file, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL);'],
  ])('one that %s every socket that it finds leaves nothing of it', async (_name, statement) => {
    // Leaves open the output, which is the socket of the tests' runner.
    const code = once(`for (int file = 3; file < 64; file++) { ${statement} } return "{}";`);
    expect(await prewarmer.run(code)).toMatchObject({ kind: 'result' });
    expect(await prewarmer.unload()).toMatchObject({ ready: true });
    await expectNextRunsRight();
  });

  async function expectReplaced(code: Buffer, reason: string): Promise<void> {
    const own = await TestPrewarmer.launch();
    try {
      expect(await own.run(code)).toMatchObject({ kind: 'result', result: '{}' });
      expect(await own.unload()).toMatchObject({ ready: false, replace: expect.stringContaining(reason) });
    } finally {
      await own.end();
    }
  }

  test.each([
    ['to its process', 'kill(getpid(), SIGUSR1);'],
    ['to its thread', 'syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);'],
    ['to the other thread', 'syscall(SYS_tgkill, getpid(), getpid(), SIGUSR1);'],
  ])('a signal %s that is pending is not left to the next function', async (_name, statement) => {
    const block = 'sigset_t all; sigfillset(&all); sigprocmask(SIG_BLOCK, &all, 0);';
    await expectReplaced(once(`${block} ${statement} return "{}";`), 'pending signals');
  });

  async function expectAsBefore(code: Buffer): Promise<void> {
    const before = prewarmer.state();
    expect(await prewarmer.run(code)).toMatchObject({ kind: 'result' });
    expect(await prewarmer.unload()).toMatchObject({ ready: true });
    expect(prewarmer.state()).toEqual(before);
  }

  test.each([
    ['an owner', 'fcntl(1, F_SETOWN, getpid());'],
    ['another owner', 'struct f_owner_ex owner = {F_OWNER_PID, getpid()}; fcntl(2, F_SETOWN_EX, &owner);'],
    ['an owner by ioctl', 'int own = getpid(); ioctl(1, FIOSETOWN, &own);'],
    ['a signal', 'fcntl(1, F_SETSIG, SIGUSR2);'],
    ['a size', 'int ends[2]; pipe(ends); fcntl(ends[0], F_SETPIPE_SZ, 4096);'],
  ])('a pre-warmer whose descriptors got %s is replaced', (_name, statement) =>
    expectReplaced(once(`${statement} return "{}";`, '<asm/sockios.h>'), 'changed a setting'),
  );

  test('a descriptor that is left open for other programs is closed to them again', async () => {
    const code = once('fcntl(6, F_SETFD, 0); for (int i = 0; i < 3; i++) fcntl(i, F_SETFD, FD_CLOEXEC); return "{}";');
    await expectAsBefore(code);
  });

  test('no more of a message is read than the mailbox has room for, whatever is written there meanwhile', async () => {
    // /proc gives the address of the mailbox; the message stands before 8 MiB of arguments.
    const code = object(`#define _GNU_SOURCE
      #include <pthread.h>
      #include <stdio.h>
      #include <string.h>
      #include <unistd.h>
      static char *volatile area;
      static void *flood(void *nothing) {
        // From behind the list of calls on: request, status (1: not loaded), and so on up to the message.
        for (;;) { ((volatile unsigned *)area)[1] = 1; for (int i = 2048; i < 2432; i++) ((volatile char *)area)[i] = 'x'; }
        return nothing;
      }
      const char *gpuwhisk_main(const char *json) {
        FILE *maps = fopen("/proc/self/maps", "r"); static char line[512]; unsigned long start = 0, end = 0;
        while (fgets(line, sizeof line, maps)) if (strstr(line, "gpuwhisk-mailbox")) sscanf(line, "%lx-%lx", &start, &end);
        fclose(maps);
        area = (char *)start + 64000;
        memset(area + 300, 'x', end - start - 64300);
        static pthread_t thread; pthread_create(&thread, 0, flood, 0);
        usleep(2000);
        return 0;
      }`);
    for (let round = 0; round < 10; round += 1) {
      const outcome = await prewarmer.run(code);
      expect(outcome).toMatchObject({ kind: 'load', ready: true });
      expect(outcome.message.length).toBeLessThanOrEqual(2048);
    }
    await expectNextRunsRight();
  });

  test('a planted secret is not found by the next function', async () => {
    const secret = 'K7d-planted-9f3e51';
    const plant = object(`
      #include <stdlib.h>
      #include <string.h>
      static char kept[65536];
      const char *gpuwhisk_main(const char *json) {
        for (int i = 0; i < 64; i++) { char *p = malloc(3000 + i * 500); strcpy(p, json); strcpy(p + 1000, json); free(p); }
        strcpy(kept + 30000, json); setenv("SECRET", json, 1);
        char stack[20000]; strcpy(stack, json); return strcpy(kept, stack);
      }`);
    // The code looks for the text in two halves, so that it does not find itself.
    const hunt = object(`
      #include <fcntl.h>
      #include <stdio.h>
      #include <stdlib.h>
      #include <string.h>
      #include <unistd.h>
      const char *gpuwhisk_main(const char *json) {
        static char text[64]; static char line[512]; int found = 0, pages = 0;
        FILE *maps = fopen("/proc/self/maps", "r");
        int memory = open("/proc/self/mem", O_RDONLY);
        static char page[4096 + 16];
        while (fgets(line, sizeof line, maps)) {
          unsigned long start, end;
          sscanf(line, "%lx-%lx", &start, &end);
          for (unsigned long at = start; at < end && end - start < (64 << 20); at += 4096) {
            if (pread(memory, page, 4096, at) != 4096) continue;
            pages++;
            for (char *p = page; (p = memchr(p, 'K', page + 4080 - p)); p++)
              if (!memcmp(p + 1, "7d-", 3) && !memcmp(p + 4, "planted", 7) && !memcmp(p + 12, "9f3e", 4)) found++;
          }
        }
        snprintf(text, sizeof text, "{\\"found\\":%d,\\"searched\\":%s}", found, pages > 100 ? "true" : "false");
        return text;
      }`);
    expect((await prewarmer.run(plant, secret)).result).toContain(secret);
    expect((await prewarmer.unload()).ready).toBe(true);
    expect(await prewarmer.run(hunt)).toMatchObject({ result: '{"found":0,"searched":true}' });
    expect((await prewarmer.unload()).ready).toBe(true);
  });
});
