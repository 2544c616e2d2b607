import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { createRuntimeCatalog } from '@gpuwhisk/invoker/runtimes/create-runtime-catalog';
import { checkCase, InjectedCases } from './runtime-cases.js';
import type { RuntimeCase } from './runtime-cases.js';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { RuntimeProcess } from './runtime-harness.js';

const runtimesDir = fileURLToPath(new URL('../../../runtimes', import.meta.url));
const dataDir = mkdtempSync(join(tmpdir(), 'gpuwhisk-catalog-'));
/** The JDK that npm run test:all brings (scripts/engines/jdk.mjs). */
const broughtJdk = fileURLToPath(new URL('../../../node_modules/.cache/jdk-21', import.meta.url));
const broughtPaths: Record<string, string> = existsSync(broughtJdk) ? { 'java:21': broughtJdk } : {};
const settings = { runtimesDir, dataDir, clock: systemClock };
const [catalog, ofMachine] = await Promise.all([
  createRuntimeCatalog({ ...settings, runtimePaths: broughtPaths }),
  createRuntimeCatalog(settings),
]);
/** The machine's first kind, and that of the brought JDK. */
const kinds = [
  ...(ofMachine.manifest.runtimes.java ?? []).slice(0, 1).map(({ kind }) => kind),
  ...Object.keys(broughtPaths),
];
const prepareMs = 180_000;
let launch: RuntimeLaunch;
let jar: string;

/** Every action of the cases, in one JAR. */
const source = `
import com.google.gson.*;
import java.util.*;

class Hello {
  static int runs = 0;
  public static JsonObject main(JsonObject args) { return args; }
  public static JsonArray main(JsonArray args) { return args; }
  public static JsonObject count(JsonObject args) { return of("runs", ++runs); }
  public static JsonObject nothing(JsonObject args) { return null; }
  public static JsonObject fails(JsonObject args) { throw new IllegalStateException("no luck"); }
  public static JsonObject overflows(JsonObject args) { return overflows(args); }
  public static JsonObject fills(JsonObject args) {
    List<byte[]> all = new ArrayList<>();
    while (true) all.add(new byte[8 << 20]);
  }
  public static JsonObject error(JsonObject args) { return of("error", "sorry"); }
  public static JsonObject exits(JsonObject args) { System.out.println("leaving"); System.exit(3); return args; }
  public static JsonObject halts(JsonObject args) { Runtime.getRuntime().halt(3); return args; }
  public static JsonObject exitsQuietly(JsonObject args) {
    try { Runtime.getRuntime().exit(3); } catch (Throwable ignored) { }
    return args;
  }
  public static JsonObject exitsByReference(JsonObject args) {
    java.util.function.IntConsumer exit = Runtime.getRuntime()::exit;
    switch (args.size()) { case 0: exit.accept(3); case 1: return null; case 5: case 9: return args; default: return args; }
  }
  public static JsonObject exitsElsewhere(JsonObject args) throws Exception {
    Thread thread = new Thread(() -> System.exit(4));
    thread.start();
    thread.join();
    return args;
  }
  public static JsonObject prints(JsonObject args) { System.out.print("out \\u2603"); System.err.println("err"); return args; }
  public static JsonObject nulls(JsonObject args) { JsonObject o = new JsonObject(); o.add("a", JsonNull.INSTANCE); o.addProperty("b", "<&>"); return o; }
  public static JsonObject env(JsonObject args) {
    JsonObject o = of("init", System.getenv("E"));
    o.addProperty("run", System.getenv("__OW_ACTIVATION_ID"));
    o.addProperty("all", System.getenv().get("E"));
    return o;
  }
  public static JsonObject resource(JsonObject args) throws Exception {
    ClassLoader loader = Thread.currentThread().getContextClassLoader();
    return of("text", new String(loader.getResourceAsStream("data.txt").readAllBytes(), "UTF-8"));
  }
  public static JsonObject uses(JsonObject args) { return new Gson().fromJson("{\\"m\\":" + new Helper().n + "}", JsonObject.class); }
  public static JsonObject threads(JsonObject args) {
    new Thread(() -> { try { Thread.sleep(1000000); } catch (InterruptedException e) { } }).start();
    return args;
  }
  public static JsonObject few(JsonObject args) { return args; }
  public static JsonArray fewBatch(JsonArray all) { return new JsonArray(); }
  public static JsonObject together(JsonObject args) { return args; }
  public static JsonArray togetherBatch(JsonArray all) {
    if (all.get(0).getAsJsonObject().has("fail")) throw new IllegalStateException("no luck");
    JsonArray results = new JsonArray();
    results.add(all);
    results.add("not this one");
    results.add(System.getenv("__OW_BATCH") == null);
    return results;
  }
  public static JsonObject oneByOne(JsonObject args) {
    if (args.has("fail")) throw new IllegalStateException("no luck");
    if (args.has("exit")) System.exit(3);
    return of("runs", ++runs);
  }
  public static String wrong(JsonObject args) { return ""; }
  public JsonObject member(JsonObject args) { return args; }
  static JsonObject of(String name, Object value) {
    JsonObject o = new JsonObject();
    if (value instanceof Number n) o.addProperty(name, n); else o.addProperty(name, (String) value);
    return o;
  }
}
class Helper { int n = 42; }
`;

