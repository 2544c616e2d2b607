import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { Share } from '@gpuwhisk/common/gpu';
import { tokenLibraryPath, TokenServer } from '@gpuwhisk/invoker/gpu-agent/enforcers/tokens/token-server';
import { runProgram } from '@gpuwhisk/invoker/host/programs';
import { canCompile, withCompiler } from '../native/compiler.js';
import { startToldProgram, type DriverClient } from './driver-client.js';
import { standIn, startStandIn, type StandIn } from './stand-in.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const device = 'GPU-00000000-0000-0000-0000-000000000000';
const MiB = 1024 * 1024;
const timeoutMs = 60_000;

let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-cudart-'));
  if (!canCompile) return;
  const include = ['native/cudasim/include', 'runtimes/cuda'].map((path) => `-I${root}${path}`);
  const source = join(root, 'test/fixtures/cudart/program.c');
  const library = [`-L${standIn.folder}`, '-l:libcudart.so.12'];
  const flags = ['-Wall', '-Wextra', '-Werror', ...include, '-o', join(folder, 'program')];
  await runProgram('cc', [...flags, source, ...library], { timeoutMs });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

withCompiler('a program on the runtime API', () => {
  let sim: StandIn;
  let program: DriverClient | undefined;
  beforeEach(async () => {
    sim = await startStandIn('a100-40', ['--context-ms', '2', '--module-ms', '0', '--context-mib', '300']);
  });
  afterEach(async () => {
    await program?.end();
    program = undefined;
    await sim.close();
  });

  const start = (env: Record<string, string> = {}): DriverClient =>
    (program = startToldProgram(join(folder, 'program'), sim.socket, env));

  test('runs on the stand-in: kernels by their stubs, graphs, managed memory, properties', async () => {
    const client = start();
    const whole = 40 * 1024 * MiB;
    expect(await client.tell('tell')).toEqual(['0', '1', whole, whole - 300 * MiB, whole, '8.0', '108'].map(String));
    for (const command of ['add 1000 0', 'add 1000 1', 'graph 1000', 'launches 10']) {
      expect(await client.tell(command)).toEqual(['0', 'right']);
    }
  });

  test('gets the errors that it expects, and keeps those of its context', async () => {
    const client = start();
    for (const way of [0, 1, 2]) {
      expect(await client.tell(`alloc ${41 * 1024 * MiB} ${way}`)).toEqual(['2', 'cudaErrorMemoryAllocation']);
    }
    expect(await client.tell('none')).toEqual(['98', '98', '0']);
    const fault = await client.tell('fault');
    expect(fault.slice(0, 4)).toEqual(['700', '700', '700', '700']);
    expect(fault.slice(4).join(' ')).toBe('an illegal memory access was encountered');
  });

  test('says that there is no device', async () => {
    expect(await start({ CUDA_VISIBLE_DEVICES: '' }).tell('')).toEqual(['100']);
  });

  test('is seen by the interception library, which it reaches by one dlsym: launches, graphs, the cap', async () => {
    const server = await TokenServer.start({ folder, contextMiB: () => 300 });
    const share: Share = {
      shareClass: 100,
      smRequest: 1,
      smLimit: 1,
      memoryMiB: 1024,
      tokens: { maxTokens: 1_000_000 },
    };
    try {
      const client = start({
        LD_PRELOAD: tokenLibraryPath,
        GPUWHISK_TOKENS_SOCKET: server.socketPath,
        GPUWHISK_TOKENS_TICKET: server.ticketFor(device, share),
      });
      const [, , total, available] = await client.tell('tell');
      expect([total, available].map(Number)).toEqual([1024 * MiB, 724 * MiB]);
      const figures = (): ReturnType<TokenServer['figuresOf']> => {
        const found = server.clientOf(client.pid);
        if (found === undefined) throw new Error('The program is no client.');
        return server.figuresOf(found);
      };
      expect(await client.tell('launches 10')).toEqual(['0', 'right']);
      expect(figures().taken).toBe(70);
      // Two kernels of four blocks count at the launch of the graph, and not while they are captured.
      expect(await client.tell('graph 1000')).toEqual(['0', 'right']);
      expect(figures().taken).toBe(78);
      for (const way of [0, 1, 2]) {
        expect(await client.tell(`alloc ${200 * MiB} ${way}`)).toEqual(['0', 'cudaSuccess']);
      }
      for (const way of [0, 1, 2]) {
        expect(await client.tell(`alloc ${200 * MiB} ${way}`)).toEqual(['2', 'cudaErrorMemoryAllocation']);
      }
      expect(figures().memoryUsedBytes).toBe(900 * MiB);
    } finally {
      await program?.end();
      program = undefined;
      await server.close();
    }
  });
});
