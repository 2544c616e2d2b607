// Kinds of Node.js beside the server's own, and actions that the command line makes of ES modules and TypeScript.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import AdmZip from 'adm-zip';
import { runWsk } from '../cli/wsk-process.js';
import { newerNode } from '../support/node-releases.js';
import { annotation } from '../support/api-client.js';
import { startAndFail, startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

(newerNode === undefined ? describe.skip : describe)('with Node.js 24 at a path of setting runtimePaths', () => {
  let platform: RunningPlatform;
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-kinds-'));
    const paths = JSON.stringify({ 'nodejs:24': newerNode });
    platform = await startPlatform({ flags: ['--set', `runtimePaths=${paths}`] });
  });
  afterAll(async () => {
    await platform.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function wsk(...words: string[]): Promise<string> {
    const access = ['--apihost', platform.url, '--auth', platform.auth];
    const { code, stdout, stderr } = await runWsk([...access, ...words], {
      directory: folder,
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return stdout;
  }
  async function created(file: string, code: string | Buffer, ...words: string[]): Promise<string> {
    writeFileSync(join(folder, file), code);
    const name = file.replace('.', '-');
    await wsk('action', 'create', name, file, ...words);
    return name;
  }
  const resultOf = async (name: string): Promise<unknown> =>
    JSON.parse(await wsk('action', 'invoke', name, '--result', '--param', 'name', 'Ada'));

  test('it is the default, and has the processes that are ready', async () => {
    const code = 'function main() { return { version: process.versions.node } }';
    let count = 0;
    await until('a function is injected', async () => {
      const { record } = await platform.api.run(await created(`a${++count}.js`, code));
      expect(record.response.result.version).toMatch(/^2[4-9]\./);
      expect(annotation(record, 'kind')).toBe('nodejs:24');
      return annotation(record, 'start') === 'injected';
    });
  });

  test.each([
    ['export.mjs', 'export function main({ name }) { return { hello: name } }'],
    ['default.mjs', 'export default ({ name }) => ({ hello: name })'],
    [
      'module.ts',
      'interface Args { name: string }\nexport function main({ name }: Args): object { return { hello: name } }',
    ],
    ['script.ts', 'type Args = { name: string };\nfunction main({ name }: Args) { return { hello: name } }'],
    ['module.mts', 'export default ({ name }: { name: string }) => ({ hello: name })'],
    ['script.cts', 'exports.main = ({ name }: { name: string }) => ({ hello: name })'],
  ])('wsk makes an action of %s', async (file, code) => {
    expect(await resultOf(await created(file, code))).toEqual({ hello: 'Ada' });
  });

  test('wsk makes an action of a zip with TypeScript', async () => {
    const archive = new AdmZip();
    archive.addFile('package.json', Buffer.from('{"type":"module","main":"src/start.ts"}'));
    archive.addFile('src/start.ts', Buffer.from("import { greet } from './greet.ts';\nexport const main = greet;"));
    archive.addFile('src/greet.ts', Buffer.from('export const greet = (a: { name: string }) => ({ hello: a.name });'));
    const name = await created('typed.zip', archive.toBuffer(), '--kind', 'nodejs:24');
    expect(await resultOf(name)).toEqual({ hello: 'Ada' });
  });

  test('an error in TypeScript has the line and column of the source', async () => {
    const code =
      'interface Args {\n  name: string;\n}\nfunction main(args: Args) {\n  throw new Error(args.name);\n}\n';
    const { record } = await platform.api.run(await created('fails.ts', code), { name: 'Ada' });
    expect(record.response).toMatchObject({ status: 'action developer error' });
    expect(record.logs.join('\n')).toMatch(/Error: Ada\n.* at main \(.*\/index\.ts:5:9\)/);
  });

  test('an action of the kind before goes on in its own Node.js', async () => {
    const own = `nodejs:${process.versions.node.split('.')[0]}`;
    const code = 'function main() { return { version: process.versions.node } }';
    expect(await resultOf(await created('own.js', code, '--kind', own))).toEqual({ version: process.versions.node });
  });
});

test('a path of another version stops the start with one line', async () => {
  const paths = JSON.stringify({ 'nodejs:22': '/bin/echo' });
  const failed = await startAndFail({ flags: ['--set', `runtimePaths=${paths}`] });
  expect(failed.code).not.toBe(0);
  expect(failed.stderr).toMatch(
    /^.*'runtimePaths' has '\/bin\/echo' for 'nodejs:22', which is no Node\.js that answers\.\n$/,
  );
});
