import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, realpathSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Container } from '@gpuwhisk/invoker/containers/container-factory';
import { ProvisioningError } from '@gpuwhisk/invoker/containers/container-factory';
import { initRequest, limits, spec } from './container-calls.js';
import { initialized, run, textOf } from './containers/cases.js';
import { hasLauncher, httpKind, isRoot, openProcessFactory } from './process-harness.js';
import type { ProcessHarness } from './process-harness.js';

async function whyNot(): Promise<string | undefined> {
  if (!hasLauncher || !isRoot) return 'a network for sandboxes needs root and the launcher';
  const harness = await openProcessFactory({ actionNetwork: true });
  await harness.close();
  return [...harness.report.notes, ...harness.report.weaknesses][0];
}

const reason = await whyNot();
const suite = reason === undefined ? describe : describe.skip;
const httpSpec = { ...spec, kind: httpKind };
const hostAddresses = (): string[] =>
  Object.values(networkInterfaces())
    .flatMap((entries) => entries ?? [])
    .filter((entry) => entry.family === 'IPv4' && !entry.internal)
    .map((entry) => entry.address);
const links = (): string[] => readdirSync('/sys/class/net').filter((name) => name.startsWith('gw'));

test('without a network, kinds that speak HTTP are refused with the reason', async () => {
  const harness = await openProcessFactory();
  await expect(harness.factory.create(httpSpec)).rejects.toThrow(ProvisioningError);
  await expect(harness.factory.create(httpSpec)).rejects.toThrow('needs a network between host and sandbox');
  await harness.close();
});

async function connectFrom(container: Container, host: string, port: number): Promise<unknown> {
  const script = `return new Promise((resolve) => {
    const socket = require('node:net').connect(${port}, ${JSON.stringify(host)});
    socket.setTimeout(700, () => { socket.destroy(); resolve('silent'); });
    socket.on('connect', () => resolve('connected'));
    socket.on('error', (error) => resolve(error.code)); });`;
  const outcome = await run(container, { do: 'script', script }).outcome;
  return outcome.type === 'result' && !Array.isArray(outcome.result) ? outcome.result.value : outcome;
}

/**
 * A network namespace in place of a remote host: `10.254.77.2` and `fd54::2`, which answer at ports 80 and 53. Returns
 * its removal.
 */
