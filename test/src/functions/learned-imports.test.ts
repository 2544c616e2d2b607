// Imports of Python and Node.js functions that declare nothing: the next function that has them finds them loaded.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Prewarmer } from '@gpuwhisk/common/prewarmer';
import { hasPythonPairs } from '@gpuwhisk/invoker/runtimes/python-runtime';
import { zipOf } from '../runtimes/python-cases.js';
import { annotation } from '../support/api-client.js';
import type { ApiClient } from '../support/api-client.js';
import { hasLauncher, hasPython } from '../support/machine.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { otherAuth, prewarmersOf } from '../support/stem-cells.js';

const sleepMs = 300;
const readyMs = 20_000;
const kind = 'python:default';
const loaded = 'state = {"at": time.time(), "changed": False}\n';
const modules = {
  slow_one: `import time\ntime.sleep(${sleepMs / 1000})\n${loaded}`,
  slow_two: `import time\ntime.sleep(${sleepMs / 1000})\n${loaded}`,
  slow_three: `import time\ntime.sleep(${sleepMs / 1000})\n${loaded}`,
  starts_thread: `import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\ntime.sleep(0.1)\n`,
  never_imported: '',
  opens_socket: 'import socket, time\nkept = socket.socket()\ntime.sleep(0.1)\n',
  fails_halfway: 'import time\ntime.sleep(0.1)\nhalf = 1\nraise RuntimeError("half-way")\n',
  asks_platform: 'import os, time\ntime.sleep(0.1)\nname = os.environ["__OW_ACTION_NAME"]\n',
  reads_clock: 'import random, time\ntime.sleep(0.1)\nat, drawn = time.time(), random.random()\n',
};
const answers = '\ndef main(args):\n  return {"changed": slow_one.state["changed"], "at": slow_one.state["at"]}\n';
const source = `import slow_one${answers}`;
const nodeMain = '() => ({ changed: express.changed, types: [openwhisk, express, redis].map((one) => typeof one) });\n';
const nodeSource = `'use strict';
const openwhisk = require('openwhisk');
const express = require('express');
const redis = require('redis');
const state = 1;
exports.main = ${nodeMain}`;

/** Digests of the files of a folder, by name. */
function digests(folder: string): Map<string, string> {
  const files = existsSync(folder) ? readdirSync(folder) : [];
  return new Map(
    files.map((name) => [
      name,
      createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex'),
    ]),
  );
}

const namespacesIn = (text: string): { namespace: string }[] =>
  (JSON.parse(text) as { namespaces: { namespace: string }[] }).namespaces;

