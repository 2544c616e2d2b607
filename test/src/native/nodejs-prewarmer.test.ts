import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import type { RuntimeProcess } from '../runtimes/runtime-harness.js';
import { harmless, lasting, probe } from './nodejs-functions.js';
import { envOf, findLanguage, makeScratch, startPrewarmer } from './prewarmer-harness.js';

const language = await findLanguage('nodejs');
let launch: RuntimeLaunch;
let runtime: RuntimeProcess;

beforeAll(async () => {
  if (!language) throw new Error('The Node.js that runs the tests is not among the runtimes.');
  launch = await language.launch();
});
afterAll(async () => {
  if (serves) await runtime.close();
  language?.remove();
});
/** Whether the pre-warmer was left clean and serves the next test. */
let serves = false;
beforeEach(async () => {
  if (!serves) runtime = await startPrewarmer(launch);
  serves = false;
});
afterEach(async () => {
  if (!serves) await runtime.close();
});

async function load(code: string, namespace = 'one'): Promise<unknown> {
  return (await runtime.init({ code, env: envOf(namespace) })).body;
}

async function call(code: string, value: unknown = {}): Promise<unknown> {
  expect(await load(code)).toMatchObject({ ok: true });
  return (await runtime.run(value)).body;
}

const clean = { ok: true, verifyUs: expect.any(Number) };
describe('a Node.js pre-warmer', () => {
  test.each(harmless)('runs the next function right after one that %s', async (_, code) => {
    const before = await call(probe);
    expect(before).toMatchObject({ map: [2, 4], files: [], env: null, listeners: [0, 0, 0, 0], cached: [] });
    expect((await runtime.unload()).body).toEqual(clean);
    const pid = runtime.pid ?? 0;
    const descriptors = readdirSync(`/proc/${pid}/fd`);
    await call(code);
    expect((await runtime.unload(true)).body).toEqual(clean);
    const printed = runtime.stdout;
    expect(await call(probe)).toEqual(before);
    await sleep(30);
    expect(runtime.stdout).toBe(`${printed}left: 1\n`);
    expect((await runtime.unload(true)).body).toEqual(clean);
    expect(readdirSync(`/proc/${pid}/fd`)).toEqual(descriptors);
    expect(existsSync('/etc/passwd')).toBe(true);
    serves = true;
  });

  test.each([
    ['a syntax error', 'function main( {', /SyntaxError/],
    ['no such function', 'function other() {}', /Action entrypoint 'main' is not a function/],
    ['a failure while loading', "throw new Error('loading')", /loading/],
  ])('takes other code after %s', async (_, code, error) => {
    expect(await load(code)).toEqual({ error: expect.stringMatching(error) });
    expect((await runtime.unload(true)).body).toEqual(clean);
    expect(await call('const main = (value) => value', { a: 1 })).toEqual({ a: 1 });
  });

  test.each(lasting)('says that it is of no more use after a function that %s', async (_, code, error) => {
    await call(code);
    expect((await runtime.unload(true)).body).toEqual({ error: expect.stringMatching(error) });
    expect(await load('const main = (value) => value')).toEqual({ error: expect.stringContaining('not ready') });
  });

  test('ends with an action that exits, at once or by a rejection that nobody handles', async () => {
    await load('function main() { process.exit(3) }');
    await expect(runtime.run({})).rejects.toThrow('The runtime ended');
    expect(await runtime.exited).toBe(3);
    await runtime.close();
    runtime = await startPrewarmer(launch);
    await load("function main() { Promise.reject(new Error('late')); return {} }");
    await runtime.run({}).catch(() => undefined);
    expect(await runtime.exited).toBe(1);
    expect(runtime.stderr).toContain('late');
  });

  test('is not handed to another namespace, and hides a secret from the next function of its own', async () => {
    const secret = 'a-secret-of-one';
    await call(
      `const kept = { secret: '${secret}' };
      function main() { globalThis.left = kept; process.env.LEFT = kept.secret; process.title = kept.secret;
        require('fs').writeFileSync('left', kept.secret); require('fs').left = kept; Array.prototype.left = kept;
        require('http').globalAgent.left = () => kept; require('path').join.left = kept; return {} }`,
    );
    expect((await runtime.unload(true)).body).toEqual(clean);
    const hunt = `
      function main({ secret }) {
        const seen = new Set(); const found = []; const modules = require('module').builtinModules.filter((m) => !/^_|sys|punycode|wasi|trace|inspector|test|repl|cluster|diagnostics|domain|constants/.test(m));
        const waiting = [[globalThis, 'global'], [process, 'process'], ...modules.map((m) => [require(m), m])];
        for (const [object, at] of waiting) {
          if (seen.has(object)) continue; seen.add(object);
          for (const key of Reflect.ownKeys(object)) {
            const value = Object.getOwnPropertyDescriptor(object, key)?.value;
            if (typeof value === 'string' && value.includes(secret)) found.push(at + '.' + String(key));
            if (value !== null && (typeof value === 'object' || typeof value === 'function')) waiting.push([value, at + '.' + String(key)]);
          }
        }
        const files = require('fs').readdirSync('.');
        return { found, files, env: Object.values(process.env).filter((v) => v.includes(secret)), title: process.title.includes(secret), looked: seen.size > 2000 };
      }`;
    const nothing = { found: [], files: [], env: [], title: false, looked: true };
    expect(await load(hunt, 'two')).toEqual({ error: 'This runtime has run code of another namespace.' });
    expect(await call(hunt, { secret })).toEqual(nothing);
  });

  test.each([
    ['a rare global', 'const rare = () => [Blob.prototype, new ReadableStream().getReader().constructor.prototype]'],
    ['what fetch gives', "const rare = async () => [(await fetch('data:,x')).constructor.prototype]"],
    ['a module', "const rare = () => [require('buffer').Blob.prototype]"],
    ['an import', "const rare = async () => [(await import('node:buffer')).Blob.prototype]"],
    ['process', "const rare = () => [process.getBuiltinModule?.('buffer').Blob.prototype]"],
    ["the language's own", 'const rare = () => [Intl.DateTimeFormat.prototype, WebAssembly.Table.prototype, Atomics]'],
  ])('puts back what is rarely used and was reached by %s', async (_, rare) => {
    const look =
      'function main() { return { left: [Blob, Response, ReadableStreamDefaultReader, Intl.DateTimeFormat, WebAssembly.Table, { prototype: Atomics }].map(({ prototype }) => prototype.left ?? 0) } }';
    const clear = { left: [0, 0, 0, 0, 0, 0] };
    expect(await call(look)).toEqual(clear);
    expect((await runtime.unload()).body).toEqual(clean);
    await call(
      `${rare}; async function main() { for (const each of await rare()) if (each) each.left = 1; return {} }`,
    );
    expect((await runtime.unload()).body).toEqual(clean);
    expect(await call(look)).toEqual(clear);
  });

  test('puts back settings that only a module can change', async () => {
    const look = `const [buffer, dns, http, https, net] = ['buffer', 'dns', 'http', 'https', 'net'].map((name) => require(name));
      function main() { return { settings: [buffer.INSPECT_MAX_BYTES, dns.getDefaultResultOrder(), dns.getServers(),
        net.getDefaultAutoSelectFamily?.(), http.globalAgent.left ?? 0, https.globalAgent.left ?? 0] } }`;
    const before = await call(look);
    expect((await runtime.unload()).body).toEqual(clean);
    for (const change of [
      "require('buffer').INSPECT_MAX_BYTES = 7",
      "require('dns/promises').setDefaultResultOrder('ipv4first')",
      "require('dns').setServers(['192.0.2.1'])",
      "require('net').setDefaultAutoSelectFamily?.(!require('net').getDefaultAutoSelectFamily())",
      "const { Agent } = require('http'); require('node:http').globalAgent = Object.assign(new Agent(), { left: 1 })",
      "const own = process.getBuiltinModule?.('https'); if (own) own.globalAgent = { left: 1 }",
    ]) {
      await call(`function main() { ${change}; return {} }`);
      expect((await runtime.unload()).body).toEqual(clean);
      expect(await call(look)).toEqual(before);
      expect((await runtime.unload()).body).toEqual(clean);
    }
  });

  test('what makes code of text looks and works as ever', async () => {
    const code = `class Own extends Function {}
      function main() { return { made: new Function('a', 'return a * 2')(4), own: new Own('return 3')() , kin: new Own() instanceof Own,
        same: (() => 1).constructor === Function, name: Function.name, shown: require('util').inspect([main, Own, Function, async () => 1]), is: main instanceof Function,
        kind: Object.getPrototypeOf((async () => 1).constructor) === Function } }`;
    expect(await call(code)).toEqual({
      made: 8,
      own: 3,
      kin: true,
      same: true,
      name: 'Function',
      shown:
        '[\n  [Function: main],\n  [class Own extends Function],\n  [Function: Function],\n  [AsyncFunction (anonymous)]\n]',
      is: true,
      kind: true,
    });
    expect((await runtime.unload()).body).toEqual(clean);
  });

  test('a direct eval sees what is around it', async () => {
    const code = "function main() { const z = 5; return { local: eval('z + 1') } }";
    expect(await call(code)).toEqual({ local: 6 });
  });

  test('a rare global can be replaced, until the function is gone', async () => {
    const code = `function main() { const before = [typeof fetch, typeof Blob]; fetch = 1; globalThis.Blob = 2;
      return { before, after: [fetch, Blob, Object.keys(globalThis).includes('fetch')] } }`;
    const result = { before: ['function', 'function'], after: [1, 2, true] };
    expect(await call(code)).toEqual(result);
    expect((await runtime.unload()).body).toEqual(clean);
    expect(await call(code)).toEqual(result);
  });

  test('checks the digest before it loads anything', async () => {
    const code = "console.log('loaded'); const main = (value) => value";
    const digest = createHash('sha256').update(code).digest('hex');
    const wrong = await runtime.init({ code: `${code} `, digest, env: envOf('one') });
    expect(wrong.body).toEqual({ error: 'The code does not have the digest that it should have.' });
    expect(runtime.stdout).toBe('');
    expect((await runtime.init({ code, digest, env: envOf('one') })).body).toMatchObject({ ok: true });
  });

  test('empties the folders that it is told of, and follows no link out of them', async () => {
    await runtime.close();
    const scratch = makeScratch();
    try {
      runtime = await startPrewarmer(launch, { scratch: scratch.folders });
      const code = `const fs = require('fs');
        function main({ folders: [a, b] }) { fs.mkdirSync(b + '/deep/er', { recursive: true }); fs.writeFileSync(b + '/deep/er/x', '');
          fs.symlinkSync(a, b + '/deep/link'); fs.symlinkSync('../outside', a + '/link'); fs.writeFileSync(a + '/y', '');
          fs.chmodSync(b + '/deep/er', 0); return { seen: process.env.GPUWHISK_SCRATCH ?? null } }`;
      expect(await call(code, { folders: scratch.folders })).toEqual({ seen: null });
      expect((await runtime.unload()).body).toEqual(clean);
      const [a = '', b = ''] = scratch.folders;
      expect([readdirSync(a), readdirSync(b), readdirSync(join(a, '..'))]).toEqual([
        ['before'],
        [],
        ['a', 'b', 'outside'],
      ]);
    } finally {
      scratch.remove();
    }
  });

  test('answers a check without an action, with one, and not once it is of no more use', async () => {
    expect((await runtime.check()).body).toEqual({ ok: true });
    await call('function main() { Object.freeze(Array.prototype); return {} }');
    expect((await runtime.check()).body).toEqual({ ok: true });
    expect((await runtime.unload()).isError).toBe(true);
    expect((await runtime.check()).body).toEqual({ error: 'System not ready, status is stopped.' });
  });

  test('does not unload while an action runs', async () => {
    await load('const main = () => new Promise((resolve) => setTimeout(resolve, 50, {}))');
    const run = runtime.run({});
    expect((await runtime.unload()).body).toEqual({ error: 'An action is running.' });
    expect((await run).body).toEqual({});
    expect((await runtime.unload()).body).toEqual(clean);
  });

  test('keeps its memory through hundreds of functions', async () => {
    const code = 'const block = new Array(50_000).fill(7); function main() { return { n: block.length } }';
    for (let turn = 0; turn < 300; turn += 1) {
      expect(await call(code)).toEqual({ n: 50_000 });
      expect((await runtime.unload()).body).toEqual(clean);
    }
    const rss = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${runtime.pid}/status`, 'utf8'))?.[1]);
    expect(rss).toBeLessThan(192 * 1024);
  });
});

test('a runtime that is no pre-warmer says that it cannot unload', async () => {
  const { RuntimeProcess } = await import('../runtimes/runtime-harness.js');
  const plain = new RuntimeProcess(launch);
  const hello = await plain.frame((frame) => frame.type === 1);
  expect(JSON.parse(hello.text)).not.toHaveProperty('unload');
  expect((await plain.unload()).body).toEqual({ error: 'This runtime cannot unload.' });
  await plain.close();
});
