import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { Share } from '@gpuwhisk/common/gpu';
import { until } from '@gpuwhisk/common/testing/until';
import { TokenServer } from '@gpuwhisk/invoker/gpu-agent/enforcers/tokens/token-server';
import { canCompile, withCompiler } from './compiler.js';
import { devices, fixture, TokenPrograms, type TokenProgram } from './token-programs.js';

const share: Share = {
  shareClass: 100,
  smRequest: 0.1,
  smLimit: 0.1,
  memoryMiB: 100,
  tokens: { maxTokens: 1000 },
};

let programs: TokenPrograms;
beforeAll(() => {
  if (canCompile) programs = new TokenPrograms();
});
afterAll(async () => {
  if (canCompile) await programs.close();
});

let folder: string;
let said: string[];
const servers: TokenServer[] = [];
async function startServer(places = 4, in_ = folder): Promise<TokenServer> {
  const server = await TokenServer.start({ folder: in_, places, say: (line) => said.push(line) });
  servers.push(server);
  return server;
}
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-token-faults-'));
  said = [];
});
afterEach(async () => {
  await programs.endAll();
  await Promise.all(servers.splice(0).map((server) => server.close()));
  rmSync(folder, { recursive: true, force: true });
});

const start = (socketPath: string, ticket: string): TokenProgram =>
  programs.start('procaddress', { GPUWHISK_TOKENS_SOCKET: socketPath, GPUWHISK_TOKENS_TICKET: ticket });

async function client(server: TokenServer): Promise<TokenProgram> {
  const program = start(server.socketPath, server.ticketFor(devices[0], share));
  expect(await program.ask('context 0')).toEqual([0]);
  return program;
}

/** Whether the program launches more than a tenth of 1000 blocks in 5 ms would allow. */
const isOpen = async (program: TokenProgram): Promise<boolean> => (await program.ask('loop 100000 50'))[0]! > 1000;

withCompiler('a program whose server', () => {
  test('is missing runs on and says so', async () => {
    const program = start(join(folder, 'nothing.sock'), 'ticket');
    expect(await program.ask('context 0')).toEqual([0]);
    expect(await isOpen(program)).toBe(true);
    expect(program.errors).toContain('the server cannot be reached');
  });

  test('dies while it waits goes on after a second, is told of nothing else, and finds its successor', async () => {
    const first = await startServer();
    const program = await client(first);
    await program.ask('launch 1000000'); // the program is in debt for 50 s
    const waiting = program.ask('timed 1');
    await until(() => first.figuresOf(first.clientOf(program.pid)!).waits > 0);
    await first.close();
    const [result, waitedUs] = await waiting;
    expect(result).toBe(0);
    expect(waitedUs).toBeGreaterThan(500_000);
    expect(program.errors).toContain('silent for a second');
    expect(await isOpen(program)).toBe(true);

    const second = await startServer();
    await until(async () => {
      await program.ask('launch 1');
      return second.clientOf(program.pid) !== undefined;
    });
    expect(second.clientOf(program.pid)?.ticket.share).toEqual(share);
    await program.ask('launch 100');
    expect(await isOpen(program)).toBe(false);
    expect(program.errors).toContain('the server is back');
  });

  test('dies keeps its memory cap, and its successor knows what it holds', async () => {
    const first = await startServer();
    const program = await client(first);
    await program.ask('alloc 60000000');
    await first.close();
    expect((await program.ask('alloc 60000000'))[0]).toBe(2);
    await program.ask('launch 1000000');
    const second = await startServer();
    await until(async () => {
      await program.ask('launch 1');
      return second.clientOf(program.pid) !== undefined;
    });
    expect(second.figuresOf(second.clientOf(program.pid)!).memoryUsedBytes).toBe(60_000_000);
    expect((await program.ask('alloc 60000000'))[0]).toBe(2);
  });

  test('is another kind of socket runs on', async () => {
    const path = join(folder, 'stream.sock');
    const stream = createServer().listen(path);
    await once(stream, 'listening');
    try {
      const program = start(path, 'ticket');
      expect(await program.ask('context 0')).toEqual([0]);
      expect(await isOpen(program)).toBe(true);
    } finally {
      stream.close();
    }
  });
});

