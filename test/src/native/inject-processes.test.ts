import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, describe, expect, test } from '@jest/globals';
import { until } from '@gpuwhisk/common/testing/until';
import { zipOf } from '../runtimes/python-cases.js';
import { compileObject, injector, TestPrewarmer } from './native-functions.js';
import { python, PythonPrewarmer } from './python-functions.js';

/** The processes with this command line. */
function marked(command: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8') === `${command.replaceAll(' ', '\0')}\0`;
    } catch {
      return false; // The process ended meanwhile.
    }
  });
}

const lines = (imports: string, ...body: string[]): string =>
  `import ${imports}\ndef main(args):\n${body.map((line) => `  ${line}\n`).join('')}`;

(python ? describe : describe.skip)('processes of Python functions', () => {
  let prewarmer: PythonPrewarmer;
  afterEach(() => prewarmer.end());

  const startedProcess = { ready: false, replace: 'The function started a process.' };

  test.each<[string, string, unknown]>([
    [
      'subprocess',
      lines('subprocess', 'return {"out": subprocess.run(["/bin/echo", "x"], capture_output=True, text=True).stdout}'),
      { out: 'x\n' },
    ],
    [
      'one whose output is the log',
      lines('subprocess', 'return {"status": subprocess.run(["/bin/echo", "printed"]).returncode}'),
      { status: 0 },
    ],
    [
      'a pipeline of a shell',
      lines(
        'subprocess',
        'return {"out": subprocess.check_output("seq 5 | tr -d \'\\\\n\' | rev", shell=True, text=True)}',
      ),
      { out: '54321' },
    ],
    [
      'os.system and os.popen',
      lines('os', 'return {"status": os.system("exit 3") >> 8, "out": os.popen("echo y").read()}'),
      { status: 3, out: 'y\n' },
    ],
    [
      'fork',
      lines('os', 'pid = os.fork()', 'if pid == 0: os._exit(7)', 'return {"status": os.waitpid(pid, 0)[1] >> 8}'),
      { status: 7 },
    ],
    [
      'fork without exec, which talks through a pipe',
      lines(
        'os, json',
        'read, write = os.pipe()',
        'if os.fork() == 0: os.write(write, json.dumps({"parent": args["n"]}).encode()); os._exit(0)',
        'os.wait()',
        'return json.loads(os.read(read, 99))',
      ),
      { parent: 3 },
    ],
    [
      'multiprocessing',
      `import multiprocessing\ndef work(queue, n):\n  queue.put(n * n)\n${lines(
        'os',
        'queue = multiprocessing.SimpleQueue()',
        'process = multiprocessing.Process(target=work, args=(queue, args["n"]))',
        'process.start(); process.join()',
        'return {"got": queue.get(), "status": process.exitcode}',
      )}`,
      { got: 9, status: 0 },
    ],
    [
      'threads that start processes',
      lines(
        'concurrent.futures, subprocess',
        'with concurrent.futures.ThreadPoolExecutor(4) as pool:',
        '  outs = list(pool.map(lambda n: subprocess.check_output(["echo", str(n)], text=True).strip(), range(8)))',
        'return {"outs": outs}',
      ),
      { outs: ['0', '1', '2', '3', '4', '5', '6', '7'] },
    ],
    [
      'one that is killed, and one that is stopped',
      lines(
        'os, signal, subprocess',
        'one = subprocess.Popen(["sleep", "60"]); one.kill()',
        'two = subprocess.Popen(["sleep", "60"]); two.send_signal(signal.SIGSTOP)',
        'stopped = os.WIFSTOPPED(os.waitpid(two.pid, os.WUNTRACED)[1])',
        'two.terminate(); two.send_signal(signal.SIGCONT)',
        'return {"one": one.wait(), "stopped": stopped, "two": two.wait()}',
      ),
      { one: -9, stopped: true, two: -15 },
    ],
    [
      'its own signals and programs, but nobody else',
      lines(
        'subprocess',
        'script = "kill -0 $$ && echo self; kill -0 %d 2>/dev/null || echo other" % args["other"]',
        'return {"out": subprocess.check_output(["sh", "-c", script], text=True)}',
      ),
      { out: 'self\nother\n' },
    ],
    [
      'tracing, which stays refused',
      lines(
        'os, subprocess, sys',
        'script = "import ctypes, os; c = ctypes.CDLL(None, use_errno=True); c.ptrace(16, os.getppid(), 0, 0); print(ctypes.get_errno())"',
        'run = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True)',
        'return {"out": run.stdout, "err": run.stderr[-300:]}',
      ),
      { out: '1\n', err: '' },
    ],
  ])('%s', async (_name, code, result) => {
    prewarmer = await PythonPrewarmer.launch();
    const outcome = await prewarmer.inject(code, { n: 3, other: process.pid });
    expect(outcome).toMatchObject({ kind: 'result' });
    expect(JSON.parse(outcome.result)).toEqual(result);
    expect(await prewarmer.unload()).toMatchObject(startedProcess);
    await prewarmer.end();
    prewarmer = await PythonPrewarmer.launch();
    expect(await prewarmer.result(lines('os', 'return args'), { a: 1 })).toEqual({ a: 1 });
  });

  test.each<[string, string, string, string]>([
    ['unload', 'sleep 1234.5', 'return {}', 'result'],
    ['crash', 'sleep 1234.6', 'import ctypes; ctypes.string_at(0)', 'signal'],
    ['deadline', 'sleep 1234.7', 'subprocess.run(["sleep", "1234.7"])', 'timeout'],
  ])('those that outlive it are gone after its %s', async (_name, sleep, end, kind) => {
    prewarmer = await PythonPrewarmer.launch();
    const start = `subprocess.Popen("(${sleep} & ${sleep}) & exec ${sleep}", shell=True, start_new_session=True)`;
    const code = lines('subprocess, time', start, 'time.sleep(0.3)', end);
    const outcome = await prewarmer.inject(code, {}, { loadTimeoutMs: 2000 }, kind === 'timeout' ? 1 : 20_000);
    expect(outcome.kind).toBe(kind);
    if (kind === 'result') {
      expect(marked(sleep).length).toBe(3);
      expect(await prewarmer.unload()).toMatchObject(startedProcess);
    } else {
      expect(outcome).toMatchObject(startedProcess);
    }
    await until(() => marked(sleep).length === 0);
  });

  test('many that start many end at the deadline', async () => {
    prewarmer = await PythonPrewarmer.launch();
    const code = lines(
      'os, time',
      'first = os.getpid()',
      'for _ in range(6): os.fork()',
      'if os.getpid() != first: os.execv("/bin/sleep", ["sleep", "1234.8"])',
      'while True: time.sleep(0.01)',
    );
    const outcome = await prewarmer.inject(code, {}, { loadTimeoutMs: 1500 }, 1);
    expect(outcome).toMatchObject({ kind: 'timeout', ...startedProcess });
    await until(() => marked('sleep 1234.8').length === 0);
  });

  test('a compiled module of its own is mapped, and the interpreter not used again', async () => {
    prewarmer = await PythonPrewarmer.launch();
    const archive = zipOf({
      '__main__.py': lines('ctypes, os', 'return {"seven": ctypes.CDLL(os.path.abspath("own.so")).seven()}'),
      'own.so': compileObject('int seven(void) { return 7; }'),
    });
    const outcome = await prewarmer.inject(Buffer.from(archive, 'base64'), {});
    expect(outcome).toMatchObject({ kind: 'result', result: '{"seven":7}' });
    expect(await prewarmer.unload()).toMatchObject({ ready: false, replace: 'The function mapped code of its own.' });
  });

  test('libraries of the system are mapped beside threads, and callbacks made', async () => {
    prewarmer = await PythonPrewarmer.launch();
    const code = lines(
      'ctypes, threading, time',
      'threading.Thread(target=time.sleep, args=(60,), daemon=True).start()',
      'libm = ctypes.CDLL("libm.so.6"); libm.sqrt.restype = ctypes.c_double; libm.sqrt.argtypes = [ctypes.c_double]',
      'import sqlite3',
      'twice = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda n: 2 * n)',
      'return {"root": libm.sqrt(9.0), "twice": twice(4), "sqlite": sqlite3.connect(":memory:").execute("select 5").fetchone()}',
    );
    const outcome = await prewarmer.inject(code, {});
    expect(JSON.parse(outcome.result)).toEqual({ root: 3, twice: 8, sqlite: [5] });
  });
});

