// The local loop, as processes: gpuwhisk dev on a platform of its own, with a debugger, and gpuwhisk deploy.
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import { hasPython } from '../support/machine.js';
import { until } from '../support/running-platform.js';
import { startFakeOpenWhisk } from './fake-openwhisk.js';
import { runBinary } from './wsk-process.js';

const gpuwhisk = fileURLToPath(new URL('../../../bin/gpuwhisk', import.meta.url));
const python = hasPython ? test : test.skip;
const longMs = 60_000;

let folder: string;
const started: ChildProcess[] = [];
const closing: (() => Promise<void>)[] = [];
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'gpuwhisk-dev-test-')));
});
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGINT');
});
afterAll(async () => {
  for (const close of closing) await close();
  rmSync(folder, { recursive: true, force: true });
});

const write = (name: string, text: string): void => {
  mkdirSync(join(folder, name, '..'), { recursive: true });
  writeFileSync(join(folder, name), text);
};
const environment = (): Record<string, string> => {
  mkdirSync(join(folder, 'tmp'), { recursive: true });
  return { TMPDIR: join(folder, 'tmp') };
};

/** A running `gpuwhisk dev`. */
interface Loop {
  pid: number;
  output(): string;
  /** The next run, as --json tells it. */
  next(): Promise<JsonObject>;
  interrupt(): Promise<number | null>;
}

function dev(args: string[], env: Record<string, string> = {}): Loop {
  const child = spawn(process.execPath, [gpuwhisk, 'dev', ...args], {
    cwd: folder,
    env: { PATH: process.env['PATH'], HOME: folder, ...environment(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  started.push(child);
  let [text, taken] = ['', 0];
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  }
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve));
  return {
    pid: child.pid ?? 0,
    output: () => text,
    async next() {
      const lines = (): string[] => text.split('\n').slice(0, -1);
      await until(`run ${taken + 1} is told`, () => lines().length > taken || child.exitCode !== null, longMs);
      const line = lines()[taken++];
      if (line === undefined) throw new Error(text);
      return JSON.parse(line) as JsonObject;
    },
    interrupt() {
      child.kill('SIGINT');
      return exited;
    },
  };
}

/** Processes whose command names a text. */
function processesWith(text: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text);
    } catch {
      return false; // It has ended meanwhile.
    }
  });
}

test(
  'a saved file runs at once, errors have their place, the loop goes on, and its end leaves nothing',
  async () => {
    write('hello.js', "function main({ name }) { console.log('greets'); return { text: 'hello ' + name }; }");
    const loop = dev(['hello.js', '-p', 'name', 'you', '--json']);
    expect(await loop.next()).toMatchObject({ ok: true, result: { text: 'hello you' }, logs: ['greets'] });
    write('hello.js', "function main({ name }) { return { text: 'bye ' + name }; }");
    const { ms, ...second } = await loop.next();
    expect(second).toMatchObject({ run: 2, name: 'hello', ok: true, result: { text: 'bye you' }, logs: [] });
    expect(Object.keys(ms as object)).toEqual(['read', 'upload', 'wait', 'load', 'run', 'rest', 'total']);
    const failures: [code: string, line: number, error: RegExp][] = [
      ['function main() {\n  retrun {};\n}', 2, /SyntaxError/],
      ["function main() {\n\n  throw new TypeError('oh');\n}", 3, /TypeError: oh/],
      ["async function main() {\n  return Promise.reject(new Error('late'));\n}", 2, /Error: late/],
      ['function other() {}', 1, /Action entrypoint 'main' is not a function/],
    ];
    for (const [code, line, error] of failures) {
      write('hello.js', code);
      expect(await loop.next()).toMatchObject({
        ok: false,
        at: { file: 'hello.js', line },
        error: expect.stringMatching(error),
      });
    }
    // Its annotations are read again, too, and a bad one is told in the platform's words.
    const manifest = (memoryMiB: string): string =>
      `packages: { tools: { actions: { hi: { function: hello.js, annotations: { gpu: { memoryMiB: ${memoryMiB} } } } } } }`;
    write('manifest.yaml', manifest('much'));
    expect(await loop.next()).toMatchObject({ ok: false, error: expect.stringContaining("Field 'memoryMiB'") });
    write('manifest.yaml', 'packages: [');
    expect(await loop.next()).toMatchObject({ ok: false, error: expect.stringContaining('manifest.yaml') });
    write('hello.js', 'function main() { return { on: true }; }');
    await loop.next();
    write('manifest.yaml', manifest('512'));
    expect(await loop.next()).toMatchObject({
      name: 'tools/hi',
      result: { on: true },
      gpu: { share: expect.any(Number), queueMs: expect.any(Number) },
    });
    const platforms = processesWith(join(folder, 'tmp'));
    expect(platforms.length).toBeGreaterThan(0);
    expect(await loop.interrupt()).toBe(0);
    expect(processesWith(join(folder, 'tmp'))).toEqual([]);
    expect(readdirSync(join(folder, 'tmp'))).toEqual([]);
    rmSync(join(folder, 'manifest.yaml'));
  },
  2 * longMs,
);

