import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import type { InjectOptions } from './inject-addon.js';
import { until } from '@gpuwhisk/common/testing/until';
import { folderWithNumpy, kernelState, python, PythonPrewarmer } from './python-functions.js';

/** A hostile function, and its outcome; afterwards the same interpreter serves the next one. */
interface Hostile {
  name: string;
  code: string;
  kind: 'result' | 'load' | 'signal' | 'exit' | 'timeout';
  /** The function's result. */
  result?: unknown;
  message?: RegExp;
  printed?: RegExp;
  options?: Partial<InjectOptions>;
  timeoutMs?: number;
}

const main = (imports: string, ...lines: string[]): string =>
  `import ${imports}\ndef main(args):\n${lines.map((line) => `  ${line}\n`).join('')}`;
const attempt = (imports: string, expression: string): string =>
  main(
    imports,
    'try:',
    `  ${expression}`,
    '  return {"done": True}',
    'except OSError as error:',
    '  return {"errno": error.errno}',
  );
const done = { done: true };
const notPermitted = { errno: 1 };

const hostile: Hostile[] = [
  {
    name: 'a NULL pointer',
    code: main('ctypes', 'ctypes.string_at(0)'),
    kind: 'signal',
    message: /SIGSEGV\) at address 0x0/,
    printed: /Segmentation fault[^]*main__\.py", line 3 in main/,
  },
  { name: 'a NULL pointer while loading', code: 'import ctypes\nctypes.string_at(0)', kind: 'signal' },
  { name: 'abort', code: main('os', 'os.abort()'), kind: 'signal', message: /abort/i },
  { name: 'os._exit', code: main('os', 'os._exit(5)'), kind: 'exit', message: /exit with status 5/ },
  { name: 'os._exit while loading', code: 'import os\nos._exit(6)', kind: 'exit', message: /exit with status 6/ },
  {
    name: 'a loop',
    code: main('sys', 'while True: pass'),
    kind: 'timeout',
    options: { loadTimeoutMs: 300 },
    timeoutMs: 1,
  },
  {
    name: 'a loop while loading',
    code: 'while True: pass',
    kind: 'timeout',
    options: { loadTimeoutMs: 300 },
    timeoutMs: 1,
  },
  {
    name: 'a stack that overflows',
    code: main('sys', 'sys.setrecursionlimit(10**9)', 'x = []', 'for _ in range(200_000): x = [x]', 'repr(x)'),
    kind: 'signal',
  },
  {
    name: 'becoming another program',
    code: attempt('os', 'os.execv("/bin/true", ["true"])'),
    kind: 'result',
    result: notPermitted,
  },
  { name: 'killing the proxy', code: attempt('os', 'os.kill(os.getppid(), 9)'), kind: 'result', result: notPermitted },
  {
    name: "the proxy's memory",
    code: attempt('os', 'open("/proc/%d/mem" % os.getppid(), "rb")'),
    kind: 'result',
    result: { errno: 13 },
  },
  {
    name: 'ptrace',
    code: main(
      'ctypes, os',
      'libc = ctypes.CDLL(None, use_errno=True)',
      'libc.ptrace(16, os.getppid(), 0, 0)',
      'return {"errno": ctypes.get_errno()}',
    ),
    kind: 'result',
    result: notPermitted,
  },
  {
    name: 'writing the Ready flag',
    code: main(
      'ctypes',
      'for line in open("/proc/self/maps"):',
      '  if "gpuwhisk-state" in line: ctypes.memset(int(line.split("-")[0], 16), 1, 4)',
    ),
    kind: 'signal',
  },
  {
    name: 'writing over the mailbox',
    code: main(
      'ctypes',
      'for line in open("/proc/self/maps"):',
      '  if "gpuwhisk-mailbox" in line:',
      '    start, end = (int(part, 16) for part in line.split()[0].split("-"))',
      '    ctypes.memset(start, 255, end - start)',
      'return {}',
    ),
    kind: 'result',
    result: {},
  },
  {
    name: 'all the memory',
    code: main('sys', 'kept = [bytearray(1 << 24) for _ in range(10**6)]'),
    kind: 'result',
    result: { error: 'MemoryError' },
    printed: /MemoryError/,
    options: { memoryMiB: 128 },
  },
  {
    name: 'threads that outlive it',
    code: main(
      'threading, time',
      'for _ in range(4): threading.Thread(target=time.sleep, args=(60,)).start()',
      'return {"done": True}',
    ),
    kind: 'result',
    result: done,
  },
  {
    name: 'signal handlers and a timer',
    code: main(
      'signal',
      'for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGSEGV, signal.SIGINT): signal.signal(number, lambda *_: None)',
      'signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)',
      'return {"done": True}',
    ),
    kind: 'result',
    result: done,
  },
  {
    name: 'other modules, changed or gone',
    code: main(
      'builtins, json, os, sys',
      'json.loads = json.dumps = os.fsencode = os.read = None',
      'sys.path.clear(); sys.modules.clear()',
      'builtins.len = builtins.open = builtins.compile = None',
      'os._exit(0)',
    ),
    kind: 'exit',
  },
  {
    name: 'open files',
    code: main('os', 'os.kept = [open("f%d" % i, "w") for i in range(50)]', 'return {"done": True}'),
    kind: 'result',
    result: done,
  },
];

