import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { Share, TokenTerms } from '@gpuwhisk/common/gpu';
import { until } from '@gpuwhisk/common/testing/until';
import { TokenServer } from '@gpuwhisk/invoker/gpu-agent/enforcers/tokens/token-server';
import { canCompile, withCompiler } from './compiler.js';
import { devices, TokenPrograms, type TokenProgram, type Way } from './token-programs.js';

const mebibyte = 2 ** 20;
const outOfMemory = 2;
const terminated = 810;

let programs: TokenPrograms;
beforeAll(() => {
  if (canCompile) programs = new TokenPrograms();
});
afterAll(async () => {
  if (canCompile) await programs.close();
});

let folder: string;
let server: TokenServer;
let said: string[];
const startServer = (places?: number): Promise<TokenServer> =>
  TokenServer.start({ folder, say: (line) => said.push(line), contextMiB: () => 10, ...(places && { places }) });
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-token-server-'));
  said = [];
  server = await startServer();
});
afterEach(async () => {
  await programs.endAll();
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

const shareOf = (fraction: number, tokens: TokenTerms = { maxTokens: 1000 }): Share => ({
  shareClass: 100,
  smRequest: fraction,
  smLimit: fraction,
  memoryMiB: 100,
  tokens,
});

const environment = (ticket: string, socketPath = server.socketPath): Record<string, string> => ({
  GPUWHISK_TOKENS_SOCKET: socketPath,
  GPUWHISK_TOKENS_TICKET: ticket,
});

/** A program with a share of device 0 and a context there. */
async function client(share: Share, way: Way = 'procaddress'): Promise<TokenProgram> {
  const program = programs.start(way, environment(server.ticketFor(devices[0], share)));
  expect(await program.ask('context 0')).toEqual([0]);
  return program;
}

const clientOf = (program: TokenProgram): NonNullable<ReturnType<TokenServer['clientOf']>> => {
  const found = server.clientOf(program.pid);
  if (found === undefined) throw new Error('The program is no client.');
  return found;
};
const figuresOf = (program: TokenProgram): ReturnType<TokenServer['figuresOf']> => server.figuresOf(clientOf(program));

/** Offsets of clients' fields in native/tokens/page.h. */
const fields = {
  generation: 16,
  taken: 64,
  waits: 144,
  opened: 148,
  cycles: 168,
  cycleNs: 176,
  batch: 192,
  memory: 256,
};

/** Writes into a program's page, as a hostile function can. */
function write(program: TokenProgram, field: keyof typeof fields, value: bigint): void {
  const maps = readFileSync(`/proc/${program.pid}/maps`, 'utf8');
  const page = /^([0-9a-f]+)-.*memfd:gpuwhisk-tokens/m.exec(maps)?.[1];
  if (page === undefined) throw new Error('The program has no page.');
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(value);
  const memory = openSync(`/proc/${program.pid}/mem`, 'r+');
  try {
    writeSync(memory, bytes, 0, field === 'batch' ? 4 : 8, Number.parseInt(page, 16) + fields[field]);
  } finally {
    closeSync(memory);
  }
}

withCompiler('a program that writes nonsense into its page', () => {
  const most = 2n ** 63n - 1n;

  test('has figures that a client can have, and its server no problem', async () => {
    const program = await client(shareOf(0.5));
    for (const value of [most, -1n, -most]) {
      for (const field of ['taken', 'waits', 'opened', 'cycles', 'cycleNs', 'memory', 'generation'] as const)
        write(program, field, value);
      const { ticks } = server.figures();
      await until(() => server.figures().ticks > ticks + 3);
      const figures = figuresOf(program);
      expect([figures.taken >= 0, figures.taken <= 2 ** 62, figures.memoryUsedBytes >= 0]).toEqual([true, true, true]);
      expect(figures.memoryUsedBytes).toBeLessThanOrEqual(32 * 2 ** 42);
      expect([figures.cycleMs >= 0, figures.cycleMs < 60_000, figures.cycles < 1000]).toEqual([true, true, true]);
      expect(figures.budget).toBe(500);
      expect(server.problem()).toBeUndefined();
    }
  });

  test('has a rate learned of it that a GPU can have', async () => {
    const program = await client(shareOf(1, {}));
    for (let blocks = 2n ** 40n; figuresOf(program).soloRate === 0; blocks += 2n ** 40n) {
      write(program, 'taken', blocks);
      const { ticks } = server.figures();
      await until(() => server.figures().ticks > ticks);
    }
    expect(figuresOf(program).soloRate).toBeLessThan(10_500_000);
    expect(figuresOf(program).soloRate).toBeGreaterThan(1_000_000);
  });

  test('has no cycle that is longer than since the one before', async () => {
    const program = await client(shareOf(0.5));
    await program.ask('cycle 1 20');
    await until(() => figuresOf(program).cycles === 1);
    write(program, 'cycleNs', 3_600_000_000_000n);
    write(program, 'batch', 0xffff_ffffn);
    write(program, 'cycles', 2n);
    await until(() => figuresOf(program).cycles === 2);
    expect(figuresOf(program).cycleMs).toBeLessThan(30_000);
    expect(figuresOf(program).cycleBatch).toBeLessThanOrEqual(1024);
  });
});

withCompiler('launches are counted', () => {
  const ways: Way[] = ['linked', 'dlsym', 'procaddress', 'procaddress-ptsz', 'procaddress-11'];
  test.each(ways)('of a program that finds the driver by %s', async (way) => {
    const program = await client(shareOf(1), way);
    await program.ask('launch 5 3 2');
    if (way !== 'procaddress-11') await program.ask('launch-ex 7');
    await program.ask('cooperative 11');
    expect(figuresOf(program).taken).toBe(30 + (way !== 'procaddress-11' ? 7 : 0) + 11);
  });

  test('by the driver too, once each and in the form that was asked for', async () => {
    const program = await client(shareOf(1), 'procaddress-ptsz');
    await program.ask('launch 5');
    await program.ask('launch-ex 5');
    expect(await program.ask('calls private_launch_ptsz')).toEqual([1]);
    expect(await program.ask('calls cuLaunchKernelEx_ptsz')).toEqual([1]);
    expect(await program.ask('calls private_launch')).toEqual([0]);
  });

  test('with grids of more blocks than 32 bits hold', async () => {
    const program = await client({ ...shareOf(1), tokens: {} });
    await program.ask('launch 2147483647 4 2');
    expect(figuresOf(program).taken).toBe(2147483647 * 8);
  });

  test('not while a graph records them, but whenever the graph is launched', async () => {
    const program = await client(shareOf(1));
    await program.ask('capture 20 300');
    expect(figuresOf(program).taken).toBe(0);
    await program.ask('graph');
    await program.ask('graph');
    expect(figuresOf(program).taken).toBe(640);
  });

  test('and RTLD_NEXT means what it meant', async () => {
    const program = programs.start('dlsym');
    expect(await program.ask('next')).toEqual([1]);
  });
});

withCompiler('a share', () => {
  test('is what it can launch in the long run', async () => {
    const program = await client(shareOf(0.5));
    const [launched] = await program.ask('loop 10 1000');
    // 500 blocks each 5 ms; missed ticks of a busy machine only lower the number.
    expect(launched).toBeGreaterThan(2000);
    expect(launched).toBeLessThanOrEqual(10_000 + 200);
    expect(figuresOf(program).waits).toBeGreaterThan(0);
  });

  test('is owed by a kernel larger than the budget', async () => {
    const program = await client(shareOf(0.1));
    await program.ask('launch 20000');
    const [result, waitedUs] = await program.ask('timed 1');
    expect(result).toBe(0);
    // 200 periods of 100 blocks, less the periods that passed before the program asked.
    expect(waitedUs).toBeGreaterThan(300_000);
  });

  test('serves two threads in their turn, whatever the sizes of their kernels', async () => {
    const program = await client(shareOf(0.5));
    const [small, large] = await program.ask('threads 1 3000 1500');
    expect(large).toBeGreaterThan(10);
    // On a busy machine one thread may miss periods; in all other periods the threads take turns.
    expect(small! - large!).toBeLessThan(3 * 500);
    expect(large! - small!).toBeLessThan(20);
  });

  test('holds nobody back who has all of a device', async () => {
    const program = await client(shareOf(1));
    await program.ask('loop 1000000 200');
    expect(figuresOf(program)).toMatchObject({ waits: 0, budget: Infinity });
  });

  test('moves while it runs', async () => {
    const program = await client(shareOf(0.1));
    server.adjust(clientOf(program), shareOf(0.9));
    await until(() => figuresOf(program).budget === 900);
  });

  test('is learned anew for another function in the same process', async () => {
    const program = await client(shareOf(1, {}));
    for (let tries = 0; tries < 50 && figuresOf(program).soloRate === 0; tries += 1) await program.ask('loop 10 300');
    expect(figuresOf(program).soloRate).toBeGreaterThan(0);
    server.adjust(clientOf(program), shareOf(1, {}));
    await program.ask('loop 10 50');
    expect(figuresOf(program).soloRate).toBeGreaterThan(0);
    server.adjust(clientOf(program), shareOf(1, {}), true);
    await until(() => figuresOf(program).soloRate === 0);
  });

  test('shrinks beside one whose launch cycles get longer, and is regained', async () => {
    const neighbour = await client(shareOf(0.5));
    const owner = await client(shareOf(0.5, { maxTokens: 1000, violation: 0.2 }));
    const work = neighbour.ask('loop 10 3000');
    await owner.ask('cycle 1 20');
    await owner.ask('launch 1');
    const long = owner.ask('cycle 1 2000');
    await until(() => figuresOf(neighbour).budget < 500);
    await long;
    await until(() => figuresOf(neighbour).budget === 500);
    await work;
  });

  test('is one for all processes of a ticket', async () => {
    const ticket = server.ticketFor(devices[0], shareOf(0.2));
    const pair = [0, 1].map(() => programs.start('procaddress', environment(ticket)));
    for (const program of pair) await program.ask('context 0');
    expect(server.all()).toHaveLength(1);
    const [first, second] = await Promise.all(pair.map((program) => program.ask('loop 10 1000')));
    // Each alone would launch 4000; the two may begin at different moments.
    expect(first![0]! + second![0]!).toBeLessThanOrEqual(6000);
  });

  test('is of the device that the kernel runs on', async () => {
    const tickets = devices.map((device) => server.ticketFor(device, shareOf(1)));
    const program = programs.start('procaddress', environment(tickets.join()));
    await program.ask('context 0');
    await program.ask('launch 3');
    await program.ask('context 1');
    await program.ask('launch 40');
    const taken = server.all().map((client) => [client.ticket.device, server.figuresOf(client).taken]);
    expect(Object.fromEntries(taken)).toEqual({ [devices[0]]: 3, [devices[1]]: 40 });
  });

  // On a machine with one processor programs never spin.
  (availableParallelism() > 1 ? test : test.skip)('is waited for awake just before the tick, if few wait', async () => {
    const program = await client(shareOf(0.5));
    await program.ask('loop 10 300');
    expect(figuresOf(program).spins).toBeGreaterThan(0);
  });

  test('is waited for asleep if it cannot suffice yet, or if many wait', async () => {
    const debtors = Array.from({ length: cpus().length / 2 + 1 }, () => client(shareOf(0.01)));
    for (const debtor of await Promise.all(debtors)) await debtor.ask('launch 1000000');
    const { ticks } = server.figures();
    await until(() => server.figures().ticks > ticks + 1);
    const program = await client(shareOf(0.5));
    await program.ask('loop 10 300');
    expect(figuresOf(program).waits).toBeGreaterThan(0);
    for (const one of server.all()) expect(server.figuresOf(one).spins).toBe(0);
  });

  test('ends with an error at the next launch and allocation, also of one that waits', async () => {
    const program = await client(shareOf(0.01));
    await program.ask('launch 1000');
    const waiting = program.ask('launch 1');
    await until(() => figuresOf(program).waits > 0);
    server.end(clientOf(program));
    expect(await waiting).toEqual([terminated]);
    expect(await program.ask('launch 1')).toEqual([terminated]);
    expect((await program.ask('alloc 1'))[0]).toBe(terminated);
  });
});

withCompiler('device memory', () => {
  test('is capped with the error of a full device, contexts included', async () => {
    const program = await client(shareOf(1));
    const [result, pointer] = await program.ask(`alloc ${80 * mebibyte}`);
    expect(result).toBe(0);
    expect((await program.ask(`alloc ${11 * mebibyte}`))[0]).toBe(outOfMemory);
    expect((await program.ask(`alloc-async ${11 * mebibyte}`))[0]).toBe(outOfMemory);
    expect(figuresOf(program).memoryUsedBytes).toBe(90 * mebibyte);
    await program.ask(`free-async ${pointer}`);
    expect((await program.ask(`alloc ${90 * mebibyte}`))[0]).toBe(0);
    await program.ask('release 0');
    expect(figuresOf(program).memoryUsedBytes).toBe(0);
  });

  test('is shown as the cap leaves it', async () => {
    const program = await client(shareOf(1));
    await program.ask(`alloc ${30 * mebibyte}`);
    expect(await program.ask('info')).toEqual([60 * mebibyte, 100 * mebibyte, 100 * mebibyte]);
  });

  test('since a mark is freed together', async () => {
    const program = await client(shareOf(1));
    await program.ask(`alloc ${mebibyte}`);
    const [mark] = await program.ask('mark');
    for (let i = 0; i < 10; i += 1) await program.ask(`alloc${i % 2 ? '-async' : ''} ${mebibyte}`);
    expect(await program.ask(`free-since ${mark}`)).toEqual([10]);
    expect(figuresOf(program).memoryUsedBytes).toBe(11 * mebibyte);
    expect(await program.ask(`free-since ${mark}`)).toEqual([0]);
  });

  test('of a killed process is free again, and so is its place', async () => {
    const ticket = server.ticketFor(devices[0], shareOf(0.1));
    const [first, second] = [0, 1].map(() => programs.start('procaddress', environment(ticket))) as [
      TokenProgram,
      TokenProgram,
    ];
    for (const program of [first, second]) await program.ask('context 0');
    await first.ask(`alloc ${70 * mebibyte}`);
    expect((await second.ask(`alloc ${20 * mebibyte}`))[0]).toBe(outOfMemory);
    await first.ask('launch 5000');
    await first.kill();
    await until(() => figuresOf(second).memoryUsedBytes === 10 * mebibyte);
    expect((await second.ask(`alloc ${20 * mebibyte}`))[0]).toBe(0);
    await second.kill();
    await until(() => server.all().length === 0);
  });
});

withCompiler('a forked process', () => {
  test('registers for itself, and its end does not take the parent with it', async () => {
    const program = await client(shareOf(1));
    await program.ask(`alloc ${40 * mebibyte}`);
    const [child, launched, allocated] = await program.ask(`fork ${20 * mebibyte} 300`);
    expect([launched, allocated]).toEqual([0, 0]);
    expect(clientOf(program).pids.has(child!)).toBe(true);
    expect(figuresOf(program).memoryUsedBytes).toBe(70 * mebibyte);
    await program.ask('reap');
    await until(() => !clientOf(program).pids.has(child!));
    expect(figuresOf(program).memoryUsedBytes).toBe(50 * mebibyte);
    expect(await program.ask('launch 1')).toEqual([0]);
  });
});
