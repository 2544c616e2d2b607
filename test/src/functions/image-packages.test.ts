// The packages of OpenWhisk's Node.js and Python images: actions find them after their own.
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

function zip(files: Readonly<Record<string, string>>): { code: string; binary: true } {
  const archive = new AdmZip();
  for (const [name, text] of Object.entries(files)) archive.addFile(name, Buffer.from(text));
  return { code: archive.toBuffer().toString('base64'), binary: true };
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

  withPython("in Python find the archive's own module first", async () => {
    const files = {
      '__main__.py':
        'import requests, simplejson\ndef main(args):\n  return {"own": requests.OWN, "other": simplejson.loads("[1]")}',
      'requests.py': 'OWN = True',
    };
    expect(await resultOf('python-own', zip(files), 'python:default')).toEqual({ own: true, other: [1] });
  });
});