python(
  'a folder is packed with its modules, and people read log, result and times',
  async () => {
    write('tool/__main__.py', 'from helper import double\ndef main(args):\n  print("counts")\n  return double(args)\n');
    write('tool/helper.py', 'def double(args):\n  return {"twice": 2 * args["n"]}\n');
    const good = await runBinary(process.execPath, [gpuwhisk, 'dev', 'tool', '--input', '{"n": 4}', '--once'], {
      directory: folder,
      environment: environment(),
    });
    expect(good).toMatchObject({ code: 0, stderr: '' });
    expect(good.stdout).toMatch(
      /^tool:\ncounts\n\{\n {2}"twice": 8\n\}\nok: tool in [\d.]+ ms \(read .*, upload .*\), \w+ start\n/,
    );
    write('tool/helper.py', 'def double(args):\n  return {"twice": 2 * args["m"]}\n');
    const bad = await runBinary(process.execPath, [gpuwhisk, 'dev', 'tool', '--once'], {
      directory: folder,
      environment: environment(),
    });
    expect(bad.code).toBe(1);
    expect(bad.stdout).toMatch(/tool\/helper\.py:2: application error/);
  },
  2 * longMs,
);

test(
  'a Node.js debugger attaches, and the code is reloaded beneath it',
  async () => {
    write('seen.js', "function main({ n }) {\n  console.log('seen');\n  return { n };\n}");
    const loop = dev(['seen.js', '--inspect', '-p', 'n', '1']);
    await until('it waits for a debugger', () => loop.output().includes('Waiting for the debugger'), longMs);
    const [, address = ''] = /address is ws:\/\/(127\.0\.0\.1:\d+)\//.exec(loop.output()) ?? [];
    const debuggerProcess = spawn(process.execPath, ['inspect', address], { stdio: ['pipe', 'ignore', 'ignore'] });
    started.push(debuggerProcess);
    await until('it has run', () => /seen\n\{\n {2}"n": 1\n\}\nok: seen/.test(loop.output()), longMs);
    write('seen.js', 'function main() {\n  throw new Error("now");\n}');
    await until('it has run again', () => /seen\.js:2:.* Error: now/.test(loop.output()), longMs);
    debuggerProcess.kill('SIGKILL');
    expect(await loop.interrupt()).toBe(0);
    expect(processesWith('run-inspected.cjs')).toEqual([]);
  },
  longMs,
);

/** A stand-in for debugpy, to which a debugger attaches at once. */
const attaching = `import inspect
connected = False
def listen(address):
  return (address[0], 4711)
def is_client_connected():
  return connected
def wait_for_client():
  global connected
  connected = True
`;

python(
  'Python needs debugpy for a debugger, and says so',
  async () => {
    write('count.py', 'def main(args):\n  return {"n": args["n"] + 1}\n');
    const run = (PYTHONPATH: string, ...flags: string[]) =>
      runBinary(process.execPath, [gpuwhisk, 'dev', 'count.py', '--inspect', '--once', ...flags], {
        directory: folder,
        environment: { PYTHONPATH },
      });
    write('none/debugpy.py', 'raise ImportError("none")');
    const refused = await run(join(folder, 'none'));
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('python3 -m pip install debugpy')]);
    write('lib/debugpy.py', attaching);
    const good = await run(join(folder, 'lib'), '-p', 'n', '1');
    expect(good).toMatchObject({ code: 0, stderr: '' });
    expect(good.stdout).toMatch(/address is 127\.0\.0\.1:4711[^]*Waiting for the debugger[^]*"n": 2[^]*ok: count/);
    const bad = await run(join(folder, 'lib'));
    expect([bad.code, bad.stdout]).toEqual([1, expect.stringMatching(/count\.py:2:.*KeyError: 'n'/s)]);
  },
  longMs,
);

