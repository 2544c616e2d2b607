import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { withoutHalfPairs } from '@gpuwhisk/common/json';
import { pythonArchives, pythonSources, zipOf } from '../runtimes/python-cases.js';
import type { RuntimeCase } from '../runtimes/runtime-cases.js';
import { RuntimeProcess } from '../runtimes/runtime-harness.js';
import { digestOf } from './native-functions.js';
import { proxyLaunch, python } from './python-functions.js';

/** A result in the form in which the platform keeps it; most are unchanged, and may contain matchers. */
const stored = (result: unknown): unknown => {
  const text = JSON.stringify(result);
  return withoutHalfPairs(text) === text ? result : JSON.parse(withoutHalfPairs(text));
};
const exitedLoading = 'The action did not initialize and exited unexpectedly.';
const exitedRunning = 'The action did not produce a valid response and exited unexpectedly.';

(python ? describe : describe.skip)('the proxy with a Python pre-warmer', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'gpuwhisk-scratch-'));
  let runtime: RuntimeProcess;
  const start = (): void => {
    runtime = new RuntimeProcess(proxyLaunch(scratch));
  };
  const soon = (): { deadline: string } => ({ deadline: String(Date.now() + 20_000) });
  const init = (code: string, more: object = {}) => runtime.init({ code, ...more });

  afterAll(() => rmSync(scratch, { recursive: true, force: true }));

  describe('answers as the runtime does', () => {
    let started: RuntimeProcess | undefined;
    beforeEach(() => {
      if (!started) start();
      started = runtime;
    });
    afterAll(() => started?.close());

    async function check(given: RuntimeCase): Promise<void> {
      const { code, main = 'main', entry, binary = false, env = {} } = given;
      const printed = { stdout: runtime.stdout.length, stderr: runtime.stderr.length };
      const loaded = await runtime.init({ code, main, binary, env, ...(entry !== undefined && { entry }) });
      const size = given.batch === true ? { batch: String((given.value as unknown[]).length) } : {};
      const answer = loaded.isError ? loaded : await runtime.run(given.value ?? {}, { ...soon(), ...size });
      const exited = loaded.isError ? exitedLoading : exitedRunning;
      const error = given.exit === undefined ? (given.initError ?? given.runError) : exited;
      expect(answer.isError).toBe(error !== undefined);
      if (error === undefined) expect(answer.body).toEqual(stored(given.result));
      else expect((answer.body as { error: string }).error).toMatch(error);
      for (const stream of ['stdout', 'stderr'] as const) {
        const text = runtime[stream].slice(printed[stream]);
        const wanted = given[stream];
        if (typeof wanted === 'string') expect(text).toContain(wanted);
        else if (wanted) expect(text).toMatch(wanted);
      }
      expect((await runtime.unload()).body).toEqual({ ok: true, verifyUs: expect.any(Number) });
      expect(readdirSync(runtime.folder)).toEqual([]);
    }

    test.each(pythonSources)('source: $name', (given) => check(given));
    test.each(pythonArchives)('zip: $name', ({ files, ...given }) =>
      check({ ...given, code: zipOf(files), binary: true }),
    );
  });

  describe('one after the other', () => {
    beforeEach(start);
    afterEach(() => runtime.close());

    test('says hello with its process, which stays the same', async () => {
      const { text } = await runtime.frame(({ type }) => type === 1);
      expect(JSON.parse(text)).toEqual({
        version: 1,
        kind: expect.stringMatching(/^python:3\./),
        pid: expect.any(Number),
        parts: true,
        batch: true,
        unload: true,
        endsLate: true,
      });
      const code =
        'import os\nos.n = getattr(os, "n", 0) + 1\ndef main(args):\n  return {"pid": os.getpid(), "n": os.n}';
      for (let round = 0; round < 3; round += 1) {
        expect((await init(code)).body).toEqual({ ok: true });
        expect((await runtime.run({}, soon())).body).toEqual({ pid: JSON.parse(text).pid, n: 1 });
        expect((await runtime.check()).body).toEqual({ ok: true });
        expect((await runtime.unload(round > 0)).isError).toBe(false);
        expect((await runtime.check()).body).toEqual({ ok: true });
      }
    });

    test('runs the code of one namespace only, and code with its digest', async () => {
      const code = 'main = dict';
      const of = (namespace: string) => ({ env: { __OW_NAMESPACE: namespace } });
      const wrong = await init(code, { ...of('one'), digest: digestOf(Buffer.from('other')) });
      expect((wrong.body as { error: string }).error).toContain('SHA-256');
      expect((await init(code, { ...of('one'), digest: digestOf(Buffer.from(code)) })).isError).toBe(false);
      expect((await runtime.unload()).isError).toBe(false);
      expect(await init(code, of('two'))).toMatchObject({
        isError: true,
        body: { error: 'This runtime has run code of another namespace.' },
      });
      expect((await init(code, of('one'))).isError).toBe(false);
    });

    test('a crash is rolled back, and the action runs again; its files are gone with it', async () => {
      const files = {
        '__main__.py':
          'import ctypes, other\ndef main(args):\n  if args.get("die"): ctypes.string_at(0)\n  return {"x": other.x}',
        'other.py': 'x = 7',
      };
      await init(zipOf(files), { binary: true });
      const died = await runtime.run({ die: true }, soon());
      expect(died).toMatchObject({ isError: true, body: { error: expect.stringContaining('SIGSEGV') } });
      expect(died.stderr).toMatch(/main__\.py", line 3 in main/);
      expect(readdirSync(runtime.folder)).toEqual([]);
      expect((await runtime.run({}, soon())).body).toEqual({ x: 7 });
    });

    test('what a function left in the folders is removed, links themselves and not what they point at', async () => {
      const kept = join(scratch, 'kept');
      const outside = mkdtempSync(join(tmpdir(), 'gpuwhisk-outside-'));
      mkdirSync(kept, { recursive: true });
      writeFileSync(join(outside, 'file'), '');
      symlinkSync(outside, join(kept, 'link'));
      await runtime.close();
      start();
      const code = [
        'import os',
        'def main(args):',
        '  os.symlink(args["outside"], "link")',
        '  os.symlink(args["outside"], args["scratch"] + "/link")',
        '  os.makedirs(args["scratch"] + "/a/b/c"); os.chmod(args["scratch"] + "/a/b", 0)',
        '  open(".hidden", "w").close(); os.mkfifo("pipe")',
        '  here = os.open(".", os.O_RDONLY)',
        '  for _ in range(2000):',
        '    os.mkdir("d", dir_fd=here); below = os.open("d", os.O_RDONLY, dir_fd=here); os.close(here); here = below',
        '  return {}',
      ].join('\n');
      await init(code);
      const filled = await runtime.run({ outside, scratch }, soon());
      expect(filled.body).toEqual({});
      await runtime.unload();
      expect(readdirSync(runtime.folder)).toEqual([]);
      expect(readdirSync(scratch)).toEqual(['kept']);
      expect(existsSync(join(outside, 'file'))).toBe(true);
      rmSync(outside, { recursive: true, force: true });
    });

    test('is of no more use after what cannot be put back', async () => {
      await init('import os\ndef main(args):\n  os.chdir("/")\n  return {}');
      await runtime.run({}, soon());
      expect(await runtime.unload()).toMatchObject({
        isError: true,
        body: { error: expect.stringContaining('cannot serve on') },
      });
      expect(await runtime.exited).toBe(1);
    });

    test('code that is compiled at run time runs, never writable and executable at once', async () => {
      const code = [
        'import ctypes, mmap',
        'libc = ctypes.CDLL(None, use_errno=True)',
        'memory = mmap.mmap(-1, 4096)',
        'memory.write(bytes.fromhex("b82a000000c3"))',
        'address = ctypes.addressof(ctypes.c_char.from_buffer(memory))',
        'def main(args):',
        '  both = libc.mprotect(ctypes.c_void_p(address), 4096, 7)',
        '  one = libc.mprotect(ctypes.c_void_p(address), 4096, 5)',
        '  return {"both": both, "one": one, "answer": ctypes.CFUNCTYPE(ctypes.c_int)(address)()}',
      ].join('\n');
      await init(code);
      expect((await runtime.run({}, soon())).body).toEqual({ both: -1, one: 0, answer: 42 });
      expect(await runtime.unload()).toMatchObject({
        isError: true,
        body: { error: expect.stringContaining('made code at run time') },
      });
    });

    test('runs on after a pause, with threads and processes of its own', async () => {
      const code = [
        'import subprocess, threading, time',
        'child = subprocess.Popen(["/bin/sleep", "600"])',
        'turns = 0',
        'def turn():',
        '  global turns',
        '  while True:',
        '    turns += 1; time.sleep(0.001)',
        'threading.Thread(target=turn, daemon=True).start()',
        'def main(args):',
        '  before = turns; time.sleep(0.05)',
        '  return {"turns": turns > before, "child": open(f"/proc/{child.pid}/stat").read().split()[2] in "St"}',
      ].join('\n');
      const { text } = await runtime.frame(({ type }) => type === 1);
      await init(code);
      for (const signal of ['SIGSTOP', 'SIGCONT'] as const) {
        process.kill((JSON.parse(text) as { pid: number }).pid, signal);
        await new Promise((done) => setTimeout(done, 50));
      }
      expect((await runtime.run({}, soon())).body).toEqual({ turns: true, child: true });
    });

    test('a repeat call goes by the socket for runs, and all else by the other', async () => {
      const code = 'import os\ndef main(args):\n  return {"id": os.environ["__OW_ACTIVATION_ID"], "value": args}';
      await init(code);
      for (const id of ['one', 'two']) {
        const { body } = await runtime.run({ a: 1 }, { ...soon(), activation_id: id });
        expect(body).toEqual({ id, value: { a: 1 } });
      }
      expect((await runtime.check()).body).toEqual({ ok: true });
      await runtime.run({}, soon());
      expect(runtime.frames.filter(({ type, isDirect }) => isDirect && type === 4)).toHaveLength(3);
      expect((await runtime.unload()).isError).toBe(false);
    });

    test('a crash of a direct run is answered by the proxy, and the next run loads the code again', async () => {
      await init(
        'import ctypes\nn = 0\ndef main(args):\n  global n; n += 1\n  ctypes.string_at(0) if "die" in args else 0\n  return {"n": n}',
      );
      expect((await runtime.run({}, soon())).body).toEqual({ n: 1 });
      expect(await runtime.run({ die: 1 }, soon())).toMatchObject({ isError: true });
      for (const n of [1, 2]) expect((await runtime.run({}, soon())).body).toEqual({ n });
      expect((await runtime.unload()).isError).toBe(false);
    });

    test('a cancelled run has a second to end, and is rolled back then', async () => {
      await init('import time\ndef main(args):\n  time.sleep(args["s"])\n  return args');
      const patient = runtime.run({ s: 0.5 }, soon());
      await new Promise((done) => setTimeout(done, 100));
      runtime.send(7, 2, '{}');
      expect((await patient).body).toEqual({ s: 0.5 });
      const late = runtime.run({ s: 30 }, soon());
      await new Promise((done) => setTimeout(done, 100));
      runtime.send(7, 3, '{}');
      expect((await late).body).toEqual({ error: 'The function exceeded its time limit.' });
      expect((await runtime.unload()).isError).toBe(false);
      await init('main = dict');
      expect((await runtime.run({}, soon())).body).toEqual({});
    });

    test('a function that closes the socket for runs is answered for by the proxy', async () => {
      await init('import os\ndef main(args):\n  os.closerange(3, 1024)\n  return args');
      for (const a of [1, 2]) expect((await runtime.run({ a }, soon())).body).toEqual({ a });
      expect((await runtime.unload()).isError).toBe(true);
    });

    test.each([
      ['an option', 'socket.socket(fileno=os.dup(500)).setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 5000)'],
      [
        'a time limit',
        'socket.socket(fileno=os.dup(500)).settimeout(1); s = socket.socket(fileno=os.dup(500)); s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bytes([9] + [0] * 15))',
      ],
    ])('%s that a function leaves in the socket for runs ends the pair', async (_, statement) => {
      await init(`import os, socket\ndef main(args):\n  ${statement}\n  return {}`);
      await runtime.run({}, soon());
      expect(await runtime.unload()).toMatchObject({
        isError: true,
        body: { error: expect.stringContaining('socket for runs') },
      });
      expect(await runtime.exited).toBe(1);
    });

    test('a thread that ends the process does so in a run, whose answer is an error', async () => {
      const code = [
        'import os, threading, time',
        'def later():',
        '  time.sleep(0.02); os._exit(1)',
        'def main(args):',
        '  if "arm" in args: threading.Thread(target=later).start()',
        '  else: time.sleep(args["s"])',
        '  return args',
      ].join('\n');
      await init(code);
      await runtime.run({ arm: 1 }, soon());
      await new Promise((done) => setTimeout(done, 50));
      expect((await runtime.run({ s: 5 }, soon())).body).toEqual({ error: exitedRunning });
      expect((await runtime.run({ s: 0 }, soon())).body).toEqual({ s: 0 });
    });

    test('a check finds a pre-warmer that is gone', async () => {
      const { text } = await runtime.frame(({ type }) => type === 1);
      process.kill((JSON.parse(text) as { pid: number }).pid, 'SIGKILL');
      expect(await runtime.check()).toMatchObject({ isError: true });
    });
  });
});
