// Unlimited frames and output: data that a function writes into the runtime's socket ends its container only, and its
// printed output waits.
import { afterEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { Duplex, PassThrough } from 'node:stream';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { systemClock } from '@gpuwhisk/common/system/clock';
import type { RunRequest } from '@gpuwhisk/invoker/containers/container-factory';
import { encodeFrame } from '@gpuwhisk/invoker/containers/protocol/frames';
import { FramedConnection } from '@gpuwhisk/invoker/containers/protocol/framed-connection';
import { LogCollector, truncationNotice } from '@gpuwhisk/invoker/containers/protocol/log-collector';

const types = { hello: 1, result: 4, error: 5, log: 6, bye: 8, size: 15, launcher: 240 };
const limits = { timeoutMs: 20, logLimitBytes: 0, maxResultBytes: 1000, truncationBytes: 10 };
const request = { name: 'a', main: 'main', binary: false, env: {} };

function connected(): {
  connection: FramedConnection;
  broken: string[];
  send(type: number, id?: number, text?: string): Promise<void>;
} {
  const socket = new Duplex({ read: () => undefined, write: (_, __, done) => done() });
  const broken: string[] = [];
  const logs = new LogCollector(systemClock, { sentinels: false });
  const connection = new FramedConnection(socket, logs, systemClock, {
    hello: () => undefined,
    launcher: () => undefined,
    broken: (reason) => broken.push(reason),
  });
  const send = async (type: number, id = 0, text = '{}'): Promise<void> => {
    socket.push(encodeFrame(type, id, text));
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { connection, broken, send };
}

const hello = '{"version":1}';

test.each([
  ['hello', types.hello, hello],
  ['bye', types.bye, '{}'],
  ['the report that the sandbox is ready', types.launcher, 'ready'],
])('a second %s breaks the connection, once', async (_, type, text) => {
  const { broken, send } = connected();
  if (type !== types.hello) await send(types.hello, 0, hello);
  await send(type, 0, text);
  expect(broken).toEqual([]);
  for (let i = 0; i < 1000; i++) await send(type, 0, text);
  expect(broken).toHaveLength(1);
});

test('the answer to a run that timed out is taken once', async () => {
  const { connection, broken, send } = connected();
  await send(types.hello, 0, hello);
  expect(await connection.init(request, limits).outcome).toEqual({ type: 'timeout' });
  await send(types.result, 1);
  await send(types.log, 1);
  expect(broken).toEqual([]);
  await send(types.result, 1);
  expect(broken).toEqual(['it answered 1, which was not asked']);
});

test.each([
  ['a result', types.result],
  ['an error', types.error],
  ['the end of logs', types.log],
])('%s that was not asked for breaks the connection', async (_, type) => {
  const { broken, send } = connected();
  await send(types.hello, 0, hello);
  await send(type, 7);
  expect(broken).toHaveLength(1);
});

describe('sizes of inputs', () => {
  const run = { value: {}, activation_id: 'a' } as unknown as RunRequest;
  const patient = { ...limits, timeoutMs: 10_000 };

  test('are taken for the only run under way, the last one', async () => {
    const { connection, broken, send } = connected();
    await send(types.hello, 0, hello);
    await send(types.size, 0, '{"size":5}');
    const { outcome } = connection.run(run, patient);
    for (const size of [7, 64.5]) await send(types.size, 0, `{"size":${size}}`);
    await send(types.result, 1, '{}');
    expect(await outcome).toEqual({ type: 'result', result: {}, bytes: 2, inputSize: 64.5 });
    await send(types.log, 1);
    const [second, third] = [connection.run(run, patient), connection.run(run, patient)];
    await send(types.size, 0, '{"size":9}');
    for (const id of [2, 3]) await send(types.result, id, '{}');
    for (const call of [second, third]) expect(await call.outcome).not.toHaveProperty('inputSize');
    expect(broken).toEqual([]);
  });

  test.each(['{"size":-1}', '{"size":"4"}', '{}', 'null', '{"size"'])('%s breaks the connection', async (text) => {
    const { broken, send } = connected();
    await send(types.hello, 0, hello);
    await send(types.size, 0, text);
    expect(broken).toEqual(['it reported a size of an input that is no number of at least 0']);
  });

  test('without end break the connection', async () => {
    const { connection, broken, send } = connected();
    await send(types.hello, 0, hello);
    connection.run(run, patient);
    for (let count = 0; count < 1000; count++) await send(types.size, 0, '{"size":1}');
    expect(broken).toEqual([]);
    await send(types.size, 0, '{"size":1}');
    expect(broken).toEqual(['it reported more than 1000 sizes of an input']);
  });
});

let opened: (Server | Socket)[] = [];
afterEach(() => {
  for (const one of opened) {
    if ('destroy' in one) one.destroy();
    else one.close();
  }
  opened = [];
});

/** Two connected sockets: `[ours, theirs]`. */
async function socketPair(server: Server): Promise<[Socket, Socket]> {
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const theirs = connect(server.address() as string);
  const [ours] = await accepted;
  opened.push(ours, theirs);
  return [ours, theirs];
}

test('what a run has printed is read before its logs are cut, also where its answer is seen first', async () => {
  const server = createServer().listen(`\0gpuwhisk-floods-${process.pid}`);
  opened.push(server);
  await once(server, 'listening');
  const [channel, peer] = await socketPair(server);
  const [out, printer] = await socketPair(server);
  const logs = new LogCollector(systemClock, { sentinels: false });
  logs.attach(out, 'stdout');
  const connection = new FramedConnection(channel, logs, systemClock, {
    hello: () => undefined,
    launcher: () => undefined,
    broken: () => undefined,
  });
  peer.write(encodeFrame(types.hello, 0, hello));
  await handled();
  const init = connection.init(request, { ...limits, timeoutMs: 10_000 });
  peer.write(Buffer.concat([encodeFrame(types.result, 1, '{}'), encodeFrame(types.log, 1, '{}')]));
  expect(await init.outcome).toMatchObject({ type: 'ok' });
  const { logs: lines } = connection.run({ value: {} } as RunRequest, {
    ...{ ...limits, timeoutMs: 10_000 },
    logLimitBytes: 1000,
  });
  // More than is read at once; the answer comes first.
  peer.write(Buffer.concat([encodeFrame(types.result, 2, '{}'), encodeFrame(types.log, 2, '{}')]));
  printer.write(Buffer.alloc(100_000, 'xxxxxxxxx\n'));
  expect((await lines).at(-1)).toContain(truncationNotice(1000));
  for (let turn = 0; turn < 5; turn += 1) await handled();
  expect(logs.cut()).toEqual([]);
});

const handled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a stream that goes on long after the limit is held back, and what it wrote before a cut is read', async () => {
  const clock: Clock = { ...systemClock, now: () => 0 };
  const prefix = '1970-01-01T00:00:00.000000000Z';
  const logs = new LogCollector(clock, { sentinels: false });
  const [out, err] = [new PassThrough(), new PassThrough()];
  logs.attach(out, 'stdout');
  logs.attach(err, 'stderr');
  logs.limit(1000);
  const MiB = Buffer.alloc(1024 * 1024, 'x\n');
  out.write(MiB);
  await handled();
  expect(out.isPaused()).toBe(false);
  out.write(MiB);
  await handled();
  expect([out.isPaused(), err.isPaused()]).toEqual([true, false]);
  const beganMs = performance.now();
  for (let i = 0; i < 3; i++) out.write(MiB);
  while (out.readableLength + out.writableLength > 0 || out.isPaused()) await handled();
  // 16 MiB a second.
  expect(performance.now() - beganMs).toBeGreaterThan(150);
  out.write(MiB);
  await handled();
  out.write('late\n');
  expect([out.isPaused(), logs.catchUp()]).toEqual([true, true]);
  await handled();
  expect(out.readableLength).toBe(0);
  expect(logs.cut().at(-1)).toContain(truncationNotice(1000));
  out.write('next\n');
  await handled();
  expect(logs.cut()).toEqual([`${prefix} stdout: next`]);
  expect(logs.catchUp()).toBe(false);
});

