// Dependencies in repositories: downloaded from a stand-in for GitHub, then deployed.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import AdmZip from 'adm-zip';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { startFakeOpenWhisk, type Answer, type FakeOpenWhisk } from './fake-openwhisk.js';
import { runWsk, withFolder, type WskResult } from './wsk-process.js';

const runtimes: Answer = [200, { runtimes: { nodejs: [{ kind: 'nodejs:20', default: true, deprecated: false }] } }];
const manifest = 'packages: {kit: {actions: {tool: {function: tool.js}}}}\n';

let openWhisk: FakeOpenWhisk;
let gitHub: Server;
let url: string;
/** Archives of the stand-in by path; `asked` lists the requests that it received. */
let archives: Record<string, Buffer>;
let asked: { path: string; authorization: string | undefined }[];

beforeAll(async () => {
  openWhisk = await startFakeOpenWhisk();
  gitHub = createServer((request, response) => {
    const path = request.url ?? '';
    asked.push({ path, authorization: request.headers.authorization });
    const archive = archives[path];
    response.writeHead(archive ? 200 : 404).end(archive);
  });
  await new Promise<void>((resolve) => gitHub.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(gitHub.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await openWhisk.close();
  gitHub.closeAllConnections();
  await new Promise((resolve) => gitHub.close(resolve));
});
beforeEach(() => {
  archives = {};
  asked = [];
});

/** An archive in GitHub's layout: all files in one folder that is named after the commit. */
function archiveOf(files: Record<string, string>): Buffer {
  const zip = new AdmZip();
  zip.addFile('acme-kit-0123456/', Buffer.alloc(0));
  for (const [name, content] of Object.entries(files)) {
    zip.addFile(`acme-kit-0123456/${name}`, Buffer.from(content));
  }
  return zip.toBuffer();
}

/**
 * Runs wsk in a folder whose manifest has this dependency. Returns the requests that followed the one for the runtimes.
 */
async function project(
  command: string,
  dependency: string,
  folder: string,
  { gitHubUrl = url, label = 'dep' } = {},
): Promise<WskResult & { sent: string[] }> {
  writeFileSync(join(folder, 'manifest.yaml'), `packages: {app: {dependencies: {${label}: ${dependency}}}}\n`);
  openWhisk.expect([runtimes, ...Array.from({ length: 10 }, (): Answer => [200, {}])]);
  const result = await runWsk(['--apihost', openWhisk.url, '--auth', 'user:secret', 'project', command], {
    directory: folder,
    environment: { WHISK_GITHUB_URL: gitHubUrl },
  });
  const sent = openWhisk.requests.slice(1).map(({ line }) => line.split(' {')[0] ?? '');
  return { ...result, sent: sent.map((line) => line.replace('/api/v1/namespaces/_', '').replace(openWhisk.url, '')) };
}

const deployed = {
  code: 0,
  stdout: 'Success: Deployment completed successfully.\n',
  stderr: '',
  sent: [
    'PUT /packages/app?overwrite=true',
    'PUT /packages/kit?overwrite=true',
    'PUT /actions/kit/tool?overwrite=true',
    'PUT /packages/dep?overwrite=true',
  ],
};

describe('a dependency in a repository', () => {
  test('is downloaded into the folder Packages, deployed, and bound under its label', () =>
    withFolder(async (folder) => {
      archives['/acme/kit/zipball/v1'] = archiveOf({ 'manifest.yaml': manifest, 'tool.js': 'function main() {}' });
      expect(await project('deploy', '{location: github.com/acme/kit, version: v1}', folder)).toEqual(deployed);
      expect(asked).toEqual([{ path: '/acme/kit/zipball/v1', authorization: undefined }]);
      expect(readFileSync(join(folder, 'Packages/dep-v1/tool.js'), 'utf8')).toBe('function main() {}');
      expect(readdirSync(join(folder, 'Packages'))).toEqual(['dep-v1']);
    }));

  test('may be a folder of it; the branch is master where none is named; credentials go into a header', () =>
    withFolder(async (folder) => {
      archives['/acme/kit/zipball/master'] = archiveOf({ 'a/b/manifest.yaml': manifest, 'a/b/tool.js': 'x' });
      const location = '{location: "https://me:secret@github.com/acme/kit.git/a/b"}';
      expect(await project('deploy', location, folder)).toEqual(deployed);
      const authorization = `Basic ${Buffer.from('me:secret').toString('base64')}`;
      expect(asked).toEqual([{ path: '/acme/kit/zipball/master', authorization }]);
    }));

  test('is downloaded anew when it is deployed, and only if it is missing when it is undeployed', () =>
    withFolder(async (folder) => {
      const dependency = '{location: github.com/acme/kit, version: v1}';
      archives['/acme/kit/zipball/v1'] = archiveOf({ 'manifest.yaml': manifest, 'tool.js': 'old', 'gone.js': 'x' });
      await project('deploy', dependency, folder);
      archives['/acme/kit/zipball/v1'] = archiveOf({ 'manifest.yaml': manifest, 'tool.js': 'new' });
      await project('deploy', dependency, folder);
      expect(readdirSync(join(folder, 'Packages/dep-v1')).sort()).toEqual(['manifest.yaml', 'tool.js']);
      const undeployed = await project('undeploy', dependency, folder);
      expect(undeployed.sent).toContain('DELETE /actions/kit/tool');
      expect(asked).toHaveLength(2);
      await withFolder(async (other) => {
        expect((await project('undeploy', dependency, other)).sent).toContain('DELETE /packages/kit');
      });
      expect(asked).toHaveLength(3);
    }));

  test('leads nowhere outside its folder', () =>
    withFolder(async (folder) => {
      archives['/acme/kit/zipball/a/b'] = archiveOf({ 'manifest.yaml': manifest, 'tool.js': 'x' });
      const name = '../../dep';
      const dependency = '{location: github.com/acme/kit, version: a/b}';
      expect((await project('deploy', dependency, folder, { label: name })).code).toBe(0);
      expect(readdirSync(join(folder, 'Packages'))).toEqual(['..-..-dep-a-b']);
    }));
});

describe('a repository that cannot be had leaves everything as it was', () => {
  const isRefused = async (reason: string | RegExp, gitHubUrl = url): Promise<void> =>
    withFolder(async (folder) => {
      const refused = await project('deploy', '{location: github.com/acme/kit}', folder, { gitHubUrl });
      expect(refused).toEqual({ code: 1, stdout: '', stderr: expect.any(String), sent: [] });
      const [, type, address, told = ''] =
        /^\[(\w+)\]: File: \[manifest.yaml\]: Dependency \[dep\]: (\S+) could not be downloaded: (.*)/.exec(
          refused.stderr,
        ) ?? [];
      expect([type, address]).toEqual(['ERROR_FILE_READ_ERROR', `${gitHubUrl}/acme/kit/zipball/master`]);
      expect(told).toMatch(reason);
      expect(existsSync(join(folder, 'Packages'))).toBe(false);
    });

  test('no such repository', () => isRefused(/^HTTP status code 404$/));

  test('no server', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    return isRefused(/ECONNREFUSED/, `http://127.0.0.1:${port}`);
  });

  test('no archive', () => {
    archives['/acme/kit/zipball/master'] = Buffer.from('<html>Sign in</html>');
    return isRefused(/zip/i);
  });

  test('a path that leads out', () => {
    const archive = archiveOf({ 'xx/xx/evil.js': 'x' });
    const evil = Buffer.from(archive.toString('latin1').replaceAll('xx/xx', '../..'), 'latin1');
    archives['/acme/kit/zipball/master'] = evil;
    return isRefused(/leads out of the folder/);
  });

  test('more unpacked than there may be', () => {
    const zip = new AdmZip(archiveOf({ 'big.js': 'x' })).toBuffer();
    const size = 0x7fffffff;
    // The uncompressed size in the archive's directory entry of its last file.
    zip.writeUInt32LE(size, zip.lastIndexOf(Buffer.from('PK\x01\x02', 'latin1')) + 24);
    archives['/acme/kit/zipball/master'] = zip;
    return isRefused(/unpacks to more than/);
  });
});

test('symbolic links of a repository are left out', () =>
  withFolder(async (folder) => {
    const zip = new AdmZip(archiveOf({ 'manifest.yaml': manifest, 'tool.js': 'x' }));
    const link = zip.addFile('acme-kit-0123456/link', Buffer.from('/etc/passwd'));
    link.attr = (0o120777 << 16) >>> 0;
    archives['/acme/kit/zipball/master'] = zip.toBuffer();
    expect((await project('deploy', '{location: github.com/acme/kit}', folder)).code).toBe(0);
    expect(readdirSync(join(folder, 'Packages/dep-master')).sort()).toEqual(['manifest.yaml', 'tool.js']);
  }));
