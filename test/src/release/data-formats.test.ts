// Data folders that releases have written, one for each format: every later release opens them.
// FORMAT_UPDATE=1 npm run test:all -- release/data-formats writes that of the present format, unless it is there.
import { afterEach, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openDataFormat } from '@gpuwhisk/server/process/data-format';
import { newDataDir, removeDataDir, startAndFail, startPlatform } from '../support/running-platform.js';
import { canMount, mountSmall, unmountSmall } from '../support/small-disk.js';

const fixtures = fileURLToPath(new URL('../../fixtures/data-formats/', import.meta.url));
const presentFormat = 1;
const code = 'exports.main = ({ name }) => ({ greeting: `Hello ${name}` })';

const folders: string[] = [];
const newFolder = (): string => {
  const folder = newDataDir();
  folders.push(folder);
  return folder;
};
afterEach(() => folders.splice(0).forEach(removeDataDir));

function tar(...args: string[]): void {
  const { status, stderr } = spawnSync('tar', args, { encoding: 'utf8', timeout: 60_000 });
  if (status !== 0) throw new Error(`tar: ${stderr}`);
}

/** Writes what a release of this format leaves: entities, a version before, records, and an activation that has not run. */
async function write(file: string): Promise<void> {
  const dataDir = newFolder();
  const platform = await startPlatform({ dataDir });
  const { api } = platform;
  await api.putAction('greet', 'exports.main = () => ({})');
  await api.request('PUT', '_/actions/greet?overwrite=true', { exec: { kind: 'nodejs:default', code } });
  await api.request('PUT', '_/packages/kept', { parameters: [{ key: 'name', value: 'you' }] });
  await api.request('PUT', '_/triggers/often', {});
  await api.request('PUT', '_/rules/link', { trigger: '/_/often', action: '/_/greet' });
  const record = await api.invoke('greet', { name: 'record' });
  await api.record(record.body.activationId);
  expect(await platform.end('SIGTERM')).toBe(0);
  const kept = readdirSync(dataDir).filter((name) => !['sandboxes', 'runtimes', 'requirements'].includes(name));
  mkdirSync(dirname(file), { recursive: true });
  tar('-czSf', file, '-C', dataDir, ...kept);
}

test('data of every release is opened: entities, versions before, records and links are there, and functions run', async () => {
  const present = join(fixtures, `${presentFormat}.tar.gz`);
  if (process.env['FORMAT_UPDATE'] === '1' && !existsSync(present)) await write(present);
  const files = readdirSync(fixtures);
  expect(files.length).toBe(presentFormat);
  for (const file of files) {
    const dataDir = newFolder();
    tar('-xzf', join(fixtures, file), '-C', dataDir);
    const platform = await startPlatform({ dataDir });
    const { api } = platform;
    const { body } = await api.invoke('greet', { name: basename(file) });
    expect(body.response.result).toEqual({ greeting: `Hello ${basename(file)}` });
    await api.record(body.activationId);
    const records = await api.request<{ name: string }[]>('GET', '_/activations?limit=10&name=greet');
    expect(records.body).toHaveLength(2);
    const gets = ['actions/greet', 'packages/kept', 'triggers/often', 'rules/link'].map((path) =>
      api.request('GET', `_/${path}`),
    );
    expect((await Promise.all(gets)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const fired = await api.request<{ activationId: string }>('POST', '_/triggers/often', { name: 'fire' });
    expect(fired.status).toBe(202);
    await platform.stop();
  }
});

test('a server refuses newer data with one line that names its backup, and leaves it as it is', async () => {
  const dataDir = newFolder();
  mkdirSync(join(dataDir, 'backups', 'format-1'), { recursive: true });
  const told = '{"format":99,"release":"9.0.0"}';
  writeFileSync(join(dataDir, 'format.json'), told);
  const { code: exit, stdout, stderr } = await startAndFail({ dataDir });
  expect([exit, stdout]).toEqual([1, '']);
  expect(stderr.trim().split('\n')).toEqual([expect.stringContaining(`has format 99, of gpuwhisk 9.0.0`)]);
  expect(stderr).toContain(`its backup is ${join(dataDir, 'backups', 'format-1')}`);
  expect(readFileSync(join(dataDir, 'format.json'), 'utf8')).toBe(told);
});

test('compiled code that is cut off does not stop a start', async () => {
  const cache = newFolder();
  const env = { CACHE_DIRECTORY: cache };
  const dataDir = newFolder();
  const first = await startPlatform({ dataDir, env });
  await new Promise((done) => setTimeout(done, 3500));
  expect(await first.end('SIGTERM')).toBe(0);
  const [name = ''] = readdirSync(cache);
  expect(name).toMatch(/^standalone-[0-9a-f]+\.code$/);
  const whole = readFileSync(join(cache, name));
  writeFileSync(join(cache, name), whole.subarray(0, whole.length / 2));
  const second = await startPlatform({ dataDir, env });
  expect(await second.end('SIGTERM')).toBe(0);
});

(canMount ? test : test.skip)(
  'a disk that is full before a change of format costs no data: free space is all it takes',
  async () => {
    const folder = newFolder();
    const data = join(folder, 'small');
    expect(mountSmall(data, 3)).toBe(true);
    try {
      await openDataFormat(data, { format: 1, migrations: {} });
      mkdirSync(join(data, 'store'));
      writeFileSync(join(data, 'store', 'data'), Buffer.alloc(2 ** 21, 'd'));
      const next = {
        format: 2,
        migrations: { 1: (changed: string) => Promise.resolve(writeFileSync(join(changed, 'store', 'new'), '')) },
      };
      const before = readFileSync(join(data, 'format.json'), 'utf8');
      await expect(openDataFormat(data, next)).rejects.toThrow(
        /has no space for the backup .* free \d+ MiB, and start again/,
      );
      expect(readFileSync(join(data, 'format.json'), 'utf8')).toBe(before);
      expect([readdirSync(join(data, 'store')), readdirSync(join(data, 'backups'))]).toEqual([['data'], []]);
      expect(spawnSync('mount', ['-o', 'remount,size=8m', data]).status).toBe(0);
      await openDataFormat(data, next);
      expect(readdirSync(join(data, 'store')).sort()).toEqual(['data', 'new']);
    } finally {
      unmountSmall(data);
      rmSync(data, { recursive: true, force: true });
    }
  },
);