test.each<[string, unknown, string[] | undefined]>([
  ['nothing of what is no list', { numpy: 1 }, undefined],
  [
    'nothing of entries in another form',
    ['a', null, ['a'], [1, 2], ['a', '1'], ['a', -1], [['a'], 1], { name: 'a', us: 1 }],
    undefined,
  ],
  [
    'nothing of names that are no modules',
    ['../a', '/etc/passwd', 'a b', 'a..b', '.a', '-c', 'a\n', '', 'x'.repeat(201), 'é'].map((name) => [name, 1]),
    undefined,
  ],
  [
    'modules and times',
    [
      ['numpy', 1000],
      ['scipy.stats', 0],
    ],
    ['numpy', 'scipy.stats'],
  ],
  [
    '64 modules',
    Array.from({ length: 1000 }, (_, at) => [`m${at}`, 1]),
    Array.from({ length: 64 }, (_, at) => `m${at}`),
  ],
  [
    'nothing of more than 16 KiB',
    [
      ['numpy', 1],
      ['x'.repeat(17_000), 1],
    ],
    undefined,
  ],
])('of a report of imports counts: %s', async (_, imports, names) => {
  const { connection, send } = connected();
  await send(types.hello, 0, hello);
  const call = connection.init(request, { ...limits, timeoutMs: 5000, maxResultBytes: 1_000_000 });
  await send(types.result, 1, JSON.stringify({ ok: true, imports }));
  await send(types.log, 1);
  const outcome = await call.outcome;
  expect(outcome.type).toBe('ok');
  const read = outcome.type === 'ok' ? outcome.imports : undefined;
  expect(read?.map(({ name }) => name)).toEqual(names);
  for (const { ms } of read ?? []) expect(ms).toBeLessThan(5000);
});