function makeJar(): string {
  const folder = join(dataDir, 'jar');
  const classes = join(folder, 'classes');
  mkdirSync(classes, { recursive: true });
  writeFileSync(join(folder, 'Hello.java'), source);
  writeFileSync(join(classes, 'data.txt'), 'text ü');
  const classPath = launch.command[launch.command.indexOf('-cp') + 1] ?? '';
  const tool = (name: string): string => join(dirname(launch.command[0] ?? ''), name);
  execFileSync(tool('javac'), ['-encoding', 'UTF-8', '-cp', classPath, '-d', classes, join(folder, 'Hello.java')]);
  execFileSync(tool('jar'), ['--create', '--file', join(folder, 'hello.jar'), '-C', classes, '.']);
  return readFileSync(join(folder, 'hello.jar')).toString('base64');
}

const invoking = 'An error has occurred while invoking the action (see logs for details): ';
const exited = 'The action did not produce a valid response and exited unexpectedly.';
const occurred = 'An error has occurred (see logs for details): ';
const cases: (Omit<RuntimeCase, 'code' | 'name'> & { main: string })[] = [
  { main: 'Hello', value: { a: [1, 'ü☃'], n: 1.5 }, result: { a: [1, 'ü☃'], n: 1.5 } },
  { main: 'Hello', value: [1, 'x'], result: [1, 'x'] },
  { main: 'Hello#count', result: { runs: 1 } },
  { main: 'Hello#error', result: { error: 'sorry' } },
  { main: 'Hello#nulls', result: { a: null, b: '<&>' } },
  { main: 'Hello#env', env: { E: 'ü' }, result: { init: 'ü', run: 'f'.repeat(32), all: 'ü' } },
  { main: 'Hello#resource', result: { text: 'text ü' } },
  { main: 'Hello#uses', result: { m: 42 } },
  { main: 'Hello#threads', value: { a: 1 }, result: { a: 1 } },
  { main: 'Hello#prints', result: {}, stdout: 'out ☃', stderr: 'err\n' },
  { main: 'Hello#nothing', runError: `${occurred}java.lang.NullPointerException: The action returned null` },
  {
    main: 'Hello#fails',
    runError: `${invoking}java.lang.IllegalStateException: no luck`,
    stderr: /no luck\s+at Hello/,
  },
  { main: 'Hello#overflows', runError: `${invoking}java.lang.StackOverflowError` },
  { main: 'Hello#fills', runError: `${invoking}java.lang.OutOfMemoryError: Java heap space` },
  { main: 'Hello#exits', runError: exited, stdout: 'leaving\n', stderr: 'the action called exit with status 3\n' },
  { main: 'Hello#halts', runError: exited },
  { main: 'Hello#exitsQuietly', runError: exited },
  { main: 'Hello#exitsByReference', runError: exited },
  {
    main: 'Hello#together',
    batch: true,
    value: [{ a: 1 }, {}, {}],
    result: [[{ a: 1 }, {}, {}], 'not this one', 'The action did not return a dictionary or array.'],
  },
  {
    main: 'Hello#together',
    batch: true,
    value: [{ fail: 1 }, {}],
    runError: `${invoking}java.lang.IllegalStateException: no luck`,
  },
  { main: 'Hello#few', batch: true, value: [{}, {}], runError: /was given 2 requests and returned no array/ },
  {
    main: 'Hello#oneByOne',
    batch: true,
    value: [{}, { fail: 1 }, { exit: 1 }, {}],
    result: [{ runs: 1 }, `${invoking}java.lang.IllegalStateException: no luck`, exited, { runs: 2 }],
    stderr: /no luck\s+at Hello[^]*exit with status 3/,
  },
  { main: 'Hello#exitsElsewhere', exit: 4 },
  { main: 'None', initError: `${occurred}java.lang.ClassNotFoundException: None` },
  { main: 'Hello#none', initError: /NoSuchMethodException: Hello.none\(com.google.gson.JsonObject\)$/ },
  { main: 'Hello#wrong', initError: /NoSuchMethodException/ },
  { main: 'Hello#member', initError: /NoSuchMethodException/ },
  { main: '', initError: 'Missing main/no code to execute.' },
];

afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

(kinds.length > 0 ? describe : describe.skip).each(kinds.length > 0 ? [...new Set(kinds)] : ['java'])(
  'the runtime of %s',
  (kind) => {
    beforeAll(async () => {
      launch = await catalog.launch(kind, [], 256);
      jar = makeJar();
    }, prepareMs);

    const named = cases.map((each, at) => ({ ...each, name: `${at} ${each.main}` }));
    test.each(named)('$name', (given) => checkCase(launch, { ...given, code: jar, binary: true }));

    describe('as a pre-warmer', () => {
      const injected = new InjectedCases(() => launch);
      afterAll(() => injected.close());
      test.each(named)('$name', (given) => injected.check({ ...given, code: jar, binary: true }));
    });

    test.each([
      ['with line ends', (code: string) => `\n${code}\n`, {}],
      ['beside a variable of its name', (code: string) => code, { code: '"code":"!"' }],
    ])('code %s is loaded', (_, given, env) =>
      checkCase(launch, {
        name: '',
        code: given(jar),
        main: 'Hello#resource',
        env,
        binary: true,
        result: { text: 'text ü' },
      }),
    );

    test.each([
      ['not base64', '!', /IllegalArgumentException/],
      ['no JAR', 'abcd', /ZipException/],
    ])('code that is %s', (_, code, initError) =>
      checkCase(launch, { name: '', code, main: 'Hello', binary: true, initError }),
    );

    test('a JAR comes in frames of its own', async () => {
      const runtime = new RuntimeProcess(launch);
      try {
        const given = { code: jar, main: 'Hello#resource', binary: true };
        expect(await runtime.initInFrames(given, 1000)).toMatchObject({ isError: false, body: { ok: true } });
        expect((await runtime.run({})).body).toEqual({ text: 'text ü' });
      } finally {
        await runtime.close();
      }
    });

    test('state is kept between runs, and a second init refused', async () => {
      const runtime = new RuntimeProcess(launch);
      try {
        await runtime.init({ code: jar, main: 'Hello#count', binary: true });
        await runtime.run({});
        expect((await runtime.run({})).body).toEqual({ runs: 2 });
        const again = await runtime.init({ code: jar, main: 'Hello', binary: true });
        expect(again.body).toEqual({ error: 'Cannot initialize the action more than once.' });
      } finally {
        await runtime.close();
      }
    });

    test('the classes come from the archive', () => {
      const archive = launch.command.find((word) => word.startsWith('-XX:SharedArchiveFile='));
      const [program = '', ...flags] = launch.command;
      const printed = execFileSync(program, [...flags.slice(0, -1), '-Xlog:class+load', ...flags.slice(-1), '--warm'], {
        encoding: 'latin1',
      });
      expect(archive).toBeDefined();
      expect(printed).toMatch(/gpuwhisk\.Runtime source: shared objects file \(top\)/);
      expect(printed).toMatch(/com\.google\.gson\.JsonObject source: shared objects file \(top\)/);
    });

    test.each([
      ['hello says its kind, and bye ends it', 8, '{}', 0, ''],
      ['a type that only it sends', 4, '{}', 70, 'Protocol violation: a frame of type 4.\n'],
    ])('%s', async (_, type, text, status, stderr) => {
      const runtime = new RuntimeProcess(launch);
      const hello = await runtime.frame((frame) => frame.type === 1);
      expect(JSON.parse(hello.text)).toEqual({ version: 1, kind, pid: runtime.pid, batch: true, codeFrames: true });
      runtime.send(type, 0, text);
      expect(await runtime.exited).toBe(status);
      expect(runtime.stderr).toBe(stderr);
      await runtime.close();
    });

    test('ends when the invoker goes, in the middle of a run', async () => {
      const runtime = new RuntimeProcess(launch);
      await runtime.init({ code: jar, main: 'Hello#threads', binary: true });
      await runtime.run({});
      runtime.socket.end();
      expect(await runtime.exited).toBe(0);
      await runtime.close();
    });
  },
);
