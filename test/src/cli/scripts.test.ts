// What somebody sees who types one of the scripts of package.json.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
const ownScripts = Object.entries(scripts).filter(([, command]) => /^(exec )?node /.test(command));

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-scripts-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test.each(ownScripts)('npm run %s is one clear line on an old Node.js, before anything is parsed', (_, command) => {
  const old = join(folder, 'old.cjs');
  writeFileSync(
    old,
    `Object.defineProperty(process, 'version', { value: 'v12.22.12' });
     Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '12.22.12' } });`,
  );
  // Only the check is there: whoever looked at the program first would fail.
  mkdirSync(join(folder, 'scripts'));
  cpSync(join(root, 'scripts', 'node-version.cjs'), join(folder, 'scripts', 'node-version.cjs'));
  const env = { ...process.env, NODE_OPTIONS: `-r ${old}` };
  const { status, stderr } = spawnSync('sh', ['-c', command], { cwd: folder, env, encoding: 'utf8', timeout: 30_000 });
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: 'gpuwhisk needs Node.js 20 or newer; this is v12.22.12.\n',
  });
});

test.each([
  [['--help'], 0, 'stdout', /^Usage: npm run cluster -- \[flags\]\n/],
  [['--controler', '3'], 1, 'stderr', /^Unknown option '--controler'.*\n\nUsage: npm run cluster/],
  [['--invokers', '0'], 1, 'stderr', /^--controllers and --invokers take a number from 1 to 20\n$/],
] as const)('npm run cluster -- %p explains itself', (flags, code, stream, text) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/cluster.mjs', ...flags], {
    ...{ cwd: root, encoding: 'utf8', timeout: 30_000 },
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  expect({ status, text: { stdout, stderr }[stream] }).toEqual({ status: code, text: expect.stringMatching(text) });
});