const clean = main(
  'builtins, json, os, sys, threading',
  'return {"echo": json.loads(json.dumps(args)), "threads": threading.active_count(), "files": os.listdir("."),',
  '  "secret": hasattr(sys, "secret"), "len": len("four")}',
);
const cleanResult = { echo: { a: 1 }, threads: 1, files: [], secret: false, len: 4 };

(python ? describe : describe.skip)('hostile functions in the Python pre-warmer', () => {
  let prewarmer: PythonPrewarmer;

  beforeAll(async () => {
    prewarmer = await PythonPrewarmer.launch();
  });
  afterAll(() => prewarmer.end());

  test.each(hostile)('$name', async ({ code, kind, result, message, printed, options, timeoutMs }) => {
    const state = kernelState(prewarmer.pid);
    const outcome = await prewarmer.inject(code, {}, options, timeoutMs);
    expect(outcome).toMatchObject({ kind, ready: true, replace: '' });
    if (outcome.kind === 'result') expect(await prewarmer.unload()).toMatchObject({ ready: true, replace: '' });
    if (result !== undefined) expect(JSON.parse(outcome.result)).toEqual(result);
    if (message) expect(outcome.message).toMatch(message);
    const text = prewarmer.printed();
    if (printed) expect(text).toMatch(printed);
    expect(kernelState(prewarmer.pid)).toEqual(state);
    expect(await prewarmer.result(clean, { a: 1 })).toEqual(cleanResult);
  });

  test('a signal that came after its last call goes with the function', async () => {
    const timer = main(
      'signal',
      'signal.signal(signal.SIGALRM, lambda *_: None)',
      'signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)',
      'return {}',
    );
    expect((await prewarmer.inject(timer, {})).kind).toBe('result');
    const pending = (): boolean => /ShdPnd:\s+0*[1-9a-f]/.test(readFileSync(`/proc/${prewarmer.pid}/status`, 'utf8'));
    await until(pending);
    expect(await prewarmer.unload()).toMatchObject({ ready: true, replace: '' });
    expect(await prewarmer.result(clean, { a: 1 })).toEqual(cleanResult);
  });

  test('a secret of one run is nowhere in the memory that the next one sees', async () => {
    const secret = 'x7Qp-secret-of-a-namespace-9Zt';
    const plant = main(
      'ctypes, os, sys',
      'sys.secret = [args["secret"] * 50 for _ in range(200)]',
      'os.environ["S"] = args["secret"]',
      'ctypes.string_at(0)',
    );
    expect((await prewarmer.inject(plant, { secret })).kind).toBe('signal');
    const planted = main('sys', 'sys.secret = args["secret"] * 1000', 'return {}');
    expect((await prewarmer.inject(planted, { secret })).kind).toBe('result');
    await prewarmer.unload();
    // The pattern does not match itself.
    const hunt = main(
      'os, re',
      'needle = re.compile(b"x7Qp[-]secret[-]of[-]a[-]namespace")',
      'found = []',
      'with open("/proc/self/maps") as maps: lines = maps.readlines()',
      'memory = os.open("/proc/self/mem", os.O_RDONLY)',
      'for line in lines:',
      '  start, end = (int(part, 16) for part in line.split()[0].split("-"))',
      '  if line.split()[1][0] != "r" or "[v" in line: continue',
      '  try: found += [line for _ in needle.finditer(os.pread(memory, end - start, start))]',
      '  except OSError: continue',
      'os.close(memory)',
      'return {"found": found, "mappings": len(lines)}',
    );
    const answer = (await prewarmer.result(hunt)) as { found: string[]; mappings: number };
    expect(answer.found).toEqual([]);
    expect(answer.mappings).toBeGreaterThan(50);
  });

  test('what the kernel writes for a function is put back, whether or not other functions run between', async () => {
    const overwrite = main(
      'ctypes, json, os, sys',
      'text = json.__doc__',
      'end = (ctypes.c_char * 8).from_address(id(text) + sys.getsizeof(text) - 9)',
      'before = text[-8:]',
      'zeros = os.open("/dev/zero", os.O_RDONLY)',
      'os.readv(zeros, [end])',
      'return {"before": before, "after": text[-8:]}',
    );
    const first = (await prewarmer.result(overwrite)) as { before: string; after: string };
    expect(first.after).toBe('\0'.repeat(8));
    expect(first.before).not.toContain('\0');
    for (let round = 0; round < 70; round += 1) {
      if (round % 3 === 0) expect(await prewarmer.result(main('json', 'return args'), { round })).toEqual({ round });
      expect(await prewarmer.result(overwrite)).toEqual(first);
    }
  });
});

