import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import type { Share } from '@gpuwhisk/common/gpu';
import { tokenLibraryPath } from '@gpuwhisk/invoker/gpu-agent/enforcers/tokens/token-addon';
import { TokenServer, type TokenClientFigures } from '@gpuwhisk/invoker/gpu-agent/enforcers/tokens/token-server';
import { createRuntimeCatalog } from '@gpuwhisk/invoker/runtimes/create-runtime-catalog';
import { RuntimeProcess } from '@gpuwhisk/invoker/runtimes/runtime-harness';
import { untilAsync } from '../contract/share-enforcer.js';
import { startDriverClient, type DriverClient } from './driver-client.js';
import { startStandIn } from './stand-in.js';

const runtimesDir = fileURLToPath(new URL('../../../runtimes', import.meta.url));
const device = 'GPU-00000000-0000-0000-0000-000000000000';

let folder: string;
let server: TokenServer;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-tokens-gpu-'));
  server = await TokenServer.start({ folder });
});
afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

const shareOf = (fraction: number): Share => ({
  shareClass: 100,
  smRequest: fraction,
  smLimit: fraction,
  memoryMiB: 4096,
  tokens: { maxTokens: 1000 },
});

const environment = (share: Share): Record<string, string> => ({
  LD_PRELOAD: tokenLibraryPath,
  GPUWHISK_TOKENS_SOCKET: server.socketPath,
  GPUWHISK_TOKENS_TICKET: server.ticketFor(device, share),
});

function figuresOf(pid: number): TokenClientFigures {
  const client = server.clientOf(pid);
  if (client === undefined) throw new Error('The process is no client.');
  return server.figuresOf(client);
}

describe('kernel tokens on the stand-in driver', () => {
  async function withClient(share: Share, work: (client: DriverClient) => Promise<void>): Promise<void> {
    const machine = await startStandIn('a100-40x1', ['--context-ms', '10']);
    const client = startDriverClient(machine.socket, environment(share));
    try {
      expect((await client.tell('context'))[0]).toBe('0');
      await work(client);
    } finally {
      await client.end();
      await machine.close();
    }
  }

  test('a program computes what it computes without them', () =>
    withClient(shareOf(0.5), async (client) => {
      for (const command of ['vecadd 5000', 'saxpy 5000', 'matmul 40', 'graph 10']) {
        expect(await client.tell(command)).toEqual(['0', 'right']);
      }
      // It answers before it frees.
      await untilAsync(async () => figuresOf(client.pid).memoryUsedBytes === 0);
    }));

  test('a program is held to its share, and let go', () =>
    withClient(shareOf(0.1), async (client) => {
      const timed = async (): Promise<number> => {
        const start = performance.now();
        expect((await client.tell('run 60 100 1000 0 0'))[0]).toBe('0');
        return performance.now() - start;
      };
      // 60 kernels of 100 blocks, one a period.
      expect(await timed()).toBeGreaterThan(250);
      const { waits } = figuresOf(client.pid);
      expect(waits).toBeGreaterThan(30);
      server.adjust(server.clientOf(client.pid)!, shareOf(1));
      await untilTrue(() => figuresOf(client.pid).budget === Infinity);
      await timed();
      expect(figuresOf(client.pid).waits - waits).toBeLessThan(2);
    }));
});

test('the Python runtime marks a launch cycle for each run', async () => {
  const catalog = await createRuntimeCatalog({ runtimesDir, dataDir: join(folder, 'runtimes'), clock: systemClock });
  const kind = catalog.manifest.runtimes.python?.[0]?.kind;
  if (kind === undefined) throw new Error('This machine has no Python.');
  const runtime = new RuntimeProcess(await catalog.launch(kind, []), environment(shareOf(1)));
  try {
    await runtime.init({
      code: 'def main(args):\n  if args.get("fail"): raise ValueError("asked for")\n  return args',
    });
    for (const value of [{}, { fail: true }, { a: 1 }]) await runtime.run(value);
    await untilTrue(() => figuresOf(runtime.pid!).cycles === 3);
    expect(figuresOf(runtime.pid!).cycleBatch).toBe(1);
  } finally {
    await runtime.close();
  }
});

async function untilTrue(holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 500 && !holds(); tries += 1) await sleep(20);
  expect(holds()).toBe(true);
}
