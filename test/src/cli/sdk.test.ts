import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { dockerSkeleton } from '@gpuwhisk/controller/sdk/docker-skeleton';
import { describeCases, errorWithHint } from './cases.js';
import { runWsk, withFolder } from './wsk-process.js';

const run = promisify(execFile);

/** Files that the server offers, by name. */
const offered = new Map<string, Buffer>();
let server: Server;
let url: string;

beforeAll(async () => {
  server = createServer((request, response) => {
    const file = offered.get((request.url ?? '').slice(1));
    response.writeHead(file ? 200 : 404).end(file ?? 'no such file');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  offered.set('blackbox.tar.gz', await dockerSkeleton());
  offered.set('OpenWhiskIOSStarterApp.zip', Buffer.from([0x50, 0x4b, 0, 0xff]));
});
afterAll(() => new Promise<void>((resolve) => server.close(() => resolve())));

const wsk = (directory: string, line: string) =>
  runWsk(['--apihost', url, '--auth', 'user:secret', ...line.split(' ')], { directory });

test('sdk install docker unpacks the skeleton, once', () =>
  withFolder(async (directory) => {
    const stdout = 'The docker skeleton is now installed at the current directory.\n';
    expect(await wsk(directory, 'sdk install docker')).toEqual({ code: 0, stdout, stderr: '' });
    const skeleton = join(directory, 'dockerSkeleton');
    expect(await readFile(join(skeleton, 'Dockerfile'), 'utf8')).toMatch(/^# .*\nFROM openwhisk\/dockerskeleton\n/);
    expect((await stat(join(skeleton, 'buildAndPush.sh'))).mode & 0o111).toBe(0o111);
    const again = await wsk(directory, 'sdk install docker');
    const message =
      "The docker SDK installation failed: The directory 'dockerSkeleton' already exists.  Delete it and retry.";
    expect(again).toEqual({ code: 1, stdout: '', stderr: `error: ${message}\n` });
  }));

test('an archive whose files lead out of the folder is refused whole', () =>
  withFolder(async (directory) => {
    const good = offered.get('blackbox.tar.gz') ?? Buffer.alloc(0);
    const tar = pack();
    tar.entry({ name: 'good' }, 'text');
    tar.entry({ name: '../evil' }, 'text');
    tar.finalize();
    offered.set('blackbox.tar.gz', gzipSync(await buffer(tar)));
    const { code, stdout, stderr } = await wsk(directory, 'sdk install docker');
    offered.set('blackbox.tar.gz', good);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain("'../evil");
    await expect(stat(join(directory, 'dockerSkeleton'))).rejects.toThrow('ENOENT');
    await expect(stat(join(directory, 'good'))).rejects.toThrow('ENOENT');
  }));

test('sdk install ios saves the archive as it is, once', () =>
  withFolder(async (directory) => {
    const file = 'OpenWhiskIOSStarterApp.zip';
    const stdout = `Downloaded OpenWhisk iOS starter app. Unzip '${file}' and open the project in Xcode.\n`;
    expect(await wsk(directory, 'sdk install ios')).toEqual({ code: 0, stdout, stderr: '' });
    expect(await readFile(join(directory, file))).toEqual(offered.get(file));
    const message = `The ios SDK installation failed: The file '${file}' already exists.  Delete it and retry.`;
    expect(await wsk(directory, 'sdk install IOS')).toEqual({ code: 1, stdout: '', stderr: `error: ${message}\n` });
  }));

test('sdk install docker needs a server that has it', () =>
  withFolder(async (directory) => {
    const refused = await runWsk(['--apihost', 'http://127.0.0.1:1', 'sdk', 'install', 'docker'], { directory });
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain(
      'Unable to retrieve \'blackbox.tar.gz\' SDK: Get "http://127.0.0.1:1/blackbox.tar.gz"',
    );
  }));

test('sdk install bashauto writes a script with which bash completes commands and flags', () =>
  withFolder(async (directory) => {
    const { code, stdout } = await runWsk(['sdk', 'install', 'bashauto'], { directory });
    expect(code).toBe(0);
    expect(stdout).toContain('(wsk_cli_bash_completion.sh) is installed in the current directory');
    const script = await readFile(join(directory, 'wsk_cli_bash_completion.sh'), 'utf8');
    expect(script).toContain('bash completion for wsk');
    expect((await runWsk(['sdk', 'install', 'bashauto', '--stdout'], { directory })).stdout).toBe(script);
    const complete = async (...words: string[]): Promise<string[]> => {
      const line = `source ./wsk_cli_bash_completion.sh; COMP_WORDS=(wsk ${words.join(' ')}); COMP_CWORD=${words.length}; __wsk_complete; echo "\${COMPREPLY[@]}"`;
      return (await run('bash', ['-c', line], { cwd: directory })).stdout.trim().split(' ');
    };
    expect(await complete('trig')).toEqual(['trigger']);
    expect(await complete('package', 're')).toEqual(['refresh']);
    expect(await complete('-v', 'action', 'create', '--web-s')).toEqual(['--web-secure']);
    expect(await complete('list', '--na')).toEqual(['--name-sort']);
  }));

describeCases('sdk', [
  {
    wsk: 'sdk install',
    code: 1,
    stderr: errorWithHint(
      'The SDK component argument is missing. One component (docker, ios, or bashauto) must be specified',
    ),
  },
  {
    wsk: 'sdk install Foo',
    code: 1,
    stderr: errorWithHint("The SDK component argument 'foo' is invalid. Valid components are docker, ios and bashauto"),
  },
]);
