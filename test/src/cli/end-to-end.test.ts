import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import AdmZip from 'adm-zip';
import { hasLauncher } from '../support/machine.js';
import { runWsk, type WskResult } from './wsk-process.js';

const main = fileURLToPath(new URL('../../../scripts/serve.cjs', import.meta.url));
const source = `function main(args) {
  console.log('to', args.name);
  if (args.name === 'nobody') throw new Error('no such person');
  return { greeting: 'Hello ' + args.name, half: 0.5 };
}
`;

let platform: ChildProcess;
let folder: string;
let flags: string[];

/** Starts the platform, and takes host and key from the command line that it prints for its user. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'wsk-e2e-'));
  await writeFile(join(folder, 'hello.js'), source);
  platform = spawn(process.execPath, [main, '--port', '0', '--data', join(folder, 'data')], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_OPTIONS: '', GPUWHISK_PREPARE_RUNTIMES: 'false' },
  });
  flags = await new Promise<string[]>((resolve, reject) => {
    let output = '';
    platform.on('exit', (code) => reject(new Error(`the platform exited with ${code}: ${output}`)));
    platform.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      const found = /bin\/wsk (--apihost) (\S+) (--auth) (\S+)/.exec(output);
      if (found) resolve(found.slice(1));
    });
  });
});

afterAll(async () => {
  const exited = new Promise((resolve) => platform.once('exit', resolve));
  platform.kill('SIGTERM');
  await exited;
  await rm(folder, { recursive: true, force: true });
});

const wsk = (line: string): Promise<WskResult> => runWsk([...flags, ...line.split(' ')], { directory: folder });
const prints = (stdout: string): WskResult => ({ code: 0, stdout, stderr: '' });

test('a function is created, invoked, looked at and deleted with wsk', async () => {
  expect(await wsk('namespace list')).toEqual(prints('namespaces\nguest\n'));
  expect(await wsk('action create hello hello.js -m 128 -a level 1.50')).toEqual(prints('ok: created action hello\n'));
  const again = await wsk('action create hello hello.js');
  expect(again).toMatchObject({ code: 153, stdout: '' });
  expect(again.stderr).toContain("error: Unable to create action 'hello': resource already exists (code ");
  expect(await wsk('action invoke hello --result -p name you')).toEqual(
    prints('{\n    "greeting": "Hello you",\n    "half": 0.5\n}\n'),
  );
  expect(await wsk('action invoke hello --result -p name nobody')).toMatchObject({ code: 246, stdout: '' });
  const blocking = await wsk('action invoke hello --blocking -p name all');
  expect(blocking.code).toBe(0);
  const id = /^ok: invoked \/_\/hello with id ([0-9a-f]{32})\n\{\n/.exec(blocking.stdout)?.[1] ?? '';
  expect(await wsk(`activation result ${id}`)).toEqual(prints('{\n    "greeting": "Hello all",\n    "half": 0.5\n}\n'));
  expect(await wsk(`activation logs ${id} --strip`)).toEqual(prints('to all\n'));
  expect(await wsk(`activation get ${id} name`)).toEqual(
    prints(`ok: got activation ${id}, displaying field name\n"hello"\n`),
  );
  expect((await wsk('activation list hello')).stdout).toMatch(
    new RegExp(`^Datetime .*\n.* ${id} nodejs:\\d+ +(warm|cold) +\\S+ +success +guest/hello:0\\.0\\.1\n`),
  );
  expect(await wsk('action update hello -t 3000')).toEqual(prints('ok: updated action hello\n'));
  expect((await wsk('action get hello limits')).stdout).toContain('"timeout": 3000,\n    "memory": 128,');
  expect((await wsk('action get hello annotations')).stdout).toContain('"key": "level",\n        "value": 1.5');
  expect((await wsk('action get hello --save-as saved.js')).code).toBe(0);
  expect(await readFile(join(folder, 'saved.js'), 'utf8')).toBe(source);
  expect(await wsk('action delete hello')).toEqual(prints('ok: deleted action hello\n'));
  expect(await wsk('action list')).toEqual(prints('actions\n'));
});

test('a wrong key, an unknown action and an unknown kind are refused', async () => {
  expect(await wsk('action list -u wrong:key')).toMatchObject({ code: 145, stdout: '' });
  expect(await wsk('action get nothing')).toMatchObject({ code: 148, stdout: '' });
  const unknown = await wsk('action create x hello.js --kind cobol:1');
  expect(unknown).toMatchObject({ code: 144, stdout: '' });
  expect(unknown.stderr).toContain("The specified runtime 'cobol:1' is not supported by this platform");
});

(hasLauncher ? test : test.skip)('what sdk install docker brings becomes an action', async () => {
  const installed = await wsk('sdk install docker');
  expect(installed).toEqual(prints('The docker skeleton is now installed at the current directory.\n'));
  const skeleton = join(folder, 'dockerSkeleton');
  expect((await readdir(skeleton)).sort()).toEqual(['Dockerfile', 'README.md', 'buildAndPush.sh', 'example.c']);
  expect(await readFile(join(skeleton, 'Dockerfile'), 'utf8')).toMatch(/^FROM openwhisk\/dockerskeleton$/m);
  const used = await promisify(execFile)(join(skeleton, 'buildAndPush.sh')).catch((error: object) => error);
  expect(used).toMatchObject({ code: 2, stderr: expect.stringMatching(/^usage: .* YOUR_DOCKER_ID\/NAME\n$/) });
  // The commands of the skeleton's README.
  const program = join(folder, 'exec');
  await promisify(execFile)('cc', ['-O2', '-static', '-o', program, join(skeleton, 'example.c')]);
  const archive = new AdmZip();
  archive.addLocalFile(program);
  archive.writeZip(join(folder, 'exec.zip'));
  expect(await wsk('action create native exec.zip --native')).toEqual(prints('ok: created action native\n'));
  const invoked = await wsk('action invoke native --result --param name Ada');
  const result = { message: 'Hello from a C program', arguments: { name: 'Ada' } };
  expect({ ...invoked, stdout: JSON.parse(invoked.stdout || 'null') as unknown }).toEqual({
    ...prints(''),
    stdout: result,
  });
});

test('the archive of sdk install docker is one that tar reads', async () => {
  const archive = join(folder, 'archive.tar.gz');
  const response = await fetch(`${flags[1]}/blackbox.tar.gz`);
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/gzip']);
  await writeFile(archive, Buffer.from(await response.arrayBuffer()));
  const { stdout } = await promisify(execFile)('tar', ['-tvzf', archive]);
  expect(stdout.split('\n').map((line) => [line.slice(0, 10), line.split(' ').at(-1)])).toEqual([
    ['drwxr-xr-x', 'dockerSkeleton/'],
    ['-rw-r--r--', 'dockerSkeleton/README.md'],
    ['-rw-r--r--', 'dockerSkeleton/Dockerfile'],
    ['-rw-r--r--', 'dockerSkeleton/example.c'],
    ['-rwxr-xr-x', 'dockerSkeleton/buildAndPush.sh'],
    ['', ''],
  ]);
});