(hasPython && hasPythonPairs() && hasLauncher ? describe : describe.skip)('learned imports', () => {
  let platform: RunningPlatform;
  const environment = mkdtempSync(join(tmpdir(), 'gpuwhisk-environment-'));

  beforeAll(async () => {
    execFileSync('python3', ['-m', 'venv', '--without-pip', environment]);
    const [version = ''] = readdirSync(join(environment, 'lib'));
    for (const [name, text] of Object.entries(modules))
      writeFileSync(join(environment, 'lib', version, 'site-packages', `${name}.py`), text);
    // Idle containers of all functions fit, whose limits count.
    const flags = ['--memory', '32768'];
    platform = await startPlatform({ flags, env: { PATH: `${environment}/bin:${process.env.PATH}` } });
  }, 60_000);
  afterAll(async () => {
    await platform.stop();
    rmSync(environment, { recursive: true, force: true });
  });

  const withModules = async (wanted: (one: Prewarmer) => boolean): Promise<Prewarmer[]> =>
    (await prewarmersOf(platform)).filter(wanted);
  const has = (name: string) => async (): Promise<boolean> =>
    (await withModules(({ imports }) => imports.includes(name))).length > 0;

  async function start(name: string, code = source, api: ApiClient = platform.api, annotations = {}, of = kind) {
    await api.putAction(name, code, { kind: of, annotations });
    const { record } = await api.run(name);
    expect(record.response.success).toBe(true);
    return {
      result: record.response.result,
      startMs: Number(annotation(record, 'waitTime')) + Number(annotation(record, 'initTime')),
      start: annotation(record, 'start'),
      coldStart: annotation(record, 'coldStart'),
    };
  }

  test('the second function finds what the first one imported, and its record says so; others do not', async () => {
    const first = await start('first');
    expect(first.startMs).toBeGreaterThanOrEqual(sleepMs);
    expect(first.coldStart).toBeUndefined();
    await until('a process has the module', has('slow_one'), readyMs);
    const second = await start('second');
    expect(second).toMatchObject({ start: 'injected', coldStart: { savedBy: 'learned', savedMs: expect.any(Number) } });
    expect(second.startMs).toBeLessThan(sleepMs / 2);
    expect(Number((second.coldStart as { savedMs: number }).savedMs)).toBeGreaterThanOrEqual(sleepMs);
    // Neither a function that changes something before the import, nor one that opts out, nor another namespace.
    await until('another process has the module', has('slow_one'), readyMs);
    const changes = `import os\nos.environ["X"] = "1"\n${source}`;
    expect((await start('changes', changes)).startMs).toBeGreaterThanOrEqual(sleepMs);
    expect((await start('opts-out', source, platform.api, { warm: false })).startMs).toBeGreaterThanOrEqual(sleepMs);
    const other = await start('first', source, platform.api.as(otherAuth));
    expect(other.startMs).toBeGreaterThanOrEqual(sleepMs);
    expect(other.coldStart).toBeUndefined();
  });

  test('functions that find no process ready get copies with the modules', async () => {
    await until('a process has the module', has('slow_one'), readyMs);
    const code =
      'import time, slow_one\ndef main(args):\n  time.sleep(2)\n  return {"changed": slow_one.state["changed"]}\n';
    const names = Array.from({ length: 8 }, (_, index) => `long${index}`);
    await Promise.all(names.map((name) => platform.api.putAction(name, code, { kind })));
    const all = await Promise.all(names.map((name) => platform.api.run(name)));
    expect(all.map(({ record }) => record.response.result.changed)).toEqual(Array(8).fill(false));
    const cold = all.filter(({ record }) => annotation(record, 'start') === 'cold');
    expect(cold.length).toBeGreaterThan(0);
    for (const { record } of cold) expect(annotation(record, 'coldStart')).toMatchObject({ savedBy: 'restored' });
  });

  test('what a function changes in a module reaches no start of another', async () => {
    await until('a process has the module', has('slow_one'), readyMs);
    const poisons = `import slow_one\nslow_one.state["changed"] = True\n${answers}`;
    expect((await start('poisons', poisons)).result.changed).toBe(true);
    for (const name of ['next', 'next2']) expect((await start(name)).result.changed).toBe(false);
    expect((await start('next', source, platform.api.as(otherAuth))).result.changed).toBe(false);
  });

  test('a function of another memory finds the modules, and has its own limit', async () => {
    await until('a process has the module', has('slow_one'), readyMs);
    const limits = { memory: 512 };
    const code = `import slow_one\ndef main(args):\n  return {"bytes": len(b"x" * (args.get("MiB", 1) << 20))}\n`;
    await platform.api.putAction('large', code, { kind, limits });
    const { record } = await platform.api.run('large', { MiB: 350 });
    expect(record.response.result).toEqual({ bytes: 350 << 20 });
    expect(annotation(record, 'coldStart')).toMatchObject({ savedMs: expect.any(Number) });
    const beyond = await platform.api.run('large', { MiB: 600 });
    expect(beyond.record.response.result).toEqual({ error: expect.stringContaining('exhausted its memory') });
  });

  test('functions that are called at once share the processes, one after the other', async () => {
    await until('a process has the module', has('slow_one'), readyMs);
    const names = Array.from({ length: 8 }, (_, index) => `once${index}`);
    await Promise.all(names.map((name) => platform.api.putAction(name, source, { kind })));
    const all = await Promise.all(names.map((name) => platform.api.run(name)));
    const by = all.map(({ record }) => (annotation(record, 'coldStart') as { savedBy: string } | undefined)?.savedBy);
    expect(by.filter((one) => one === 'rolled back').length).toBeGreaterThanOrEqual(4);
    // On a busy machine one may have waited for half of what it saves, and then imports by itself.
    expect(by.filter((one) => one !== undefined).length).toBeGreaterThanOrEqual(6);
    expect(all.map(({ record }) => record.response.result.changed)).toEqual(Array(8).fill(false));
  });

  test('a module that starts a thread is imported by its function as ever, and no process is left with it', async () => {
    const code = 'import threading, starts_thread\ndef main(args):\n  return {"threads": threading.active_count()}\n';
    for (const name of ['thread1', 'thread2', 'thread3', 'thread4']) {
      const { result, coldStart } = await start(name, code);
      expect(result).toEqual({ threads: 2 });
      expect(coldStart).toBeUndefined();
    }
    const isSaid = (): Promise<boolean> => Promise.resolve(platform.output().includes('it started a thread'));
    await until('the log says why', isSaid, readyMs);
    expect(await has('starts_thread')()).toBe(false);
  });

  test.each([
    ['opens a socket', 'import opens_socket', 'opens_socket.kept.fileno() > 2', true],
    [
      'fails half-way',
      'try:\n  import fails_halfway\nexcept RuntimeError as error:\n  seen = str(error)',
      'seen',
      'half-way',
    ],
    ['asks for the name of the action', 'import asks_platform', 'asks_platform.name', '/guest/'],
  ])('a module that %s is imported by each function itself', async (_, imports, result, expected) => {
    const code = `${imports}\ndef main(args):\n  return {"result": ${result}}\n`;
    const [module = ''] = /\w+_\w+/.exec(imports) ?? [];
    for (const number of [1, 2, 3]) {
      const { result: seen, coldStart } = await start(`${module}${number}`, code);
      expect(seen).toEqual({ result: expected === '/guest/' ? `${expected}${module}${number}` : expected });
      expect(coldStart).toBeUndefined();
    }
    expect(await has(module)()).toBe(false);
  });

  test('a module that reads time and random numbers is loaded ahead; functions draw numbers of their own', async () => {
    const code =
      'import random, reads_clock\ndef main(args):\n  return {"drawn": random.random(), "module": reads_clock.drawn}\n';
    await start('clock1', code);
    await until('a process has the module', has('reads_clock'), readyMs);
    const both = [await start('clock2', code), await start('clock3', code)];
    expect(both.map(({ coldStart }) => coldStart)).toEqual([expect.anything(), expect.anything()]);
    const [one, other] = both.map(({ result }) => result);
    expect(one!.drawn).not.toBe(other!.drawn);
  });

  test("an archive's own module wins by name over one that is loaded ahead", async () => {
    await until('a process has the module', has('slow_one'), readyMs);
    const files = {
      '__main__.py': `import slow_one, slow_two${answers}`,
      'slow_one.py': 'state = {"changed": "own", "at": 0}\n',
    };
    for (const name of ['archive1', 'archive2', 'archive3']) {
      await platform.api.putAction(name, Buffer.from(zipOf(files), 'base64'), { kind });
      const { record } = await platform.api.run(name);
      expect(record.response.result).toEqual({ changed: 'own', at: 0 });
    }
  });

  test('a function that poisons all it reaches, and forges its report, changes no byte for another namespace', async () => {
    const other = platform.api.as(otherAuth);
    const sees = `import hashlib, os, slow_three
def main(args):
  files = [slow_three.__file__, slow_three.__cached__]
  texts = [open(path, "rb").read() for path in files if os.path.exists(path)]
  state = repr((sorted(vars(slow_three)), slow_three.state["changed"], 256 + 1, slow_three.time.sleep, "slow" + "_three"))
  return {"seen": [hashlib.sha256(text).hexdigest() for text in texts] + [state]}
`;
    await start('victim', sees, other);
    await until('a process has the module', has('slow_three'), readyMs);
    const before = await start('victim2', sees, other);
    expect(before.coldStart).toMatchObject({ savedMs: expect.any(Number) });
    const templates = digests(join(platform.dataDir, 'templates'));
    const rowOf = (namespace: string): string | undefined => {
      const file = readdirSync(platform.dataDir).find((one) => /^learned-imports-\d+\.json$/.test(one));
      const rows = file === undefined ? [] : namespacesIn(readFileSync(join(platform.dataDir, file), 'utf8'));
      const row = rows.find((one) => one.namespace === namespace);
      return row && JSON.stringify(row);
    };
    const isWritten = (): Promise<boolean> => Promise.resolve(rowOf('whisk.system')?.includes('slow_three') === true);
    await until('what the victim imports is written', isWritten, readyMs);
    const row = rowOf('whisk.system');

    const poisons = `import _frozen_importlib, ctypes, os, slow_three, time
slow_three.state["changed"] = "poisoned"
slow_three.time.sleep = print
for path in (slow_three.__file__, slow_three.__cached__):
  for attempt in (lambda: open(path, "ab").write(b"#"), lambda: os.remove(path), lambda: os.rename(path, path + "x")):
    try: attempt()
    except OSError: pass
ctypes.memset(id(slow_three.__name__) + 48, 120, 1)
forged = '["slow_three",1000000000],["never_imported",1000000000],["../evil",1],["victim",5]'
for cell in _frozen_importlib._find_and_load.__closure__:
  observer = cell.cell_contents
  if hasattr(observer, "costs_us"):
    observer.report = lambda: "[" + forged + "]"
    observer.costs_us["slow_three"] = 1
def main(args):
  return {"changed": slow_three.state["changed"], "at": 0}
`;
    for (const name of ['hostile1', 'hostile2']) expect((await start(name, poisons)).result.changed).toBe('poisoned');
    const isForged = (): Promise<boolean> => Promise.resolve(rowOf('guest')?.includes('never_imported') === true);
    await until('the forged report is written', isForged, readyMs);
    expect(rowOf('whisk.system')).toBe(row);
    expect(rowOf('guest')).not.toMatch(/evil|"victim"/);
    const after = await start('victim3', sees, other);
    expect(after.result).toEqual(before.result);
    expect((after.coldStart as { savedMs: number }).savedMs).toBeLessThan(10_000);
    for (const [name, digest] of templates)
      expect([name, digests(join(platform.dataDir, 'templates')).get(name)]).toEqual([name, digest]);
    expect(templates.size).toBeGreaterThan(0);
  });

  test('Node.js functions find the packages of those before them, each in a process of its own', async () => {
    const startNode = (name: string, code = nodeSource, api = platform.api) =>
      start(name, code, api, {}, 'nodejs:default');
    const isReady = (): Promise<number> => until('a process has the packages', has('express'), readyMs);
    expect((await startNode('packages1')).coldStart).toBeUndefined();
    await isReady();
    const second = await startNode('packages2', nodeSource.replace('state = ', 'state = express.changed = '));
    expect(second).toMatchObject({
      start: 'prewarmed',
      coldStart: { savedBy: 'learned', savedMs: expect.any(Number) },
    });
    expect(second.startMs).toBeLessThan((second.coldStart as { savedMs: number }).savedMs);
    await isReady();
    const modules = "import openwhisk from 'openwhisk';\nimport express from 'express';\nimport redis from 'redis';\n";
    const { coldStart, result } = await startNode('packages3', `${modules}export const main = ${nodeMain}`);
    expect(coldStart).toMatchObject({ savedBy: 'learned' });
    expect(result).toEqual({ types: ['function', 'function', 'object'] });
    // Functions that find none get on, and there is one again for the next.
    await isReady();
    const names = Array.from({ length: 4 }, (_, index) => `packages-once${index}`);
    const all = await Promise.all(names.map((name) => startNode(name)));
    expect(all.filter((one) => one.coldStart !== undefined).length).toBeGreaterThanOrEqual(1);
    await isReady();
    expect((await startNode('packages4')).coldStart).toMatchObject({ savedBy: 'learned' });
    expect((await startNode('packages1', nodeSource, platform.api.as(otherAuth))).coldStart).toBeUndefined();
  });
});