python(
  'a debugger loop runs once for each save that changes something, with the inputs of its time',
  async () => {
    write('lib/debugpy.py', attaching);
    const code = `import helper, pathlib, time
def main(args):
  print(args["n"])
  pathlib.Path("${folder}/began-%d" % args["n"]).touch()
  time.sleep(0.5)
  return args
`;
    const manifest = (n: number): void =>
      write(
        'slow/manifest.yaml',
        `packages: { default: { actions: { slow: { function: ., runtime: 'python:3', inputs: { n: ${n} } } } } }`,
      );
    write('slow/helper.py', 'loaded = True\n');
    write('slow/__main__.py', code);
    manifest(1);
    const loop = dev(['slow', '--inspect', '--json'], { PYTHONPATH: join(folder, 'lib') });
    expect(await loop.next()).toMatchObject({ run: 1, result: { n: 1 }, logs: ['1'] });
    write('slow/__main__.py', code);
    manifest(2);
    await until('the second run has begun', () => existsSync(join(folder, 'began-2')), longMs);
    manifest(3);
    expect(await loop.next()).toMatchObject({ run: 2, result: { n: 2 }, logs: ['2'] });
    expect(await loop.next()).toMatchObject({ run: 3, result: { n: 3 }, logs: ['3'] });
    expect(await loop.interrupt()).toBe(0);
  },
  longMs,
);

test('gpuwhisk deploy sends one action with what the manifest says of it, or the whole manifest', async () => {
  write(
    'shop/manifest.yaml',
    `project: { name: shop }
packages:
  default:
    actions:
      hi: { function: hi.js, main: go, limits: { timeout: 5000 }, inputs: { place: here }, annotations: { gpu: { memoryMiB: 64 } } }
      other: { function: other.js }
`,
  );
  write('shop/hi.js', 'function go() {}');
  write('shop/other.js', 'function main() {}');
  const server = await startFakeOpenWhisk();
  closing.push(() => server.close());
  const runtimes = { runtimes: { nodejs: [{ kind: 'nodejs:20', default: true, deprecated: false }] } };
  const deploy = (...args: string[]) =>
    runBinary(process.execPath, [gpuwhisk, 'deploy', ...args, '--apihost', server.url, '--auth', 'a:b'], {
      directory: join(folder, 'shop'),
    });
  server.expect([[200, runtimes]]);
  expect(await deploy('hi.js', '-p', 'place', 'there')).toEqual({
    code: 0,
    stdout: 'ok: deployed action hi\n',
    stderr: '',
  });
  const [, put, ...more] = server.requests;
  const [, line, json = '{}'] = /^(\S+ \S+) (.*)$/s.exec(put?.line ?? '') ?? [];
  expect([line, more]).toEqual(['PUT /api/v1/namespaces/_/actions/hi?overwrite=true', []]);
  expect(JSON.parse(json)).toMatchObject({
    exec: { kind: 'nodejs:20', code: 'function go() {}', main: 'go' },
    limits: { timeout: 5000 },
    parameters: [{ key: 'place', value: 'there' }],
    annotations: [{ key: 'gpu', value: { memoryMiB: 64 } }],
  });
  server.expect([[200, runtimes]]);
  expect((await deploy()).stdout).toContain('Success: Deployment completed successfully.');
  expect(server.requests.filter((request) => request.line.startsWith('PUT'))).toHaveLength(2);
});

test('gpuwhisk schema prints what editors need', async () => {
  const printed = async (name: string): Promise<string> =>
    (await runBinary(process.execPath, [gpuwhisk, 'schema', name], { directory: folder })).stdout;
  expect(JSON.parse(await printed('gpu'))).toMatchObject({ required: ['memoryMiB'] });
  expect(JSON.parse(await printed('manifest'))).toHaveProperty('$defs.gpu.properties.memoryMiB');
  expect(await printed('types')).toContain('export type Action<');
});

test.each([
  [['dev'], "one file or folder is needed, not none\nRun 'gpuwhisk dev --help' for usage."],
  [['dev', 'nothing.js'], "There is no file or folder 'nothing.js'."],
  [['dev', 'a.js', '--input', '[1]'], '--input must be a JSON object'],
  [['dev', 'a.js', '--what'], 'unknown flag: --what'],
  [['schema', 'other'], "there is no schema 'other', but gpu, manifest, types"],
  [['deploy', 'a', 'b'], 'one file or folder can be deployed at a time'],
])('gpuwhisk %j is refused', async (args, error) => {
  const result = await runBinary(process.execPath, [gpuwhisk, ...args], { directory: folder });
  expect([result.code, result.stdout, result.stderr]).toEqual([1, '', expect.stringContaining(error)]);
});
