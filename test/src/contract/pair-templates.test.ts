import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import type { JsonObject } from '@gpuwhisk/common/json';
import { sleep, systemClock } from '@gpuwhisk/common/system/clock';
import { bareSpec } from '@gpuwhisk/invoker/containers/container-factory';
import type {
  CallOutcome,
  Container,
  ContainerFactory,
  ContainerSpec,
} from '@gpuwhisk/invoker/containers/container-factory';
import { createMsContainerFactory } from '@gpuwhisk/invoker/containers/mscontainer/mscontainer-factory';
import { PairTemplates } from '@gpuwhisk/invoker/containers/mscontainer/pair-templates';
import { createProcessFactory } from '@gpuwhisk/invoker/containers/process/process-factory';
import { createRuntimeCatalog } from '@gpuwhisk/invoker/runtimes/create-runtime-catalog';
import { hasPythonPairs } from '@gpuwhisk/invoker/runtimes/python-runtime';
import { limits, runRequest } from './container-calls.js';
import { hasLauncher, isRoot } from './process-harness.js';

const runtimesDir = fileURLToPath(new URL('../../../runtimes', import.meta.url));
const hourMs = 3_600_000;

(isRoot && hasLauncher && hasPythonPairs() ? describe : describe.skip)('pairs that are copies of a template', () => {
  const dataDir = mkdtempSync(join(homedir(), '.gpuwhisk-templates-'));
  const registry = new Registry();
  let factory: ContainerFactory;
  let spec: ContainerSpec;
  let packages: string;
  let laterMs = 0;
  const bounds = { maxMiB: 512 };
  const learned = { namespace: 'ns', takesMore: false, savesMs: 1000 };
  const started = new Set<Container>();

  beforeAll(async () => {
    const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + laterMs };
    const catalog = await createRuntimeCatalog({ runtimesDir, dataDir, clock: systemClock });
    const processes = createProcessFactory({ catalog, clock: systemClock, actionNetwork: false, dataDir });
    const templates = new PairTemplates(Object.assign(bounds, { processes, dataDir, clock }));
    factory = createMsContainerFactory({ processes, catalog, templates });
    expect((await factory.start()).weaknesses).toEqual([]); // Otherwise there are no templates.
    templates.show(registry);
    const kind = catalog.manifest.runtimes.python!.map((entry) => entry.kind).find((one) => catalog.supports(one))!;
    spec = { ...bareSpec(kind, 256), requirements: ['numpy'], imports: ['drawing_module', 'numpy'], installsFor: 'ns' };
    packages = (await catalog.launch(kind, spec.requirements, 256, 'ns')).env.PYTHONPATH!.split(':')[0]!;
    // So that OpenSSL's generators are in the template.
    writeFileSync(join(packages, 'drawing_module.py'), 'import ssl\nssl.RAND_bytes(8)\n');
    expect((await start()).unfit).toBeUndefined();
    await templatesAre(1);
  }, 120_000);
  afterEach(async () => {
    await Promise.all([...started].map((pair) => pair.destroy()));
    started.clear();
  });
  afterAll(async () => {
    await factory.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function start(wanted = spec, waits = false): Promise<Container> {
    const pair = await (waits ? factory.create(wanted) : factory.prewarm(wanted));
    started.add(pair);
    return pair;
  }

  async function figures(): Promise<{ copies: number; imports: Record<string, number>; templates: number }> {
    const values = async (name: string) => (await registry.getSingleMetric(name)!.get()).values;
    const imports = (await values('gpuwhisk_pair_imports_total')).map(({ labels, value }) => [labels.reason, value]);
    const [copies] = await values('gpuwhisk_pair_copies_total');
    const [templates] = await values('gpuwhisk_pair_templates');
    return { copies: copies!.value, imports: Object.fromEntries(imports), templates: templates!.value };
  }

  async function templatesAre(count: number): Promise<void> {
    const untilMs = systemClock.monotonicMs() + 30_000;
    for (let found = -1; found !== count; found = (await figures()).templates) {
      if (systemClock.monotonicMs() > untilMs) throw new Error(`there are ${found} templates instead of ${count}`);
      await sleep(systemClock, 20);
    }
  }

  const file = (): string => join(dataDir, 'templates', readdirSync(join(dataDir, 'templates'))[0]!);
  const digest = (): string => createHash('sha256').update(readFileSync(file())).digest('hex');

  async function call(pair: Container, code: string, value: JsonObject = {}): Promise<CallOutcome> {
    const env = { __OW_NAMESPACE: 'ns' };
    const loaded = await pair.init({ name: 'a', main: 'main', code, binary: false, env }, limits).outcome;
    if (loaded.type !== 'ok') return loaded;
    const deadline = String(Date.now() + 20_000);
    const { outcome, logs } = pair.run({ ...runRequest(value), namespace: 'ns', deadline }, limits);
    await logs;
    return outcome;
  }

  async function result(pair: Container, code: string, value: JsonObject = {}): Promise<JsonObject> {
    const outcome = await call(pair, code, value);
    if (outcome.type !== 'result') throw new Error(JSON.stringify(outcome));
    expect(await pair.unload(true, limits).outcome).toEqual({ type: 'ok' });
    return outcome.result as JsonObject;
  }

  const randoms = [
    'import os, random, ssl, uuid, tempfile, numpy',
    'def main(args):',
    '  return {"os": os.urandom(8).hex(), "random": random.random(), "numpy": float(numpy.random.rand()),',
    '    "new": float(numpy.random.default_rng().random()), "uuid": str(uuid.uuid4()), "tls": ssl.RAND_bytes(8).hex(),',
    '    "name": tempfile.mktemp()}',
  ].join('\n');

  test('two pairs of one template, made ahead or not, draw different random numbers of each sort', async () => {
    const before = await figures();
    const pairs = [await start(), await start(spec, true)];
    expect((await figures()).copies).toBe(before.copies + 2);
    const [one, other] = await Promise.all(pairs.map((pair) => result(pair, randoms)));
    for (const [name, value] of Object.entries(one!)) expect([name, other![name]]).not.toEqual([name, value]);
    expect(Object.keys(one!)).toHaveLength(7);
  });

  test('a copy is the same after each function, whatever that did to the memory of the template', async () => {
    const pair = await start();
    const before = digest();
    const sum =
      'import numpy\ndef main(args):\n  return {"x": float((numpy.ones((64, 64)) @ numpy.ones((64, 64))).sum())}';
    const change = [
      'import ctypes, gc, json, numpy, os, sys',
      'libc = ctypes.CDLL(None, use_errno=True)',
      'libc.mremap.restype = ctypes.c_void_p',
      'def main(args):',
      '  maps = [line.split() for line in open("/proc/self/maps") if line.endswith("/run/template\\n")]',
      '  own = [[int(x, 16) for x in line[0].split("-")] for line in maps if line[1] == "rw-p"]',
      '  start, end = max((one for one in own if one[0] > 0x7000_0000_0000), key=lambda one: one[1] - one[0])',
      '  refused = []',
      '  for empty in (4, 9): refused.append((libc.madvise(ctypes.c_void_p(start), 4096, empty), ctypes.get_errno()))',
      '  at = libc.mremap(ctypes.c_void_p(end - 4096), ctypes.c_size_t(4096), ctypes.c_size_t(8192), 1)',
      '  refused.append((at == 2**64 - 1, ctypes.get_errno()))',
      '  numpy.array = numpy.core = json.dumps = sys.modules["random"] = None',
      '  hoard = [bytes(1 << 20) for _ in range(64)]; del hoard; gc.collect()',
      '  if args["dies"]: libc.munmap(ctypes.c_void_p(end - 8192), ctypes.c_size_t(4096)); ctypes.string_at(0)',
      '  return {"refused": refused}',
    ].join('\n');
    const refused = [
      [-1, 22],
      [-1, 22],
      [true, 12],
    ]; // EINVAL, ENOMEM
    for (let round = 0; round < 30; round += 1) {
      expect(await result(pair, sum)).toEqual({ x: 262_144 });
      const dies = round % 2 === 0; // A process without that memory would sooner or later.
      expect(await call(pair, change, { dies })).toMatchObject(dies ? { type: 'error' } : { result: { refused } });
      expect(await pair.unload(true, limits).outcome).toEqual({ type: 'ok' });
    }
    expect(digest()).toBe(before);
    expect(await result(await start(), sum)).toEqual({ x: 262_144 });
  }, 60_000);

  test('a copy reaches neither the template nor other pairs', async () => {
    const [one, other] = [await start(), await start()];
    const code = [
      'import os',
      'def attempt(work, *values):',
      '  try: return str(work(*values))',
      '  except OSError as error: return type(error).__name__',
      'def main(args):',
      '  open("/tmp/mark", "w").close()',
      '  return {"read": attempt(open, "/run/template"), "write": attempt(os.open, "/run/template", os.O_RDWR),',
      '    "all": sorted(int(name) for name in os.listdir("/proc") if name.isdigit()), "pid": os.getpid(),',
      '    "others": [attempt(os.kill, pid, 0) for pid in range(1, 300) if pid != os.getpid()],',
      '    "traced": attempt(open, f"/proc/{os.getppid()}/mem", "rb")}',
    ].join('\n');
    for (const pair of [one, other]) {
      const seen = await result(pair, code);
      expect(seen).toMatchObject({ read: 'PermissionError', write: 'PermissionError', pid: 3, all: [1, 2, 3] });
      expect(seen.traced).toBe('PermissionError');
      expect(new Set(seen.others as string[])).toEqual(new Set(['PermissionError']));
    }
  });

  test('where a copy fails, and where modules are unfit, pairs import; after three failures for an hour', async () => {
    writeFileSync(file(), 'damaged');
    const before = await figures();
    const code = 'import numpy\ndef main(args):\n  return {"version": numpy.__version__}';
    expect(Object.keys(await result(await start(), code))).toEqual(['version']);
    expect(await figures()).toMatchObject({ copies: before.copies, imports: { failed: before.imports.failed! + 1 } });
    await templatesAre(1); // Made again.
    await start();
    expect((await figures()).copies).toBe(before.copies + 1);

    writeFileSync(
      join(packages, 'busy_module.py'),
      'import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n',
    );
    const busy = { ...spec, imports: ['busy_module'] };
    expect((await start(busy)).unfit).toBe('It has 2 threads.');
    const wide = 'import gpuwhisk_mailbox\n';
    writeFileSync(
      join(packages, 'wide_module.py'),
      `${wide}put = gpuwhisk_mailbox.put_texts\ngpuwhisk_mailbox.put_texts = lambda box, names: put(box, [*names, "--write", "/usr"])\n`,
    );
    const limited = 'import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))\n';
    writeFileSync(join(packages, 'limited_module.py'), limited);
    const spread = [
      'import ctypes, glob, os',
      'path = max(glob.glob(os.path.dirname(__file__) + "/**/*.so*", recursive=True), key=os.path.getsize)',
      'file, size = os.open(path, os.O_RDONLY), os.path.getsize(path)',
      'call = ctypes.CDLL(None).mmap',
      'call.restype, call.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]',
      'for _ in range((700 << 20) // size): ctypes.memset(call(None, size, 3, 2, file, 0), 1, 1)  # One page of it is its own.',
      'os.close(file)',
    ];
    writeFileSync(join(packages, 'spread_module.py'), spread.join('\n'));
    const unfit = async (module: string) => (await start({ ...spec, imports: [module] })).unfit;
    expect(await unfit('wide_module')).toBe('It names folders that it was not given.');
    expect(await unfit('limited_module')).toMatch(/^It has changed its limits/);
    const large = { ...spec, memoryMiB: 2048, imports: ['spread_module'] };
    expect((await start(large)).unfit).toMatch(/^Its template has \d{3,} MiB of at most 512\.$/);
    for (let round = 0; round < 20 && (await figures()).imports.off === 0; round += 1) {
      await result(await start(busy), 'import busy_module\ndef main(args):\n  return {}');
    }
    expect((await figures()).imports.off).toBe(1);
    expect((await figures()).templates).toBe(1);
    laterMs += hourMs;
    await start(busy);
    expect((await figures()).imports.off).toBe(1);
  }, 60_000);

  test('a module of 2 GiB that it has not written makes a small template; one that it has written, none', async () => {
    const before = (await figures()).templates;
    const sparse =
      'import mmap\nspace = mmap.mmap(-1, 2 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\nspace[1 << 30] = 7\n';
    writeFileSync(join(packages, 'sparse_module.py'), sparse);
    const wanted = { ...spec, imports: ['sparse_module'] };
    expect((await start(wanted)).unfit).toBeUndefined();
    await templatesAre(before + 1);
    const folder = join(dataDir, 'templates');
    for (const name of readdirSync(folder)) expect(statSync(join(folder, name)).size).toBeLessThan(128 * 2 ** 20);
    const code =
      'from sparse_module import space\ndef main(args):\n  return {"bytes": len(space), "seen": [space[1 << 30], space[0]]}';
    const copies = (await figures()).copies;
    expect(await result(await start(wanted), code)).toEqual({ bytes: 2 ** 31, seen: [7, 0] });
    expect((await figures()).copies).toBe(copies + 1);

    writeFileSync(join(packages, 'written_module.py'), 'text = bytes([7]) * (2 << 30)\n');
    await expect(start({ ...spec, imports: ['written_module'], learned })).rejects.toThrow();
    expect((await figures()).templates).toBe(before + 1);
  }, 60_000);

  test('memory that a fork wipes is empty in a copy, which outlives its template', async () => {
    const lines = [
      'import mmap',
      'kept, wiped = [mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for _ in "ab"]',
    ];
    lines.push('kept[0] = wiped[0] = 7', 'wiped.madvise(18)  # MADV_WIPEONFORK');
    writeFileSync(join(packages, 'wiped_module.py'), lines.join('\n'));
    const wiped = { ...spec, imports: ['wiped_module'] };
    const code = 'from wiped_module import kept, wiped\ndef main(args):\n  return {"first": [kept[0], wiped[0]]}';
    expect(await result(await start(wiped, true), code)).toEqual({ first: [7, 7] });
    await templatesAre(3);
    const copy = await start(wiped);
    expect(await result(copy, code)).toEqual({ first: [7, 0] });

    // Room for one of this size, and then for none.
    const folder = join(dataDir, 'templates');
    const sizes = readdirSync(folder).map((name) => statSync(join(folder, name)).size);
    bounds.maxMiB = Math.ceil(Math.min(...sizes) / 2 ** 20) + 1;
    await start({ ...spec, imports: ['decimal'] });
    await templatesAre(1);
    bounds.maxMiB = 1;
    expect((await start({ ...spec, imports: ['fractions'] })).unfit).toMatch(
      /^Its template has \d+ MiB of at most 1\.$/,
    );
    await templatesAre(1);
    expect(await result(copy, code)).toEqual({ first: [7, 0] });
  });

  test('a function that waits gets a copy with learned modules only where there is a template, and nothing is made for it', async () => {
    bounds.maxMiB = 512;
    const wanted = { ...spec, learned };
    const before = await figures();
    expect(await factory.copy!(wanted)).toBeUndefined();
    expect(await figures()).toEqual(before);
    await start(wanted);
    await templatesAre(before.templates + 1);
    // Specs of one set come with their properties in any order.
    const pair = (await factory.copy!({ learned, ...spec, memoryMiB: 512 }))!;
    started.add(pair);
    expect(pair).toMatchObject({ isCopy: true, canUnload: true, spec: { imports: spec.imports, memoryMiB: 512 } });
    const code = 'import sys\nhad = "numpy" in sys.modules\ndef main(args):\n  return {"had": had}';
    expect(await result(pair, code)).toEqual({ had: true });
    expect(await factory.copy!({ ...wanted, learned: { ...learned, namespace: 'other' } })).toBeUndefined();
    expect(await factory.copy!({ ...wanted, imports: ['numpy'] })).toBeUndefined();
  });
});
