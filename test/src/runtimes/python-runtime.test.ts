import { cpSync, mkdtempSync, rmSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { ProgramError } from '@gpuwhisk/invoker/host/programs';
import { createRuntimeCatalog } from '@gpuwhisk/invoker/runtimes/create-runtime-catalog';
import { findPython } from '@gpuwhisk/invoker/runtimes/find-toolchains';
import { compilePythonRuntime } from '@gpuwhisk/invoker/runtimes/python-runtime';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { notBuilt, pythonArchives, pythonSources, zipOf } from './python-cases.js';
import { checkCase } from './runtime-cases.js';
import { RuntimeProcess } from './runtime-harness.js';

const runtimesDir = fileURLToPath(new URL('../../../runtimes', import.meta.url));
const dataDir = mkdtempSync(join(tmpdir(), 'gpuwhisk-catalog-'));
const catalog = await createRuntimeCatalog({ runtimesDir, dataDir, clock: systemClock });
const kind = catalog.manifest.runtimes.python?.[0]?.kind;
const launch: RuntimeLaunch = kind
  ? await catalog.launch(kind, [])
  : { command: [], binds: [], env: {}, protocol: 'framed' };
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

(kind ? describe : describe.skip)('the Python runtime', () => {
  test.each(pythonSources)('source: $name', (given) => checkCase(launch, given));
  test.each(pythonArchives)('zip: $name', ({ files, ...given }) =>
    checkCase(launch, { ...given, code: zipOf(files), binary: true }),
  );

  test("an archive's modules may be named as the runtime's, but not replace one that the runtime uses", () => {
    const files = {
      '__main__.py':
        'import json, runtime\ndef main(args):\n  return {"own": runtime.x, "json": json.dumps({"s": "\\u00e9"})}',
      'json.py': 'raise ImportError("the one of the archive")',
      'runtime.py': 'x = 3',
    };
    const result = { own: 3, json: '{"s": "\\u00e9"}' };
    return checkCase(launch, { name: 'modules', code: zipOf(files), binary: true, result });
  });

  test('its modules are compiled once, and again when a source has changed', async () => {
    const python = await findPython(join(dataDir, 'python.json'));
    if (python === undefined) throw new Error('there is no Python');
    cpSync(join(runtimesDir, 'python'), join(dataDir, 'copy', 'python'), {
      recursive: true,
      filter: (path) => !path.endsWith('__pycache__'),
    });
    const { signal } = new AbortController();
    const compile = (executable: string) =>
      compilePythonRuntime(join(dataDir, 'copy'), { ...python, executable }, signal);
    await expect(compile('/nonexistent')).rejects.toThrow(ProgramError);
    await compile(python.executable);
    await compile('/nonexistent');
    utimesSync(join(dataDir, 'copy', 'python', 'runtime.py'), 1, 1);
    await expect(compile('/nonexistent')).rejects.toThrow(ProgramError);
  });

  test.each(pythonSources.slice(0, 12))('source, with frames by Python code: $name', (given) => {
    const at = launch.command.indexOf('--channel');
    return checkCase({ ...launch, command: launch.command.toSpliced(at, at < 0 ? 0 : 2) }, given);
  });

  test("a run's variables are in os.environ, in a copy of it and in a process that the function starts", async () => {
    const runtime = new RuntimeProcess(launch);
    try {
      await runtime.init({
        code: [
          'import os, subprocess, sys',
          'def main(args):',
          '  if args.get("skip"): return {}',
          '  child = subprocess.run(["/bin/sh", "-c", "printf %s $__OW_ACTIVATION_ID"], capture_output=True, text=True)',
          '  name = "__OW_ACTIVATION_ID"',
          '  return {"seen": [os.environ[name], os.environb[name.encode()].decode(), dict(os.environ)[name], os.getenv(name), child.stdout]}',
        ].join('\n'),
      });
      await runtime.run({ skip: 1 }, { activation_id: 'first' });
      const { body } = await runtime.run({}, { activation_id: 'second' });
      expect(body).toEqual({ seen: Array(5).fill('second') });
    } finally {
      await runtime.close();
    }
  });

  test.each([
    ['unusual JSON', '{"n":12345678901234567890123,"s":"\\ud83d\\ude00"}', { n: 1.2345678901234568e22, s: '😀' }],
    [
      'a nested value',
      JSON.stringify({ a: [{ b: [1.5, null, true, 'x\n"'] }] }),
      { a: [{ b: [1.5, null, true, 'x\n"'] }] },
    ],
  ])('%s comes back as it went', async (_, value, expected) => {
    const runtime = new RuntimeProcess(launch);
    try {
      await runtime.init({ code: 'main = dict' });
      runtime.send(3, 77, `{"value":${value},"activation_id":"x"}`);
      const { text } = await runtime.frame(({ id, type }) => id === 77 && type !== 6);
      expect(JSON.parse(text)).toEqual(expected);
    } finally {
      await runtime.close();
    }
  });

  test.each([
    ['no archive', 'Q2VjaSBuJ2VzdCBwYXMgdW4gemlwLgo=', /SyntaxError/],
    ['a torn zip', Buffer.from('PK\x03\x04torn').toString('base64'), /Zip file cannot be read/],
    ['a torn tar.gz', Buffer.from([0x1f, 0x8b, 8, 0, 1]).toString('base64'), /Archive cannot be read/],
  ])('archive: %s', (_, code, stderr) =>
    checkCase(launch, { name: '', code, binary: true, initError: notBuilt, stderr }),
  );

  test('source that looks like base64 is source', () =>
    checkCase(launch, { name: '', code: Buffer.from('main = dict').toString('base64'), binary: true, result: {} }));

  test('an async action keeps its event loop between runs', async () => {
    const runtime = new RuntimeProcess(launch);
    try {
      await runtime.init({
        code: 'import asyncio\nqueue = asyncio.Queue()\nasync def main(args):\n  await queue.put(1)\n  return {"n": queue.qsize()}',
      });
      expect((await runtime.run({})).body).toEqual({ n: 1 });
      expect((await runtime.run({})).body).toEqual({ n: 2 });
    } finally {
      await runtime.close();
    }
  });

  test('modules that are to be loaded ahead are, and one that is missing shows in the log', async () => {
    const runtime = new RuntimeProcess(launch, { GPUWHISK_IMPORTS: 'wave no_such_module' });
    try {
      const code =
        'import os, sys\ndef main(args):\n  return {"loaded": "wave" in sys.modules, "seen": "GPUWHISK_IMPORTS" in os.environ}';
      const answer = await runtime.init({ code });
      expect(answer.stderr).toMatch(/'no_such_module' of annotation 'warm' was not loaded: No module named/);
      expect((await runtime.run({})).body).toEqual({ loaded: true, seen: false });
    } finally {
      await runtime.close();
    }
  });

  test('an init tells how long the modules, the code and its entry took', async () => {
    const runtime = new RuntimeProcess(launch, { GPUWHISK_IMPORTS: 'wave' });
    try {
      const wait = (seconds: number): string => `time.sleep(${seconds})`;
      const code = `import time\n${wait(0.1)}\ndef load():\n  ${wait(0.2)}\ndef main(args):\n  return args`;
      const told = (await runtime.init({ code, entry: 'load' })).body as Record<string, number>;
      expect(told.importUs).toBeGreaterThan(0);
      expect(told.codeUs).toBeGreaterThanOrEqual(100_000);
      expect(told.entryUs).toBeGreaterThanOrEqual(200_000);
    } finally {
      await runtime.close();
    }
  });

  const inherited = (start: string): string =>
    `import os, subprocess\nread, write = os.pipe()\ndef main(args):\n  ${start}\n  return {"id": os.read(read, 99).decode().strip()}`;
  test.each([
    ['os.environ', 'import os\ndef main(args):\n  return {"id": os.environ["__OW_ACTIVATION_ID"]}'],
    ['os.getenv', 'from os import getenv\ndef main(args):\n  return {"id": getenv("__OW_ACTIVATION_ID")}'],
    [
      'an environment kept from before',
      'from os import environ\ndef main(args):\n  return {"id": dict(environ)["__OW_ACTIVATION_ID"]}',
    ],
    ['os.environb', 'import os\ndef main(args):\n  return {"id": os.environb[b"__OW_ACTIVATION_ID"].decode()}'],
    [
      'one that the action put in its place',
      'import os\nos.environ = {}\ndef main(args):\n  return {"id": os.environ["__OW_ACTIVATION_ID"]}',
    ],
    ['a process', inherited('subprocess.run("echo $__OW_ACTIVATION_ID", shell=True, stdout=write)')],
    [
      'a process of os.system',
      inherited('os.system("echo $__OW_ACTIVATION_ID >&%d" % (os.set_inheritable(write, True) or write))'),
    ],
    [
      'a process that another becomes',
      inherited(
        'os.set_inheritable(write, True)\n  if os.fork() == 0: os.dup2(write, 1); os.execl("/bin/sh", "sh", "-c", "echo $__OW_ACTIVATION_ID")\n  os.wait()',
      ),
    ],
  ])("a run's variables are in %s", async (_, code) => {
    const runtime = new RuntimeProcess(launch);
    try {
      expect((await runtime.init({ code })).body).toMatchObject({ ok: true });
      expect((await runtime.run({}, { activation_id: 'one' })).body).toEqual({ id: 'one' });
      expect((await runtime.run({}, { activation_id: 'two' })).body).toEqual({ id: 'two' });
    } finally {
      await runtime.close();
    }
  });

  test('what an action does to its environment stays', async () => {
    const runtime = new RuntimeProcess(launch);
    try {
      const code = `import os, subprocess
def main(args):
  before = os.environ.get("A")
  os.environ["A"] = "mine"
  del os.environ["__OW_ACTIVATION_ID"]
  return {"before": before, "left": subprocess.run("echo $A.$__OW_ACTIVATION_ID", shell=True, capture_output=True).stdout.decode()}`;
      await runtime.init({ code });
      expect((await runtime.run({})).body).toEqual({ before: null, left: 'mine.\n' });
      expect((await runtime.run({})).body).toEqual({ before: 'mine', left: 'mine.\n' });
    } finally {
      await runtime.close();
    }
  });

  test.each([
    [
      'traceback',
      'import traceback',
      'try: 1 / 0\n  except ZeroDivisionError: return {"text": traceback.format_exc()}',
    ],
    ['inspect', 'import inspect', 'return {"text": inspect.getsource(main) + "1 / 0"}'],
    [
      'a process that imports the action',
      'import subprocess, sys',
      'run = [sys.executable, "-S", "-c", "import inspect, main__; print(inspect.getsource(main__))"]\n  return {"text": subprocess.check_output(run, text=True) + "1 / 0"}',
    ],
  ])('its source is there for %s', async (_name, imports, body) => {
    const runtime = new RuntimeProcess(launch);
    try {
      await runtime.init({ code: `${imports}\ndef main(args):\n  ${body}` });
      expect((await runtime.run({})).body).toEqual({ text: expect.stringMatching(/main[^]*1 \/ 0/) });
    } finally {
      await runtime.close();
    }
  });

  test('a run that hangs ends when the invoker goes', async () => {
    const runtime = new RuntimeProcess(launch);
    try {
      await runtime.init({ code: 'import time\ndef main(args):\n  print("on", flush=True)\n  time.sleep(60)' });
      const run = runtime.run({});
      runtime.socket.end();
      await expect(run).rejects.toThrow('The runtime ended');
      expect(await runtime.exited).toBe(0);
    } finally {
      await runtime.close();
    }
  });
});
