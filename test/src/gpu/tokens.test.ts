import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { InitRequest } from '@gpuwhisk/invoker/containers/container-factory';
import { systemClock } from '@gpuwhisk/common/system/clock';
import type { Share } from '@gpuwhisk/common/gpu';
import { until } from '@gpuwhisk/common/testing/until';
import {
  tokenLibraryPath,
  TokenServer,
  type TokenClientFigures,
} from '@gpuwhisk/invoker/gpu-agent/enforcers/tokens/token-server';
import { createRuntimeCatalog } from '@gpuwhisk/invoker/runtimes/create-runtime-catalog';
import type { RuntimeCatalog, RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { RuntimeProcess } from '../runtimes/runtime-harness.js';
import { compileJar } from '../native/compile-jar.js';
import { withCompiler } from '../native/compiler.js';
import { startDriverClient, type DriverClient } from './driver-client.js';
import { compileObject } from '../native/native-functions.js';
import { standIn, startStandIn, type StandIn } from './stand-in.js';

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

withCompiler('kernel tokens on the stand-in driver', () => {
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
      // The program answers before it frees its memory.
      await until(async () => figuresOf(client.pid).memoryUsedBytes === 0);
    }));

  test('a program is held to its share, and let go', () =>
    withClient(shareOf(0.1), async (client) => {
      const timed = async (): Promise<number> => {
        const start = performance.now();
        expect((await client.tell('run 60 100 1000 0'))[0]).toBe('0');
        return performance.now() - start;
      };
      // 60 kernels of 100 blocks, one in each period.
      expect(await timed()).toBeGreaterThan(250);
      const { waits } = figuresOf(client.pid);
      expect(waits).toBeGreaterThan(30);
      const figures = figuresOf(client.pid);
      expect(figures).toMatchObject({ budget: 100, soloRate: 1000, state: 'NONE' });
      // Periods that repeat budgets are those in which the machine was too busy to decide.
      const decided = (): number => server.figures().ticks - server.figures().repeated;
      const before = decided();
      server.adjust(server.clientOf(client.pid)!, shareOf(1));
      const giveUpAt = performance.now() + 5000;
      while (figuresOf(client.pid).budget !== Infinity && performance.now() < giveUpAt) {
        expect(decided() - before).toBeLessThanOrEqual(2);
      }
      expect(figuresOf(client.pid).budget).toBe(Infinity);
      await timed();
      expect(figuresOf(client.pid).waits - waits).toBeLessThan(2);
    }));
});

/** Functions that take `ms`, and fail if their argument says so, by family. */
const sleepers: Record<string, string> = {
  python: `import time
def main(args):
  time.sleep(args["ms"] / 1000)
  if args.get("fail"): raise ValueError("asked for")
  return args`,
  nodejs: `function main({ ms, fail }) {
    return new Promise((resolve, reject) => setTimeout(() => (fail ? reject(new Error('asked for')) : resolve({})), ms));
  }`,
  native: `
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    const char *gpuwhisk_main(const char *json) {
      usleep((useconds_t)(atof(strchr(json, ':') + 1) * 1000));
      return strstr(json, "fail") ? "none" : "{}";
    }
    const char *gpuwhisk_main_batch(const char *json) {
      usleep((useconds_t)(atof(strchr(json, ':') + 1) * 1000));
      return "[{},{},{}]";
    }`,
  java: `
    import com.google.gson.*;
    public class Sleeper {
      public static JsonObject main(JsonObject args) throws Exception {
        Thread.sleep(args.get("ms").getAsLong());
        if (args.has("fail")) throw new IllegalStateException("asked for");
        return args;
      }
    }`,
};

/** The code of a sleeper as an init request contains it. */
function sleeperOf(family: string, launch: RuntimeLaunch): Partial<InitRequest> {
  const code = sleepers[family] ?? '';
  if (family === 'native') return { code: compileObject(code).toString('base64'), binary: true };
  if (family !== 'java') return { code };
  return { code: compileJar(launch, 'Sleeper', code).toString('base64'), binary: true, main: 'Sleeper' };
}

withCompiler('a runtime marks a launch cycle for each run and batch, also for one that fails', () => {
  let dataDir: string;
  let catalog: RuntimeCatalog;
  let machine: StandIn;
  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'gpuwhisk-cycles-'));
    catalog = await createRuntimeCatalog({ runtimesDir, dataDir, clock: systemClock });
    machine = await startStandIn('a100-40x1', ['--context-ms', '10']);
  });
  afterAll(async () => {
    await machine.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function launchOf(family: string, way: 'plain' | 'injected'): Promise<RuntimeLaunch | undefined> {
    const own = `nodejs:${process.versions.node.split('.')[0]}`;
    const entries = catalog.manifest.runtimes[family] ?? [];
    const kind = entries.find((entry) => family !== 'nodejs' || entry.kind === own)?.kind;
    const plain = kind === undefined ? undefined : await catalog.launch(kind, [], 256);
    return way === 'plain' ? plain : (plain?.pair ?? plain);
  }

  test.each([
    ['python', 'plain'],
    ['python', 'injected'],
    ['nodejs', 'plain'],
    ['nodejs', 'injected'],
    ['java', 'plain'],
    ['java', 'injected'],
    ['native', 'injected'],
  ] as const)(
    '%s, %s',
    async (family, way) => {
      const launch = await launchOf(family, way);
      if (launch === undefined) {
        console.info(`This machine has no ${family}: its launch cycles are not tested.`);
        return;
      }
      const runtime = new RuntimeProcess(launch, {
        ...environment(shareOf(1)),
        LD_LIBRARY_PATH: standIn.folder,
        GPUWHISK_SIM_SOCKET: machine.socket,
        GPUWHISK_CUDA: 'true',
        ...(way === 'injected' && { GPUWHISK_PREWARM: 'true' }),
      });
      try {
        const hello = JSON.parse((await runtime.frame(({ type }) => type === 1)).text) as Hello;
        expect((await runtime.init(sleeperOf(family, launch))).body).toMatchObject({ ok: true });
        const deadline = String(Date.now() + 60_000);
        let cycles = 0;
        const run = async (value: { ms: number } | { ms: number }[], more: { batch?: string }): Promise<void> => {
          await runtime.run(value, { deadline, ...more });
          cycles += 1;
          await until(() => figuresOf(hello.pid).cycles === cycles);
        };
        for (const value of [{ ms: 30 }, { ms: 60, fail: true }, { ms: 10 }]) {
          await run(value, {});
          const { cycleBatch, cycleMs } = figuresOf(hello.pid);
          expect(cycleBatch).toBe(1);
          expect(cycleMs).toBeGreaterThan(value.ms * 0.9); // Some sleeps end a little early.
        }
        if (hello.batch !== true) return;
        await run([{ ms: 20 }, { ms: 0 }, { ms: 0 }], { batch: '3' });
        expect(figuresOf(hello.pid).cycleBatch).toBe(3);
      } finally {
        await runtime.close();
      }
    },
    180_000,
  );
});

interface Hello {
  pid: number;
  batch?: boolean;
}
