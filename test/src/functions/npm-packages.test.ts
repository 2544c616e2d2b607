// Archives with a package.json and no node_modules: npm installs their packages in a sandbox, here from a registry of the test.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import AdmZip from 'adm-zip';
import { isolationLack } from '../support/machine.js';
import { startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

/** A version of a package: the fields of its package.json, and its files. */
interface Release {
  version: string;
  fields?: Record<string, unknown>;
  files: Record<string, string>;
}

const releases: Record<string, Release[]> = {
  'sample-greeting': ['1.0.0', '1.1.0'].map((version) => ({
    version,
    fields: { dependencies: { 'sample-word': '^2.0.0' } },
    files: { 'index.js': `module.exports = require('sample-word') + ' ${version}'` },
  })),
  'sample-word': [{ version: '2.3.4', files: { 'index.js': "module.exports = 'hello'" } }],
  'sample-module': [
    { version: '1.0.0', fields: { type: 'module' }, files: { 'index.js': "export const word = 'module'" } },
  ],
  'sample-script': [
    {
      version: '1.0.0',
      fields: { scripts: { postinstall: 'touch ran; echo PWNED > index.js' } },
      files: { 'index.js': "module.exports = require('fs').readdirSync(__dirname).sort()" },
    },
  ],
};

/** A registry as npm calls one, with what it was asked for. */
interface StandInRegistry {
  url: string;
  asked: string[];
  /** What requests had in their header `authorization`, if a token is demanded. */
  told: Set<string | undefined>;
  /** Whether any process had the token in its command line as a request came. */
  isShown: boolean;
  integrity(name: string, version: string): string;
  close(): Promise<void>;
}

/** Whether `ps` shows a text. */
function isInCommands(text: string): boolean {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .some((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(text);
      } catch {
        return false; // It has ended.
      }
    });
}