(python ? describe : describe.skip)('the Python pre-warmer where the kernel has no Landlock', () => {
  test('code that a function wrote over is found, whatever calls it made', async () => {
    const prewarmer = await PythonPrewarmer.launch([], [], ['GPUWHISK_LANDLOCK=0']);
    try {
      expect(await prewarmer.result(clean, { a: 1 })).toEqual(cleanResult);
      const patch = main(
        'ctypes, os',
        'where = ctypes.cast(ctypes.pythonapi.PyFrozenSet_New, ctypes.c_void_p).value',
        'memory = os.open("/proc/self/mem", os.O_RDWR)',
        'written = os.pwrite(memory, os.pread(memory, 1, where), where)',
        'os.close(memory)',
        'return {"written": written}',
      );
      expect(await prewarmer.inject(patch, {})).toMatchObject({ kind: 'result', result: '{"written":1}' });
      expect(await prewarmer.unload()).toMatchObject({
        ready: false,
        replace: 'The function wrote over code or constants of the pre-warmer.',
      });
    } finally {
      await prewarmer.end();
    }
  });
});

const packages = await folderWithNumpy();

(packages === undefined ? describe.skip : describe)('the Python pre-warmer with numpy', () => {
  test('1,000 functions by turns use numpy and poison it before they crash', async () => {
    const prewarmer = await PythonPrewarmer.launch(['numpy'], [packages ?? '']);
    const good = main(
      'numpy, sys',
      'return {"sum": float(numpy.arange(args["n"]).sum()), "poisoned": hasattr(sys, "poison")}',
    );
    const poison = main(
      'ctypes, json, numpy, sys',
      'sys.poison = [object() for _ in range(5000)]',
      'numpy.arange = numpy.zeros = numpy.float64 = json.dumps = None',
      'sys.modules["numpy"] = "poison"',
      'ctypes.string_at(0)',
    );
    try {
      const { pid } = prewarmer;
      const state = kernelState(pid);
      for (let run = 0; run < 500; run += 1) {
        expect(await prewarmer.inject(poison, {})).toMatchObject({ kind: 'signal', ready: true });
        expect(await prewarmer.result(good, { n: run + 1 })).toEqual({ sum: (run * (run + 1)) / 2, poisoned: false });
      }
      expect(kernelState(pid)).toEqual(state);
    } finally {
      await prewarmer.end();
    }
  }, 300_000);
});