withCompiler('a program whose server is hostile and answers', () => {
  let hostile: ChildProcess | undefined;
  afterEach(async () => {
    if (hostile === undefined) return;
    hostile.kill('SIGKILL');
    await once(hostile, 'close');
  });

  /** A program that has sent a request to a server which answers in this way. */
  async function startWith(way: string): Promise<TokenProgram> {
    const binary = join(programs.folder, 'hostile');
    execFileSync('cc', ['-Wall', '-Wextra', fixture('hostile_server.c'), '-o', binary], { timeout: 60_000 });
    const path = join(folder, 'hostile.sock');
    hostile = spawn(binary, [path, way], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(hostile.stdout!, 'data');
    const program = start(path, 'ticket');
    expect(await program.ask('context 0')).toEqual([0]);
    return program;
  }

  test('with a page whose tick is due and never comes waits asleep, and goes on after a second', async () => {
    const program = await startWith('silent');
    const [, processorPart] = await program.ask('waits 1 1');
    expect(processorPart).toBeLessThan(0.5);
    expect(program.errors).toContain('silent for a second');
    expect(await isOpen(program)).toBe(true);
  });

  test.each(['nothing', 'noise', 'pageless', 'small', 'unsealed'])('%s runs on', async (way) => {
    const program = await startWith(way);
    expect(await isOpen(program)).toBe(true);
    expect(program.errors).toMatch(/makes no sense|does not answer/);
  });
});

withCompiler('a server', () => {
  test('serves only those with a ticket of its own', async () => {
    const server = await startServer();
    const elsewhere = join(folder, 'elsewhere');
    mkdirSync(elsewhere);
    const other = await startServer(1, elsewhere);
    const ours = server.ticketFor(devices[0], share);
    for (const ticket of [other.ticketFor(devices[0], share), 'x', 'x.y', `${ours}x`, `x${ours}`]) {
      const program = start(server.socketPath, ticket);
      expect(await program.ask('context 0')).toEqual([0]);
      expect(await program.ask('launch 1')).toEqual([0]);
      expect(program.errors).toContain('does not know the ticket');
    }
    expect(server.all()).toEqual([]);
    expect(said).toHaveLength(5);
  });

  test('turns away whom it has no place for, and takes him when there is one', async () => {
    const server = await startServer(2);
    const [first] = [await client(server), await client(server)];
    const third = await client(server);
    expect(server.clientOf(third.pid)).toBeUndefined();
    expect(third.errors).toContain('no place left');
    expect(said.join()).toContain('all places are taken');
    await first!.kill();
    await until(async () => {
      await third.ask('launch 1');
      return server.clientOf(third.pid) !== undefined;
    });
  });

  test('keeps ticking, and repeats nothing for long', async () => {
    const server = await startServer();
    await client(server);
    const before = server.figures();
    await until(() => server.figures().ticks > before.ticks + 100);
    const after = server.figures();
    expect(after.repeated - before.repeated).toBeLessThan(after.ticks - before.ticks);
    expect(server.problem()).toBeUndefined();
  });

  test('leaves no socket behind, and starts over an old one', async () => {
    const first = await startServer();
    await first.close();
    await first.close();
    const second = await startServer();
    await client(second);
    expect(second.all()).toHaveLength(1);
  });
});

const foreign: [string, string, string][] = [
  ['throws', "throw new Error('no licence');", 'failed, and dilu issues tokens instead: Error: no licence'],
  ['never ends a step', 'for (;;);', 'did not end a step within a second, and dilu issues tokens instead'],
];

withCompiler('a token policy of a module that', () => {
  test.each(foreign)('%s is replaced, and clients get their tokens', async (_, step, reason) => {
    const text = `export default { version: 1, tokens: { own: { make: () => ({ step() { ${step} } }) } } };`;
    const modules = [{ path: '/opt/own.mjs', sha256: step, text }];
    const say = (line: string): void => void said.push(line);
    const server = await TokenServer.start({ folder, say, policy: { name: 'own', modules } });
    servers.push(server);
    await until(() => {
      expect(server.problem()).toBeUndefined();
      return said.some((line) => line.startsWith(`Token policy 'own' ${reason}`));
    });
    await client(server);
    // The deciding thread writes it.
    await until(() => server.all().some((one) => server.figuresOf(one).soloRate === 1000));
    expect(said).toHaveLength(1);
  });
});