/** Starts a registry; with `token` it answers only those who tell it. */
async function startRegistry(token?: string): Promise<StandInRegistry> {
  const tarballs = new Map<string, Buffer>();
  for (const [name, versions] of Object.entries(releases)) {
    for (const release of versions) tarballs.set(`${name}-${release.version}.tgz`, tarballOf(name, release));
  }
  const integrity = (name: string, version: string): string =>
    `sha512-${createHash('sha512')
      .update(tarballs.get(`${name}-${version}.tgz`) ?? '')
      .digest('base64')}`;
  const asked: string[] = [];
  const server: Server = createServer((request, response) => {
    const path = decodeURIComponent((request.url ?? '').slice(1));
    asked.push(path);
    if (token !== undefined) {
      const { authorization } = request.headers;
      registry.told.add(authorization);
      registry.isShown ||= isInCommands(token);
      response.setHeader('content-type', 'application/json');
      if (authorization !== `Bearer ${token}`) return void response.writeHead(401).end('{"error":"Who are you?"}');
    }
    const tarball = tarballs.get(path);
    if (tarball !== undefined) return void response.end(tarball);
    const versions = releases[path];
    response.setHeader('content-type', 'application/json');
    if (versions === undefined) return void response.writeHead(404).end('{"error":"Not found"}');
    const described = versions.map(({ version, fields }) => [
      version,
      {
        ...{ name: path, version, ...fields },
        ...((fields?.scripts as unknown) !== undefined && { hasInstallScript: true }),
        dist: { tarball: `${url}/${path}-${version}.tgz`, integrity: integrity(path, version) },
      },
    ]);
    const latest = versions.at(-1)?.version;
    response.end(
      JSON.stringify({ name: path, 'dist-tags': { latest }, versions: Object.fromEntries(described) as unknown }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const registry: StandInRegistry = {
    url,
    asked,
    told: new Set(),
    isShown: false,
    integrity,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return registry;
}

function tarballOf(name: string, { version, fields, files }: Release): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-npm-'));
  const all = { 'package.json': JSON.stringify({ name, version, ...fields }), ...files };
  for (const [path, text] of Object.entries(all)) {
    mkdirSync(dirname(join(folder, 'package', path)), { recursive: true });
    writeFileSync(join(folder, 'package', path), text);
  }
  const tarball = execFileSync('tar', ['-czf', '-', '-C', folder, 'package']);
  rmSync(folder, { recursive: true });
  return tarball;
}

async function runOn(platform: RunningPlatform, name: string, files: Record<string, unknown>) {
  const archive = new AdmZip();
  for (const [path, content] of Object.entries(files)) {
    archive.addFile(path, Buffer.from(typeof content === 'string' ? content : JSON.stringify(content)));
  }
  await platform.api.putAction(name, archive.toBuffer());
  const { record } = await platform.api.run(name);
  return { result: record.response.result, status: record.response.status, log: record.logs.join('\n') };
}

const reason = isolationLack;
(reason === undefined ? describe : describe.skip)(`npm packages${reason ? ` (skipped: ${reason})` : ''}`, () => {
  let registry: StandInRegistry;
  let platform: RunningPlatform;
  beforeAll(async () => {
    registry = await startRegistry();
    // Without a network of functions npm has the host's, where the registry is.
    const flags = ['--set', 'actionNetwork=false'];
    platform = await startPlatform({ flags, env: { npm_config_registry: registry.url } });
  });
  afterAll(async () => {
    await platform.stop();
    await registry.close();
  });

  const run = (name: string, files: Record<string, unknown>) => runOn(platform, name, files);

  const greets = "const greeting = require('sample-greeting');\nexports.main = () => ({ greeting });";

  test('are installed with those that they need, once for all versions of the code', async () => {
    const described = { dependencies: { 'sample-greeting': '^1.0.0' } };
    const first = await run('greets', { 'package.json': described, 'index.js': greets });
    expect(first).toMatchObject({ status: 'success', result: { greeting: 'hello 1.1.0' }, log: '' });
    const asked = registry.asked.length;
    const changed = { 'package.json': { ...described, description: 'other' }, 'index.js': `// changed\n${greets}` };
    expect((await run('greets', changed)).result).toEqual({ greeting: 'hello 1.1.0' });
    expect(registry.asked).toHaveLength(asked);
  });

  test('are those of the lock file', async () => {
    const described = { name: 'locked', version: '1.0.0', dependencies: { 'sample-greeting': '^1.0.0' } };
    const of = (name: string, version: string, more = {}): Record<string, unknown> => ({
      [`node_modules/${name}`]: {
        ...{ version, integrity: registry.integrity(name, version), ...more },
        // The address of another registry is not used.
        resolved: `http://127.0.0.1:1/${name}/-/${name}-${version}.tgz`,
      },
    });
    const lock = {
      ...{ name: 'locked', version: '1.0.0', lockfileVersion: 3, requires: true },
      packages: {
        '': described,
        ...of('sample-greeting', '1.0.0', { dependencies: { 'sample-word': '^2.0.0' } }),
        ...of('sample-word', '2.3.4'),
      },
    };
    const files = { 'package.json': described, 'package-lock.json': lock, 'index.js': greets };
    expect((await run('locked', files)).result).toEqual({ greeting: 'hello 1.0.0' });
  });

  test('are imported by ES modules, too', async () => {
    const described = { type: 'module', dependencies: { 'sample-module': '*' } };
    const code = "import { word } from 'sample-module';\nexport default () => ({ word });";
    expect((await run('imports', { 'package.json': described, 'index.js': code })).result).toEqual({ word: 'module' });
  });

  test('run no scripts of theirs', async () => {
    const described = { dependencies: { 'sample-script': '1.0.0' } };
    const code = "exports.main = () => ({ files: require('sample-script') });";
    const { result } = await run('scripts', { 'package.json': described, 'index.js': code });
    expect(result).toEqual({ files: ['index.js', 'package.json'] });
  });

  test('cannot be changed by functions', async () => {
    const described = { dependencies: { 'sample-word': '*' } };
    const code = `exports.main = () => {
      try {
        require('fs').writeFileSync(require.resolve('sample-word'), 'module.exports = 1');
        return { wrote: true };
      } catch (error) {
        return { code: error.code };
      }
    };`;
    expect((await run('writes', { 'package.json': described, 'index.js': code })).result).toEqual({ code: 'EROFS' });
  });

  test('are not asked for if the archive has node_modules', async () => {
    const asked = registry.asked.length;
    const files = {
      'package.json': { dependencies: { 'sample-greeting': '^1.0.0' } },
      'index.js': greets,
      'node_modules/sample-greeting/index.js': "module.exports = 'own'",
    };
    expect((await run('own', files)).result).toEqual({ greeting: 'own' });
    expect(registry.asked).toHaveLength(asked);
  });

  test.each([
    ['no-such', { 'sample-none': '^1.0.0' }, /npm: E404 .*'sample-none@\^1\.0\.0'.* (is not in|could not be found)/],
    ['no-version', { 'sample-word': '^9.0.0' }, /npm: ETARGET No matching version found for sample-word@\^9\.0\.0/],
    [
      'file',
      { 'sample-word': 'file:../x' },
      /dependency "sample-word" is "file:\.\.\/x", but must be a version of a package in npm's registry\./,
    ],
    ['git', { 'sample-word': 'git+ssh://git@example.org/x.git' }, /must be a version of a package in npm's registry\./],
    ['option', { '--registry': '1.0.0', 'a b': '1' }, /dependency "a b" is "1", but must be/],
  ])('that cannot be had: the log says why and what to do (%s)', async (name, dependencies, why) => {
    const [wanted = ''] = Object.keys(dependencies);
    const needs = `require('${wanted}'); exports.main = () => ({});`;
    const failed = await run(`needs-${name}`, { 'package.json': { dependencies }, 'index.js': needs });
    expect(failed.status).toBe('action developer error');
    expect(failed.result.error).toContain(`Cannot find module '${wanted}'`);
    expect(failed.log).toMatch(/The dependencies of package\.json were not installed: /);
    expect(failed.log).toMatch(why);
    expect(failed.log).toContain("Run 'npm install' and zip the folder node_modules with the code.");
    expect(failed.log).not.toContain(registry.url);
  });

  test('that cannot be had leave code alone that was bundled with them', async () => {
    const files = {
      'package.json': { dependencies: { 'sample-none': '^1.0.0' } },
      'index.js': 'exports.main = () => ({ bundled: true });',
    };
    const { result, log } = await run('bundled', files);
    expect(result).toEqual({ bundled: true });
    expect(log).toMatch(/were not installed: npm: E404/);
  });

  test('of a registry that does not answer: the log says so', async () => {
    await registry.close();
    const files = {
      'package.json': { dependencies: { 'sample-word': '2.3.4', 'sample-module': '1.0.0' } },
      'index.js': "exports.main = () => ({ word: require('sample-word') });",
    };
    const { status, log } = await run('unreachable', files);
    expect(status).toBe('action developer error');
    expect(log).toMatch(/npm: ECONN\w+ the registry of packages cannot be reached\. Run 'npm install'/);
  });
});

(reason === undefined ? describe : describe.skip)('npm packages of a registry that demands a token', () => {
  const token = 'npm_Secret0123456789';
  const described = { dependencies: { 'sample-word': '*' } };
  const code = `exports.main = () => ({ word: require('sample-word'), env: process.env });`;
  let registry: StandInRegistry;
  let folder: string;
  beforeAll(async () => {
    registry = await startRegistry(token);
    folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-npmrc-'));
  });
  afterAll(async () => {
    await registry.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** A platform whose operator has told npm this token for the registry, and another one for a registry that is not used. */
  async function start(told: string): Promise<RunningPlatform> {
    const file = join(folder, 'npmrc');
    const at = registry.url.replace('http:', '');
    writeFileSync(
      file,
      `registry=${registry.url}\n${at}/:_authToken=\${TOLD}\n//127.0.0.1:1/:_authToken=unused-token\n`,
    );
    const env = { npm_config_userconfig: file, TOLD: told };
    return startPlatform({ flags: ['--set', 'actionNetwork=false', '--set', 'logLevel=debug'], env });
  }

  test("are installed with the operator's token, which no function, log, record or command line shows", async () => {
    const platform = await start(token);
    try {
      const { result, status, log } = await runOn(platform, 'private', { 'package.json': described, 'index.js': code });
      expect({ status, word: result.word, log }).toEqual({ status: 'success', word: 'hello', log: '' });
      expect(registry.told).toEqual(new Set([`Bearer ${token}`]));
      const records = await platform.api.request('GET', '_/activations?docs=true');
      const logged = platform.output();
      expect(logged).toContain('npm packages were installed');
      expect(`${JSON.stringify([result, records.body])}${logged}`).not.toMatch(/npm_Secret|unused-token/);
      expect(registry.isShown).toBe(false);
    } finally {
      await platform.stop();
    }
  });

  test('are refused with another token: the log says so, without the token', async () => {
    const platform = await start('npm_Wrong');
    try {
      const { status, log } = await runOn(platform, 'refused', { 'package.json': described, 'index.js': code });
      expect(status).toBe('action developer error');
      expect(log).toMatch(
        /npm: E401 the registry of packages refuses the platform's token or password\. Run 'npm install'/,
      );
      expect(`${log}${platform.output()}`).not.toContain('npm_Wrong');
    } finally {
      await platform.stop();
    }
  });
});
