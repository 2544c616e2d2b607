// The packages of OpenWhisk's Node.js and Python images: actions find them after their own.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import AdmZip from 'adm-zip';
import { hasPython, networkLack } from '../support/machine.js';
import { startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const nodePackages = ['body-parser', 'express', 'openwhisk', 'redis', 'serialize-error', 'uuid'];
const pythonModules = [
  ...['bs4', 'dateutil.parser', 'httplib2', 'kafka', 'lxml.etree', 'requests', 'scrapy', 'setuptools', 'simplejson'],
  ...['six', 'twisted.internet.defer', 'virtualenv'],
];
const networked = networkLack === undefined ? test : test.skip;
const withPython = hasPython ? test : test.skip;

const incompressible = randomBytes(1_500_000).toString('base64');

function zip(files: Readonly<Record<string, string>>): { code: string; binary: true } {
  const archive = new AdmZip();
  for (const [name, text] of Object.entries(files)) archive.addFile(name, Buffer.from(text));
  return { code: archive.toBuffer().toString('base64'), binary: true };
}

function tar(files: Readonly<Record<string, string>>): { code: string; binary: true } {
  const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-tar-'));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const archive = execFileSync('tar', ['-czf', '-', '-C', folder, '.']);
  rmSync(folder, { recursive: true });
  return { code: archive.toString('base64'), binary: true };
}

describe.each([
  ['injected', []],
  ['in processes of their own', ['--containers', 'process']],
])('functions %s', (_, flags) => {
  let platform: RunningPlatform;
  beforeAll(async () => {
    platform = await startPlatform({ flags });
  });
  afterAll(() => platform.stop());

  async function resultOf(name: string, code: string | { code: string; binary: true }, kind = 'nodejs:default') {
    const exec = typeof code === 'string' ? { kind, code } : { kind, ...code };
    const { status } = await platform.api.request('PUT', `_/actions/${name}?overwrite=true`, { exec });
    expect(status).toBe(200);
    return (await platform.api.invokeForResult(name)).body;
  }

  test('in Node.js require them', async () => {
    const code = `function main() {
      return Object.fromEntries(${JSON.stringify(nodePackages)}.map((name) => [name, typeof require(name)]));
    }`;
    const kinds = { express: 'function', 'body-parser': 'function', openwhisk: 'function' };
    expect(await resultOf('requires', code)).toEqual({
      ...kinds,
      redis: 'object',
      'serialize-error': 'object',
      uuid: 'object',
    });
  });

  test('in Node.js import them', async () => {
    const code = `import express from 'express';
      export async function main() {
        const { default: openwhisk } = await import('openwhisk');
        return { express: typeof express, openwhisk: typeof openwhisk };
      }`;
    expect(await resultOf('imports', code)).toEqual({ express: 'function', openwhisk: 'function' });
  });

  test("in Node.js find the archive's own package first", async () => {
    const files = {
      'package.json': '{"main": "index.js"}',
      'index.js': `exports.main = () => ({ own: require('openwhisk').own, other: typeof require('uuid').v4 });`,
      'node_modules/openwhisk/index.js': 'exports.own = true;',
    };
    expect(await resultOf('own-package', zip(files))).toEqual({ own: true, other: 'function' });
  });

  networked("in Node.js invoke others with OpenWhisk's client", async () => {
    await platform.api.putAction('greeter', 'function main({ name }) { return { greeting: `Hello, ${name}!` }; }');
    const code = `function main() {
      return require('openwhisk')().actions.invoke({ name: 'greeter', blocking: true, result: true, params: { name: 'Ada' } });
    }`;
    await platform.api.putAction('client', code, { annotations: { 'provide-api-key': true } });
    expect((await platform.api.invokeForResult('client')).body).toEqual({ greeting: 'Hello, Ada!' });
  });

  withPython('in Python import them', async () => {
    const code = `import importlib
def main(args):
  return {"found": [importlib.import_module(name).__name__ for name in ${JSON.stringify(pythonModules)}]}`;
    expect(await resultOf('python-imports', code, 'python:default')).toEqual({ found: pythonModules });
  });

  withPython.each([
    ['zip', (files: Readonly<Record<string, string>>) => zip(files)],
    ['tar.gz', (files: Readonly<Record<string, string>>) => tar(files)],
    // Code of more than 1 MiB goes its own way to the container and to the compiler.
    ['large zip', (files: Readonly<Record<string, string>>) => zip({ ...files, data: incompressible })],
  ])('in Python have the modules of a %s compiled after its first start', async (type, archived) => {
    const code = archived({
      '__main__.py': `import os, helper.deep, installed
def is_compiled(module):
  return os.path.exists(module.__cached__)
def main(args):
  with open("setting.py", "w") as file:
    file.write("VALUE = 'changed'")
  import setting
  return {"compiled": [is_compiled(module) for module in (helper, helper.deep, installed, setting)], "setting": setting.VALUE}`,
      'helper/__init__.py': `# ${flags.join(' ')}`,
      'helper/deep.py': '',
      'helper/old.py': 'print "Python 2"',
      'setting.py': 'VALUE = "archived"',
      'virtualenv/lib/python3/site-packages/installed/__init__.py': '',
    });
    const start = (number: number): Promise<unknown> =>
      resultOf(`compiled-${type.replace(' ', '-')}-${number}`, code, 'python:default');
    const [none, all] = [false, true].map((each) => ({ compiled: [each, each, each, each], setting: 'changed' }));
    let last = await start(0);
    expect(last).toEqual(none);
    for (let number = 1; number < 30 && isDeepStrictEqual(last, none); number++) {
      await sleep(300);
      last = await start(number);
    }
    expect(last).toEqual(all);
    const metrics = await (await fetch(new URL('/metrics', platform.url))).text();
    expect(metrics).toMatch(/^gpuwhisk_python_modules_total\{outcome="refused"\} [1-9]/m);
  });

  withPython("in Python find the archive's own module first", async () => {
    const files = {
      '__main__.py':
        'import requests, simplejson\ndef main(args):\n  return {"own": requests.OWN, "other": simplejson.loads("[1]")}',
      'requests.py': 'OWN = True',
    };
    expect(await resultOf('python-own', zip(files), 'python:default')).toEqual({ own: true, other: [1] });
  });
});