function openFarHost(): () => void {
  const name = `far${process.pid}`;
  const ip = (...args: string[]): string => execFileSync('ip', args, { encoding: 'utf8' });
  // A killed test run leaves its link and the routes over it.
  for (const left of readdirSync('/sys/class/net').filter((link) => /^far\d+$/.test(link))) ip('link', 'delete', left);
  ip('netns', 'add', name);
  ip('link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name);
  ip('addr', 'add', '10.254.77.1/24', 'dev', name);
  ip('link', 'set', name, 'up');
  for (const address of far) ip('-n', name, 'addr', 'add', `${address}/32`, 'dev', 'lo');
  ip('-n', name, 'addr', 'add', '10.254.77.254/24', 'dev', 'eth0');
  for (const link of ['lo', 'eth0']) ip('-n', name, 'link', 'set', link, 'up');
  ip('-n', name, 'route', 'add', 'default', 'via', '10.254.77.1');
  for (const address of far) ip('route', 'add', `${address}/32`, 'via', '10.254.77.254');
  const answer = `for (const port of [80, 53]) require('node:net').createServer((s) => s.on('error', () => s.destroy()))
    .listen(port, '0.0.0.0', () => console.log('listening'));`;
  const server = spawn('ip', ['netns', 'exec', name, process.execPath, '-e', answer], { stdio: 'ignore' });
  return () => {
    server.kill('SIGKILL');
    // A deleted network namespace keeps its links until its last process has ended.
    ip('link', 'delete', name);
    ip('netns', 'delete', name);
  };
}

const far = ['198.18.0.1', '198.18.0.2', '198.18.0.3', '198.18.0.4', '100.100.100.200', '168.63.129.16', '192.0.0.192'];

suite.each(['nft', 'iptables'])(
  `where functions connect to, by %s${reason === undefined ? '' : ` (skipped: ${reason})`}`,
  (tool) => {
    let closeFar: (() => void) | undefined;
    let harness: ProcessHarness;
    let container: Container;
    const egress = {
      deny: ['198.18.0.2', '198.18.0.4'],
      allow: ['198.18.0.4'],
      namespaces: { team: { deny: ['198.18.0.1'], allow: ['198.18.0.2'] } },
      connections: 20,
    };

    beforeAll(async () => {
      closeFar = openFarHost();
      harness = await openProcessFactory({ actionNetwork: true, egress, firewallTools: [tool] });
      expect(harness.report).toEqual({ weaknesses: [], notes: [] });
      container = await initialized(harness.factory);
    });
    afterAll(async () => {
      await harness?.close();
      closeFar?.();
    });

    const reached = async (from: Container, hosts: readonly string[]): Promise<unknown> => {
      const script = `return Promise.all(${JSON.stringify(hosts)}.map((host) => new Promise((resolve) => {
      const socket = require('node:net').connect(80, host);
      socket.setTimeout(700, () => { socket.destroy(); resolve('silent'); });
      socket.on('connect', () => { socket.destroy(); resolve('connected'); });
      socket.on('error', (error) => resolve(error.code)); })));`;
      const outcome = await run(from, { do: 'script', script }).outcome;
      return outcome.type === 'result' && !Array.isArray(outcome.result) ? outcome.result.value : outcome;
    };

    test('anywhere but to what is denied, unless it is allowed, and never to metadata of clouds', async () => {
      expect(await reached(container, ['198.18.0.1', '198.18.0.3', '198.18.0.4'])).toEqual(Array(3).fill('connected'));
      const denied = ['198.18.0.2', '100.100.100.200', '168.63.129.16', '192.0.0.192', '169.254.169.254'];
      expect(await reached(container, denied)).toEqual(denied.map(() => 'silent'));
    });

    test('not to nodes of the platform, from when they are known until they are gone', async () => {
      await harness.processes.denyNodes(['198.18.0.3', 'fd00::1']);
      expect(await reached(container, ['198.18.0.1', '198.18.0.3'])).toEqual(['connected', 'silent']);
      await harness.processes.denyNodes(['198.18.0.1']);
      expect(await reached(container, ['198.18.0.1', '198.18.0.3'])).toEqual(['silent', 'connected']);
      await harness.processes.denyNodes([]);
      expect(await reached(container, ['198.18.0.1'])).toEqual(['connected']);
    });

    test('as the rules of its namespace say', async () => {
      const teams = await harness.factory.create(spec);
      expect(await teams.init(initRequest(), { ...limits, forNamespace: 'team' }).outcome).toMatchObject({
        type: 'ok',
      });
      const hosts = ['198.18.0.1', '198.18.0.2', '198.18.0.3', '100.100.100.200'];
      expect(await reached(teams, hosts)).toEqual(['silent', 'connected', 'connected', 'silent']);
      expect(await reached(container, hosts)).toEqual(['connected', 'silent', 'connected', 'silent']);
      const listed = (): string =>
        tool === 'nft'
          ? execFileSync('nft', ['list', 'ruleset'], { encoding: 'utf8' })
          : execFileSync('iptables', ['-S'], { encoding: 'utf8' });
      const bound = /"gw\w+" : jump tenant0|_b -i gw\w+ -j/;
      expect(listed()).toMatch(bound);
      await teams.destroy();
      expect(listed()).not.toMatch(bound);
      // Also from the start, where code is there before an init.
      const launch = await harness.catalog.launch(spec.kind, []);
      const early = await harness.processes.launchContainer(spec, launch, { forNamespace: 'team' });
      expect(await early.init(initRequest(), limits).outcome).toMatchObject({ type: 'ok' });
      expect(await reached(early, hosts)).toEqual(['silent', 'connected', 'connected', 'silent']);
      await early.destroy();
      expect(listed()).not.toMatch(bound);
    });

    test('by no more connections at a time than the limit', async () => {
      const script = `const all = await Promise.all(Array.from({ length: 40 }, () => new Promise((resolve) => {
      const socket = require('node:net').connect(80, '198.18.0.3');
      socket.setTimeout(700, () => resolve({ socket, reached: socket.readyState === 'open' }));
      socket.on('error', () => resolve({ socket, reached: false })); })));
      all.forEach(({ socket }) => socket.destroy());
      return all.filter(({ reached }) => reached).length;`;
      const flooding = await initialized(harness.factory);
      const outcome = await run(flooding, { do: 'script', script }).outcome;
      expect(outcome).toMatchObject({ type: 'result', result: { value: egress.connections } });
      // The neighbouring container has a connection limit of its own.
      expect(await reached(container, ['198.18.0.3'])).toEqual(['connected']);
      await flooding.destroy();
    });

    test("and not to the host's end of the link by its own IPv6 address", async () => {
      const server = createServer((_, response) => response.end('secret'));
      await new Promise<void>((resolve) => server.listen(0, '::', resolve));
      const { port } = server.address() as AddressInfo;
      const mine = `return require('node:os').networkInterfaces().eth0?.map(({ address }) => address) ?? [];`;
      const own = await run(container, { do: 'script', script: mine }).outcome;
      const address =
        own.type === 'result' && !Array.isArray(own.result) ? String((own.result.value as string[])[0]) : '';
      const gateway = address.replace(/\d+$/, (last) => String(Number(last) - 1));
      const link = Object.values(networkInterfaces()).find((all) => all?.some((each) => each.address === gateway));
      const hosts = (link ?? []).map((each) => (each.family === 'IPv6' ? `${each.address}%eth0` : each.address));
      expect(hosts).toContain(gateway);
      for (const host of hosts) expect(await connectFrom(container, host, port)).toBe('silent');
      server.close();
    });
  },
);

suite(`the network of sandboxes${reason === undefined ? '' : ` (skipped: ${reason})`}`, () => {
  let harness: ProcessHarness;
  let service: Server;
  beforeAll(async () => {
    harness = await openProcessFactory({ actionNetwork: true });
    service = createServer((_, response) => response.end('secret'));
    await new Promise<void>((resolve) => service.listen(0, '0.0.0.0', resolve));
  });
  afterAll(async () => {
    service.close();
    await harness.close();
  });

  test('reaches no address of the host, no other sandbox and no link-local address', async () => {
    const { factory } = harness;
    const [hostile, victim] = await Promise.all([initialized(factory), initialized(factory)]);
    const { port } = service.address() as AddressInfo;
    const address = `return require('node:os').networkInterfaces().eth0[0].address;`;
    const listen = `globalThis.server = require('node:net').createServer().listen(9000, '0.0.0.0'); ${address}`;
    const outcome = await run(victim, { do: 'script', script: listen }).outcome;
    const neighbour = String(outcome.type === 'result' && !Array.isArray(outcome.result) && outcome.result.value);
    expect(neighbour).toMatch(/^10\.2/);
    const own = hostAddresses();
    expect(own.length).toBeGreaterThan(1);
    expect(await connectFrom(hostile, '127.0.0.1', port)).toBe('ECONNREFUSED');
    for (const host of own) {
      const answer = await connectFrom(hostile, host, port);
      // Links of other platforms' sandboxes may appear and disappear during the test.
      if (hostAddresses().includes(host)) expect(answer).toBe('silent');
    }
    expect(await connectFrom(hostile, neighbour, 9000)).toBe('silent');
    expect(await connectFrom(hostile, '169.254.169.254', 80)).toBe('silent');
    await Promise.all([hostile.destroy(), victim.destroy()]);
  });

  describe('a runtime that speaks HTTP', () => {
    let container: Container;
    beforeAll(async () => {
      container = await harness.factory.create(httpSpec);
      const call = container.init(initRequest(), limits);
      expect(await call.outcome).toMatchObject({ type: 'ok' });
      expect(await call.logs).toEqual([]);
    });
    afterAll(() => container.destroy());

    test('answers with its result', async () => {
      const call = run(container, { a: 1 });
      expect(await call.outcome).toEqual({ type: 'result', result: { a: 1 }, bytes: 7 });
      expect(await call.logs).toEqual([]);
    });

    test('has its logs up to the sentinels', async () => {
      const call = run(container, { do: 'log' });
      await call.outcome;
      expect((await call.logs).map(textOf).sort()).toEqual(['err', 'out']);
    });

    test('has its logs cut at the limit, and the sentinels found behind it', async () => {
      const beganMs = performance.now();
      const call = run(container, { do: 'print', bytes: 300_000 }, { logLimitBytes: 1000 });
      expect(await call.outcome).toMatchObject({ type: 'result' });
      expect(textOf((await call.logs).at(-1) ?? '')).toContain('exceeds the limit of 1000 bytes');
      expect(performance.now() - beganMs).toBeLessThan(1500);
    });

    test('without sentinels its logs are given up after two seconds', async () => {
      const beganMs = performance.now();
      const call = run(container, { do: 'mute' });
      await call.outcome;
      expect(await call.logs).toEqual([]);
      expect(performance.now() - beganMs).toBeGreaterThan(1900);
    });

    test.each([
      [
        { do: 'error', error: 'bad' },
        { type: 'error', error: 'bad' },
      ],
      [{ do: 'busy' }, { type: 'unavailable' }],
      [{ do: 'string' }, { type: 'error', body: '"text"' }],
      [
        { do: 'big', bytes: 2_000_000 },
        { type: 'oversize', bytes: 2_000_000 },
      ],
    ])('reports %j', async (value, outcome) => {
      const call = run(container, value);
      expect(await call.outcome).toMatchObject(outcome);
      await call.logs;
    });

    test('is lost when it exits, and times out when it hangs', async () => {
      const call = run(container, { do: 'hang' }, { timeoutMs: 150 });
      expect(await call.outcome).toEqual({ type: 'timeout' });
      await call.logs;
      expect(await run(container, { do: 'exit' }).outcome).toEqual({ type: 'lost', oomKilled: false });
      await container.exited;
    });

    test('that refuses its code says why', async () => {
      const another = await harness.factory.create(httpSpec);
      expect(await another.init(initRequest('fail'), limits).outcome).toMatchObject({ type: 'error', error: 'no' });
      await another.destroy();
    });
  });

  test('its links go with the sandboxes', async () => {
    const another = await openProcessFactory({ actionNetwork: true });
    // Concurrent tests make links, too; the names of a platform's links contain a hash of its data folder.
    const folder = createHash('sha256').update(realpathSync(another.dataDir)).digest('hex').slice(0, 6);
    const container = await initialized(another.factory);
    // Those of sandboxes that wait, too.
    const made = links().filter((name) => name.startsWith(`gw${folder}`));
    expect(made.length).toBeGreaterThan(0);
    await another.close();
    await container.exited;
    const remain = (): string[] => links().filter((name) => made.includes(name));
    for (let tries = 0; tries < 100 && remain().length > 0; tries++) await new Promise((done) => setTimeout(done, 20));
    expect(remain()).toEqual([]);
  });
});
