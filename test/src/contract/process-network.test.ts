import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
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
  return harness.notes[0];
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

  const connect = async (container: Container, host: string, port: number): Promise<unknown> => {
    const script = `return new Promise((resolve) => {
      const socket = require('node:net').connect(${port}, ${JSON.stringify(host)});
      socket.setTimeout(700, () => { socket.destroy(); resolve('silent'); });
      socket.on('connect', () => resolve('connected'));
      socket.on('error', (error) => resolve(error.code)); });`;
    const outcome = await run(container, { do: 'script', script }).outcome;
    return outcome.type === 'result' && !Array.isArray(outcome.result) ? outcome.result.value : outcome;
  };

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
    expect(await connect(hostile, '127.0.0.1', port)).toBe('ECONNREFUSED');
    for (const host of own) {
      const answer = await connect(hostile, host, port);
      // Links of other platforms' sandboxes come and go meanwhile.
      if (hostAddresses().includes(host)) expect(answer).toBe('silent');
    }
    expect(await connect(hostile, neighbour, 9000)).toBe('silent');
    expect(await connect(hostile, '169.254.169.254', 80)).toBe('silent');
    await Promise.all([hostile.destroy(), victim.destroy()]);
  });

  describe('a runtime that speaks HTTP', () => {
    let container: Container;
    beforeAll(async () => {
      container = await harness.factory.create(httpSpec);
      const call = container.init(initRequest(), limits);
      expect(await call.outcome).toEqual({ type: 'ok' });
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
    // Tests beside this one make links, too; a platform's are named after its data folder.
    const folder = createHash('sha256').update(realpathSync(another.dataDir)).digest('hex').slice(0, 6);
    const before = new Set(links());
    const container = await initialized(another.factory);
    const made = links().filter((name) => name.startsWith(`gw${folder}`) && !before.has(name));
    expect(made).toHaveLength(1);
    await another.close();
    await container.exited;
    const remain = (): string[] => links().filter((name) => made.includes(name));
    for (let tries = 0; tries < 100 && remain().length > 0; tries++) await new Promise((done) => setTimeout(done, 20));
    expect(remain()).toEqual([]);
  });
});
