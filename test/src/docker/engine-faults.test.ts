// The Docker factory on an engine or image that misbehaves in ways which a real engine cannot be made to.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { bareSpec } from '@gpuwhisk/invoker/containers/container-factory';
import { createDockerFactory } from '@gpuwhisk/invoker/containers/docker/docker-factory';
import type { DockerContainerFactory, DockerFactoryOptions } from '@gpuwhisk/invoker/containers/docker/docker-factory';
import { openRuntimeSocket } from '@gpuwhisk/invoker/containers/docker/docker-streams';
import { until } from '../support/running-platform.js';
import { startScriptedEngine } from './scripted-engine.js';
import type { ScriptedEngine } from './scripted-engine.js';

const withinMs = 30_000;
const spec = bareSpec('local', 256);
const foreign = bareSpec('foreign', 256);
const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});

async function openEngine(labels?: Record<string, string>): Promise<ScriptedEngine> {
  const engine = await startScriptedEngine(labels);
  opened.push(engine);
  return engine;
}

async function openFactory(
  engine: ScriptedEngine,
  options: Partial<DockerFactoryOptions> = {},
): Promise<DockerContainerFactory> {
  const dataDir = mkdtempSync(join(tmpdir(), 'gpuwhisk-data-'));
  const factory = createDockerFactory({
    catalog: { supports: () => true, imageOf: (kind) => `${kind}:1`, isLocal: (image) => image === 'local:1' },
    clock: systemClock,
    socketPath: engine.socketPath,
    dataDir,
    instance: 0,
    network: 'bridge',
    poolMemoryMiB: 1024,
    timeouts: { callMs: 10_000, pauseMs: 100, pullMs: 100 },
    ...options,
  });
  opened.push({
    close: async () => {
      await factory.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  });
  await factory.start();
  return factory;
}

const descriptors = (): number => readdirSync('/proc/self/fd').length;

describe('the Docker factory', () => {
  test('removes any number of leftovers when it starts', async () => {
    const engine = await openEngine();
    for (let i = 0; i < 1500; i++) engine.containers.set(`left${i}`, { running: true });
    await openFactory(engine);
    expect(engine.containers.size).toBe(0);
  });

  test('closes only when the starts under way have ended, and leaves none of their containers', async () => {
    const engine = await openEngine();
    let go: (() => void) | undefined;
    engine.on(/\/start$/, (_, response) => {
      go = () => response.end('{}');
      return undefined;
    });
    const factory = await openFactory(engine);
    const created = factory.create(spec);
    const refused = expect(created).rejects.toThrow();
    await until('its start', () => go !== undefined, withinMs);
    let closed = false;
    const closing = factory.close().then(() => (closed = true));
    for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
    expect(closed).toBe(false);
    go?.();
    await closing;
    await refused;
    expect(engine.containers.size).toBe(0);
  });

  test.each([
    ['which the engine is starting', true],
    ['which the engine has started', false],
  ])('gives up at its end what has not said hello, %s', async (_, isStarting) => {
    const engine = await openEngine({ 'gpuwhisk.protocol': 'framed' });
    let go: (() => void) | undefined;
    engine.on(/\/start$/, (_request, response, id) => {
      go = () => {
        engine.containers.set(id, { running: true });
        response.end('{}');
      };
      return undefined;
    });
    const factory = await openFactory(engine);
    const refused = expect(factory.create(spec)).rejects.toThrow('the factory was closed');
    await until('its start', () => go !== undefined, withinMs);
    const looks = (): number => engine.calls.filter((call) => call.endsWith('/json')).length;
    const before = looks();
    if (!isStarting) {
      go?.();
      await until('its hello is waited for', () => looks() > before + 1, withinMs);
    }
    const closing = factory.close();
    if (isStarting) go?.();
    await closing;
    await refused;
    expect(engine.containers.size).toBe(0);
  });

  test('does not believe what a foreign image says of its protocol', async () => {
    const engine = await openEngine({ 'gpuwhisk.protocol': 'framed', 'gpuwhisk.pair': '["/bin/sh"]' });
    const bodies: string[] = [];
    engine.on(/^POST \/containers\/create$/, (request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        bodies.push(body);
        engine.containers.set('made', { running: false });
        response.end('{"Id":"made"}');
      });
      return undefined;
    });
    const factory = await openFactory(engine);
    const container = await factory.prewarm(foreign);
    expect(bodies).toHaveLength(1);
    expect(bodies[0]).not.toMatch(/GPUWHISK_SOCKET|\/bin\/sh/);
    await container.destroy();
  });

  test('sees a foreign container end while the engine is asked about it', async () => {
    const engine = await openEngine();
    let asked = false;
    engine.on(/^GET \/containers\/\w+\/json$/, (_, response, id) => {
      const state = (running: boolean): string =>
        JSON.stringify({
          State: { Running: running, OOMKilled: false, ExitCode: 0, Pid: 0 },
          NetworkSettings: { Networks: { a: { IPAddress: '127.0.0.1' } } },
        });
      if (asked) {
        response.end(state(false));
        return undefined;
      }
      asked = true;
      // The engine found the container running, the container ends, and the answer comes after that.
      const output = engine.containers.get(id)?.output;
      output?.once('close', () => response.end(state(true)));
      output?.end();
      return undefined;
    });
    const factory = await openFactory(engine);
    const container = await factory.create(foreign);
    await container.exited;
    await container.destroy();
    expect(engine.containers.size).toBe(0);
  });

  test('ends a container whose pause the engine did not answer: it may freeze yet', async () => {
    const engine = await openEngine();
    engine.on(/\/pause$/, () => undefined);
    const factory = await openFactory(engine);
    const container = await factory.create(foreign);
    await expect(container.pause()).rejects.toThrow('did not answer');
    await container.exited;
    await container.destroy();
    expect(engine.containers.size).toBe(0);
  });

  test('finds an engine that hangs unhealthy, waits for it no more, and removes later what it could not', async () => {
    const engine = await openEngine();
    const factory = await openFactory(engine, { timeouts: { callMs: 200, pauseMs: 100, pullMs: 100 } });
    const container = await factory.create(foreign);
    let hangs = true;
    engine.on(/./, (request, response) => {
      if (hangs) return undefined;
      if (request.method === 'DELETE') engine.containers.clear();
      response.end('{}');
      return undefined;
    });
    await expect(factory.create(spec)).rejects.toThrow('did not answer');
    expect(factory.health).toBe('unhealthy');
    const calls = engine.calls.length;
    await expect(factory.create(spec)).rejects.toThrow('does not answer');
    expect(engine.calls).toHaveLength(calls);
    // Destroying the container does not wait long for the engine.
    await container.destroy();
    expect(engine.containers.size).toBe(1);
    hangs = false;
    await until('the engine healthy', () => factory.health === 'healthy', withinMs);
    await until('its removal', () => engine.containers.size === 0, withinMs);
  });

  test('does not find an engine that answers again unhealthy for a call from before', async () => {
    const engine = await openEngine();
    const factory = await openFactory(engine, { timeouts: { callMs: 5000, pauseMs: 100, pullMs: 100 } });
    const container = await factory.create(foreign);
    engine.on(/create|pause/, () => undefined);
    const early = expect(factory.create(spec)).rejects.toThrow('did not answer');
    await expect(container.pause()).rejects.toThrow('did not answer');
    expect(factory.health).toBe('unhealthy');
    await until('the engine healthy', () => factory.health === 'healthy', withinMs);
    await early;
    expect(factory.health).toBe('healthy');
    await container.destroy();
  });

  test('reports at once an answer that breaks off, and finds the engine unhealthy', async () => {
    const engine = await openEngine();
    const factory = await openFactory(engine);
    engine.on(/^POST \/containers\/create$/, (_, response) => {
      response.writeHead(201, { 'content-length': 1000 });
      response.write('{"Id":');
      setTimeout(() => response.destroy(), 20);
      return undefined;
    });
    const askedMs = performance.now();
    await expect(factory.create(spec)).rejects.toThrow('cannot be reached');
    // The time limit of the call is 10 s.
    expect(performance.now() - askedMs).toBeLessThan(9000);
    expect(factory.health).toBe('unhealthy');
  });

  test('keeps a container that the engine refused to pause', async () => {
    const engine = await openEngine();
    engine.on(/\/pause$/, (_, response) => {
      response.statusCode = 500;
      return { message: 'no freezer' };
    });
    const factory = await openFactory(engine);
    const container = await factory.create(foreign);
    await expect(container.pause()).rejects.toThrow('no freezer');
    await container.resume();
    expect(engine.containers.size).toBe(1);
  });

  test('pauses and resumes a container again whose last change the engine has not noted yet', async () => {
    const engine = await openEngine();
    let late = 2;
    // Docker's words: for a while it has the state that containerd has reported last.
    engine.on(/\/(un)?pause$/, (_, response, id) => {
      if (late-- <= 0) return {};
      response.statusCode = 409;
      return { message: `Container ${id} is ${engine.calls.at(-1)?.endsWith('/pause') ? 'already' : 'not'} paused` };
    });
    const factory = await openFactory(engine);
    const container = await factory.create(foreign);
    await container.pause();
    late = 2;
    await container.resume();
    late = Infinity;
    await expect(container.pause()).rejects.toThrow('is already paused');
    const changes = engine.calls.map((call) => /\/(pause|unpause)$/.exec(call)?.[1]).filter(Boolean);
    expect(changes.slice(0, 6)).toEqual(['pause', 'pause', 'pause', 'unpause', 'unpause', 'unpause']);
    expect(changes.length).toBe(10);
  });

  test('takes a slow registry for a refusal, and the engine for healthy', async () => {
    const engine = await openEngine();
    engine.on(/^POST \/images\/create$/, (_, response) => {
      response.write('{"status":"Pulling"}\n');
      return undefined;
    });
    engine.on(/^GET \/images\//, (_, response) => {
      response.statusCode = 404;
      return { message: 'No such image' };
    });
    const factory = await openFactory(engine);
    await expect(factory.create(foreign)).rejects.toMatchObject({
      message: expect.stringContaining('did not send it within 100 ms'),
      told: "Failed to pull container image 'foreign:1'.",
    });
    expect(factory.health).toBe('healthy');
  });
});

describe('the socket of a runtime', () => {
  test('keeps no descriptor of one that connects in part and goes, nor of a fourth stream', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-socket-'));
    opened.push({ close: async () => rmSync(folder, { recursive: true, force: true }) });
    const connected = async (path: string, count: number) => {
      const sockets = Array.from({ length: count }, () => createConnection(path));
      for (const socket of sockets) {
        socket.on('error', () => undefined);
        await new Promise((done) => socket.once('connect', done));
      }
      return sockets;
    };
    const before = descriptors();
    for (let i = 0; i < 20; i++) {
      const path = join(folder, String(i));
      const socket = await openRuntimeSocket(path);
      const clients = await connected(path, i % 2 === 0 ? 2 : 4);
      if (i % 2 === 1) for (const stream of Object.values(await socket.streams)) stream.destroy();
      await socket.close();
      for (const client of clients) client.destroy();
    }
    await until('as many descriptors as before', () => descriptors() <= before, withinMs);
  });
});
