import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { compileObject, echoSource, injector, TestPrewarmer } from './native-functions.js';

const onThisMachine = injector ? describe : describe.skip;

const body = (statements: string) => `
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
static void *forever(void *unused) { for (;;) usleep(1000); return unused; }
__attribute__((noinline)) int recurse(int depth) { volatile char room[4096]; room[0] = 1; return recurse(depth + 1) + room[0]; }
__attribute__((noinline)) void touch(int *where) { *where = 1; }
const char *gpuwhisk_main(const char *json) { ${statements}; return "{}"; }
`;

for (const [way, environment] of [
  ['write tracking', []],
  ['pages compared', ['GPUWHISK_NO_USERFAULT=1']],
] as const) {
  onThisMachine(`rollback, ${way}`, () => {
    let prewarmer: TestPrewarmer;
    let before: unknown;

    beforeEach(async () => {
      prewarmer = await TestPrewarmer.launch([...environment]);
      before = prewarmer.state();
    });
    afterEach(() => prewarmer.end());

    /** Expects the pre-warmer to be unchanged, and the next function to run correctly. */
    async function expectAsBefore(): Promise<void> {
      expect(prewarmer.state()).toEqual(before);
      expect(await prewarmer.run(compileObject(echoSource), 1)).toMatchObject({ result: '{"got":1,"count":1}' });
      expect(await prewarmer.unload()).toMatchObject({ ready: true, replace: '' });
      expect(prewarmer.state()).toEqual(before);
    }

    const fatal: [string, string, object][] = [
      ['a null pointer', 'touch(0)', { kind: 'signal', message: expect.stringContaining('SIGSEGV) at address 0x0') }],
      ['abort', 'abort()', { kind: 'signal', message: expect.stringContaining('SIGABRT') }],
      ['a division by zero', 'volatile int zero = 0; zero = 7 / zero', { kind: 'signal' }],
      ['a stack overflow', 'recurse(0)', { kind: 'signal', message: expect.stringContaining('SIGSEGV') }],
      ['exit', 'exit(3)', { kind: 'exit', message: 'The function called exit with status 3.' }],
      ['_exit', '_exit(4)', { kind: 'exit', message: 'The function called exit with status 4.' }],
      ['pthread_exit', 'pthread_exit(0)', { kind: 'exit' }],
      [
        'an exit of a thread',
        'pthread_t t; pthread_create(&t, 0, (void *(*)(void *))exit, (void *)5); sleep(20)',
        { kind: 'exit' },
      ],
      [
        'poisoned memory and a crash',
        'memset(stdout, 0x5a, 216); memset(malloc(1 << 22), 1, 1 << 22); abort()',
        { kind: 'signal' },
      ],
    ];
    test.each(fatal)('of %s', async (_name, statements, outcome) => {
      expect(await prewarmer.run(compileObject(body(statements)))).toMatchObject({ ready: true, ...outcome });
      await expectAsBefore();
    });

    test.each([
      ['a loop', 'for (;;);'],
      ['a sleep', 'sleep(100)'],
      ['a wait that ignores signals', 'for (int i = 1; i < 64; i++) signal(i, SIG_IGN); for (;;) pause()'],
    ])('of %s that takes too long', async (_name, statements) => {
      const outcome = await prewarmer.run(compileObject(body(statements)), {}, { loadTimeoutMs: 200 }, 200);
      expect(outcome).toMatchObject({ kind: 'timeout', ready: true });
      await expectAsBefore();
    });

    test.each([
      ['threads that outlive it', 'pthread_t t; for (int i = 0; i < 5; i++) pthread_create(&t, 0, forever, 0)'],
      ['signal handlers', 'signal(SIGUSR1, (void (*)(int))forever); signal(SIGPIPE, SIG_IGN)'],
      ['a timer', 'alarm(1); struct itimerval v = {{0, 1000}, {0, 1000}}; setitimer(ITIMER_PROF, &v, 0)'],
      ['descriptors', 'for (int i = 20; i < 40; i++) dup2(1, i)'],
      ['a descriptor that does not wait', 'fcntl(0, F_SETFL, O_NONBLOCK | O_APPEND)'],
      ['memory', 'memset(malloc(20 << 20), 1, 20 << 20); void *p = sbrk(1 << 20); memset(p, 1, 1 << 20)'],
      ['changed protection', 'mprotect((void *)((long)stdout & ~4095L), 4096, PROT_READ)'],
    ])('of what a function leaves: %s', async (_name, statements) => {
      expect(await prewarmer.run(compileObject(body(statements)))).toMatchObject({ kind: 'result' });
      expect(await prewarmer.unload()).toMatchObject({ kind: 'result', ready: true });
      await expectAsBefore();
    });

    test.each([
      ['closes what it did not open', 'close(2)', 'closed or replaced descriptor 2'],
      ['unmaps a library', 'munmap((void *)((long)stdout & ~4095L), 4096); *(volatile int *)0 = 1', 'unmapped'],
      [
        'writes over constants',
        `void *p = (void *)((long)strstr & ~4095L);
        if (mprotect(p, 4096, PROT_READ | PROT_WRITE) == 0) *(volatile char *)p = 1;`,
        '',
      ],
      [
        'has a page left out of processes that fork',
        'madvise((void *)((long)stdout & ~4095L), 4096, MADV_DONTFORK)',
        'a setting',
      ],
      [
        'takes the kernel away the area for restartable sequences',
        `extern const long __rseq_offset;
        if (syscall(SYS_rseq, (char *)__builtin_thread_pointer() + __rseq_offset, 32, 1, 0x53053053) < 0) abort()`,
        'memory of its own',
      ],
      [
        'names a list of robust locks',
        'static long locks[3]; syscall(SYS_set_robust_list, locks, 24)',
        'memory of its own',
      ],
      ['changes the working folder', 'chdir("/usr")', 'a setting of the process'],
    ])('is not claimed where it cannot be: a function that %s', async (_name, statements, why) => {
      let outcome = await prewarmer.run(compileObject(body(statements)));
      if (outcome.kind === 'result') outcome = await prewarmer.unload();
      expect(outcome).toMatchObject({ ready: false, replace: expect.stringContaining(why) });
      await expect(prewarmer.run(compileObject(echoSource))).rejects.toMatchObject({ code: 'gone' });
    });

    test('tells where in the function it happened', async () => {
      const outcome = await prewarmer.run(compileObject(body('touch((int *)16); touch(0)')));
      expect(outcome.message).toContain('0x10');
      expect(outcome.trace[0]).toMatch(/^touch\+/);
      expect(outcome.trace[1]).toMatch(/^gpuwhisk_main\+/);
    });
  });
}
