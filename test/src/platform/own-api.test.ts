// Functions that call the platform's API from inside their sandboxes, and reach no other server of the host.
import { spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { findTool } from '@gpuwhisk/invoker/host/programs';
import { hasPython, networkLack } from '../support/machine.js';
import { newDataDir, removeDataDir, startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { otherAuth } from '../support/stem-cells.js';

const suite = networkLack === undefined ? describe : describe.skip;
const python = hasPython ? test : test.skip;
const nft = await findTool('nft');

const withKey = { annotations: { 'provide-api-key': true } };
const greeter = 'function main({ name }) { return { greeting: `Hello, ${name}!` }; }';
const caller = `async function main({ action, key = process.env.__OW_API_KEY }) {
  const response = await fetch(process.env.__OW_API_HOST + '/api/v1/namespaces/_/actions/' + action + '?blocking=true&result=true', {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Basic ' + Buffer.from(key ?? '').toString('base64') },
    body: JSON.stringify({ name: 'Ada' }),
  });
  return { status: response.status, body: await response.json() };
}`;
const pythonCaller = `import base64, json, os, urllib.request
def main(args):
  url = os.environ["__OW_API_HOST"] + "/api/v1/namespaces/_/actions/greeter?blocking=true&result=true"
  key = base64.b64encode(os.environ["__OW_API_KEY"].encode()).decode()
  headers = {"Content-Type": "application/json", "Authorization": "Basic " + key}
  with urllib.request.urlopen(urllib.request.Request(url, b'{"name": "Ada"}', headers)) as response:
    return json.load(response)`;
const hostOf = `function main() { return { host: process.env.__OW_API_HOST }; }`;

/** Addresses of the host, with their links. */
function hostAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((entries) => (entries ?? []).map((entry) => entry.address));
}

async function apiAddress(platform: RunningPlatform): Promise<URL> {
  await platform.api.putAction('host-of', hostOf);
  const { body } = await platform.api.invokeForResult('host-of');
  return new URL(String(body.host));
}

suite(`the API within sandboxes${networkLack ? ` (skipped: ${networkLack})` : ''}`, () => {
  let platform: RunningPlatform;
  beforeAll(async () => {
    platform = await startPlatform();
    await platform.api.putAction('greeter', greeter);
    await platform.api.putAction('caller', caller, withKey);
  });
  afterAll(() => platform.stop());

  test('a function invokes another one with its key', async () => {
    const { body } = await platform.api.invokeForResult('caller', { action: 'greeter' });
    expect(body).toEqual({ status: 200, body: { greeting: 'Hello, Ada!' } });
  });

  test('a function may invoke itself through it', async () => {
    const recursive = caller
      .replace('{ action,', '{ action, name,')
      .replace('const response', 'if (name) return { name };\nconst response');
    await platform.api.putAction('recursive', recursive, withKey);
    const { body } = await platform.api.invokeForResult('recursive', { action: 'recursive' });
    expect(body).toEqual({ status: 200, body: { name: 'Ada' } });
  });

  python('a Python function does so with its own library', async () => {
    await platform.api.putAction('python-caller', pythonCaller, { kind: 'python:default', ...withKey });
    expect((await platform.api.invokeForResult('python-caller')).body).toEqual({ greeting: 'Hello, Ada!' });
  });

  test.each([
    ['no key', ''],
    ['a forged key', `${'0'.repeat(8)}-0000-0000-0000-${'0'.repeat(12)}:${'x'.repeat(64)}`],
  ])('%s is refused', async (_, key) => {
    const { body } = await platform.api.invokeForResult('caller', { action: 'greeter', key });
    expect(body).toMatchObject({ status: 401 });
  });

  test('a function reads nothing of operators, with whatever key', async () => {
    const reader = `async function main({ paths, key }) {
      const headers = key && { authorization: 'Basic ' + Buffer.from(key).toString('base64') };
      const answers = paths.map(async (path) => (await fetch(process.env.__OW_API_HOST + path, { headers })).status);
      return { statuses: await Promise.all(answers) };
    }`;
    await platform.api.putAction('reader', reader);
    const paths = [
      '/api/v1/admin/databases/subjects/documents?docs=true',
      '/api/v1/admin/prewarmers',
      '/api/v1/gpu/models',
      '/api/v1/api-docs',
      '/metrics',
    ];
    const read = async (key: string): Promise<unknown> =>
      (await platform.api.invokeForResult('reader', { paths, key })).body.statuses;
    expect(await read(otherAuth)).toEqual([404, 404, 404, 404, 404]);
    expect(await read(platform.operatorAuth)).toEqual([401, 401, 401, 401, 404]);
    // The same requests from outside.
    const operator = platform.api.as(platform.operatorAuth);
    expect((await operator.request('GET', '../admin/databases/subjects/documents?docs=true')).status).toBe(200);
    const system = platform.api.as(otherAuth);
    expect((await system.request('GET', '../admin/databases/subjects/documents?docs=true')).status).toBe(403);
  });

  test("the operator's key is in a file that only the platform's user may read", () => {
    expect(statSync(join(platform.dataDir, 'operator.key')).mode & 0o777).toBe(0o600);
  });

  test('only its port is open', async () => {
    const { hostname, port } = await apiAddress(platform);
    const knock = `async function main({ host, ports }) {
      const { connect } = require('net');
      const knocked = ports.map((port) => new Promise((resolve) => {
        const socket = connect({ host, port });
        socket.setTimeout(1500, () => { socket.destroy(); resolve([port, 'silence']); });
        socket.on('connect', () => { socket.destroy(); resolve([port, 'connected']); });
        socket.on('error', (error) => resolve([port, error.code]));
      }));
      return Object.fromEntries(await Promise.all(knocked));
    }`;
    await platform.api.putAction('knock', knock);
    const others = [22, 80, 111, Number(port) + 1, Number(new URL(platform.url).port)];
    const { body } = await platform.api.invokeForResult('knock', { host: hostname, ports: [Number(port), ...others] });
    expect(body).toEqual({ [port]: 'connected', ...Object.fromEntries(others.map((other) => [other, 'silence'])) });
  });
});

/** The claims of this host's platforms, for the message of a failure. */
const claims = (): string =>
  readFileSync('/proc/self/net/unix', 'utf8')
    .match(/@gpuwhisk_\S+/g)
    ?.join(' ') ?? 'none';

suite(`the address of the API${networkLack ? ` (skipped: ${networkLack})` : ''}`, () => {
  const rules = (): string =>
    nft === undefined ? '' : spawnSync(nft, ['list', 'ruleset'], { encoding: 'utf8' }).stdout;

  test('outlives no platform: neither one that stops nor the next life of one that was killed', async () => {
    const dataDir = newDataDir();
    const first = await startPlatform({ dataDir });
    const { hostname } = await apiAddress(first);
    expect(hostAddresses()).toContain(hostname);
    await first.end('SIGKILL');
    const second = await startPlatform({ dataDir });
    expect((await apiAddress(second)).hostname).toBe(hostname);
    expect(hostAddresses().filter((address) => address === hostname)).toHaveLength(1);
    expect(await second.end('SIGTERM')).toBe(0);
    await until('its address is gone', () => !hostAddresses().includes(hostname));
    expect(rules()).not.toContain(hostname);
    removeDataDir(dataDir);
  });

  test('of a platform that was killed goes with the next start of any other, those of others stay', async () => {
    const killed = await startPlatform();
    const { hostname } = await apiAddress(killed);
    await killed.end('SIGKILL');
    removeDataDir(killed.dataDir);
    expect(hostAddresses()).toContain(hostname);
    const one = await startPlatform();
    const kept = (await apiAddress(one)).hostname;
    const other = await startPlatform();
    // Another suite's platform that starts now may be about to remove it.
    await until(`${hostname} is gone`, () => !hostAddresses().includes(hostname)).catch((error: Error) => {
      throw new Error(`${error.message}; ${one.output()}${other.output()}${claims()}`);
    });
    expect(hostAddresses()).toContain(kept);
    expect(rules()).not.toContain(hostname);
    if (nft !== undefined) expect(rules()).toContain(kept);
    await one.stop();
    await other.stop();
  });
});