const native = (statements: string) => `
#define _GNU_SOURCE
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static char text[256];
const char *gpuwhisk_main(const char *json) { int status = -1; pid_t pid = 0; ${statements}
  snprintf(text, sizeof text, "[%d]", status); return text; }`;

(injector ? describe : describe.skip)('processes of native functions', () => {
  test.each([
    ['fork', 'pid = fork(); if (pid == 0) _exit(5); waitpid(pid, &status, 0);'],
    [
      'vfork and exec',
      'pid = vfork(); if (pid == 0) execl("/bin/sh", "sh", "-c", "exit 5", NULL); waitpid(pid, &status, 0);',
    ],
    [
      'posix_spawn',
      'char *words[] = {"sh", "-c", "exit 5", NULL}; posix_spawn(&pid, "/bin/sh", NULL, NULL, words, environ); waitpid(pid, &status, 0);',
    ],
    ['system', 'status = system("exit 5");'],
  ])('%s', async (_name, statements) => {
    const prewarmer = await TestPrewarmer.launch();
    try {
      expect(await prewarmer.run(compileObject(native(statements)))).toMatchObject({
        kind: 'result',
        result: '[1280]',
      });
      expect(await prewarmer.unload()).toMatchObject({ ready: false, replace: 'The function started a process.' });
    } finally {
      await prewarmer.end();
    }
  });

  test('one that is waited for in vfork does not hold up the deadline', async () => {
    const prewarmer = await TestPrewarmer.launch();
    try {
      const waits = compileObject(native('pid = vfork(); if (pid == 0) for (;;) pause();'));
      const outcome = await prewarmer.run(waits, {}, { loadTimeoutMs: 200 }, 200);
      expect(outcome).toMatchObject({ kind: 'timeout', ready: false, replace: 'The function started a process.' });
    } finally {
      await prewarmer.end();
    }
  });
});
