// What happens in a cluster whose containers and pre-warmers are killed, whose links are cut, whose clocks step, and whose
// invokers are slow. Functions tell outside that they run: what is accepted has one record, and ran once at most.
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { missing, startCluster } from '../distributed/running-cluster.js';
import { ApiClient } from '../platform/api-client.js';
import type { ApiActivation } from '../platform/api-client.js';
import { networkLack } from '../platform/machine.js';
import { until } from '../platform/running-platform.js';
import { descendants } from '../platform/process-traces.js';
import { countRuns, toldCode } from './counted-runs.js';
import type { CountedRuns } from './counted-runs.js';
import { namespacesLack, openNamespaces } from './linked-namespaces.js';
import type { LinkedNamespace, LinkedNamespaces } from './linked-namespaces.js';
import { hasCompiler, steppedClocks } from './stepped-clocks.js';
import type { SteppedClock } from './stepped-clocks.js';
import { startTraffic } from './traffic.js';
import type { Traffic } from './traffic.js';

const startMs = 240_000;
const testMs = 240_000;
const waitMs = 110_000;
const maxQueuedActivations = 200;
const stepS = 7200;
/** As it was killed while it ran, was initialized or was started. */
const died = {
  error: expect.stringMatching(
    /^The action did not (produce a valid response|initialize) and exited unexpectedly\.$|^Failed to provision resources/,
  ),
};

function found<Value>(values: ReadonlyMap<string, Value>, name: string): Value {
  const value = values.get(name);
  if (value === undefined) throw new Error(`no ${name}`);
  return value;
}

function killNow(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    // It has ended meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Has a process run for a tenth of the time; the function returned has it run as ever. */
function slowDown(pid: number): () => void {
  let timer: NodeJS.Timeout;
  const halt = (): void => {
    process.kill(pid, 'SIGSTOP');
    timer = setTimeout(goOn, 900);
  };
  const goOn = (): void => {
    process.kill(pid, 'SIGCONT');
    timer = setTimeout(halt, 100);
  };
  halt();
  return () => {
    clearTimeout(timer);
    process.kill(pid, 'SIGCONT');
  };
}

const lack = missing[0] ?? (hasCompiler ? undefined : 'no C compiler') ?? networkLack ?? namespacesLack();

(lack === undefined ? describe : describe.skip)(`a cluster${lack === undefined ? '' : ` (skipped: ${lack})`}`, () => {
  let dir: string;
  let namespaces: LinkedNamespaces;
  const links = new Map<string, LinkedNamespace>();
  const clocks = new Map<string, SteppedClock>();
  let counted: CountedRuns;
  let cluster: Awaited<ReturnType<typeof startCluster>>;
  let callers: ApiClient[];
  let anyone: ApiClient;
  let load: Traffic;
  let slowed: (() => void)[] = [];

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'gpuwhisk-chaos-'));
    namespaces = openNamespaces();
    const counter = namespaces.add();
    counted = await countRuns(join(dir, 'runs'), counter);
    for (const name of ['controller-1', 'invoker-0', 'invoker-1']) links.set(name, namespaces.add());
    // By a way of its own: that a function runs is told while the invoker is cut off.
    for (const name of ['invoker-0', 'invoker-1']) namespaces.join(link(name), counter);
    const clockOf = steppedClocks(dir);
    for (const name of ['controller-0', 'invoker-0']) clocks.set(name, clockOf(name));
    cluster = await startCluster(2, 2, {
      engineHost: namespaces.host,
      placeOf: (name) => ({
        before: [...(links.get(name)?.before ?? []), ...(clocks.get(name)?.before ?? [])],
        host: links.get(name)?.address,
      }),
      set: [`apiHost=${counted.url}`, `maxQueuedActivations=${maxQueuedActivations}`],
      invokerSet: ['containers=mscontainer', 'stemCells=true'],
    });
    callers = cluster.controllers.map(({ url }) => new ApiClient(url, cluster.auth));
    anyone = new ApiClient(cluster.url, cluster.auth);
    // Others are brought from outside, which namespaces do not reach.
    const kind = `nodejs:${process.versions.node.split('.')[0]}`;
    await anyone.putAction('load', toldCode, { kind, limits: { memory: 128 } });
    await anyone.putAction('onGpu', toldCode, { kind, annotations: { gpu: { memoryMiB: 1024 } } });
    await allServe();
  }, startMs);

  afterEach(async () => {
    for (const each of links.values()) each.mend();
    for (const each of clocks.values()) each.setAhead(0);
    for (const stop of slowed.splice(0)) stop();
    await load.end();
  }, testMs);

  afterAll(async () => {
    await cluster.stop();
    await counted.stop();
    namespaces.remove();
    await rm(dir, { recursive: true });
  }, startMs);

  const link = (name: string): LinkedNamespace => found(links, name);
  const clock = (name: string): SteppedClock => found(clocks, name);

  /** Each controller has actions run, on GPUs too, and counts all invokers as up. */
  async function allServe(): Promise<void> {
    for (const caller of callers) {
      for (const action of ['load', 'onGpu']) {
        const serves = async (): Promise<boolean> =>
          (await caller.invoke(action).catch(() => undefined))?.status === 200;
        await until(`${caller.url} has ${action} run`, serves, waitMs);
      }
      await until(`${caller.url} counts all invokers`, () => isHealthy(caller, 2), waitMs);
    }
  }

  const isHealthy = async ({ url }: ApiClient, count: number): Promise<boolean> =>
    (await (await fetch(`${url}/invokers/healthy/count`, { signal: AbortSignal.timeout(waitMs) })).json()) === count;

  const memoryMiB = (): Promise<number[]> =>
    Promise.all(
      [...cluster.controllers, ...cluster.invokers].map(async ({ pid }) => {
        const status = await readFile(`/proc/${pid}/status`, 'utf8');
        return Number(/RssAnon:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
      }),
    );

  /** Each has its record; none ran twice, and those that succeeded ran. Gives those that failed. */
  async function expectKept(accepted: readonly string[]): Promise<ApiActivation[]> {
    expect(accepted.length).toBeGreaterThan(0);
    const records: ApiActivation[] = [];
    for (const id of accepted) records.push(await anyone.record(id, waitMs));
    const times = new Map<string, number>();
    for (const { activationId } of counted.runs()) times.set(activationId, (times.get(activationId) ?? 0) + 1);
    for (const { activationId, response } of records) {
      const ran = times.get(activationId) ?? 0;
      expect([activationId, ran]).toEqual([activationId, response.success ? 1 : Math.min(ran, 1)]);
    }
    return records.filter(({ response }) => !response.success);
  }

  const pids = (): number[] => [...cluster.controllers, ...cluster.invokers].map(({ pid }) => pid);

  /** Whatever happens under load, all that was accepted succeeds, each process lives on, and in the end each serves. */
  async function withstands(from: readonly ApiClient[], happens: () => Promise<void>): Promise<void> {
    const processes = pids();
    load = startTraffic(from, 'load', { ms: 20 });
    await load.more(20);
    await happens();
    await allServe();
    expect(await expectKept(await load.end())).toEqual([]);
    expect(pids()).toEqual(processes);
  }

  /** Processes that run functions, or are ready to. */
  const workers = (): number[] =>
    cluster.invokers.flatMap(({ pid }) =>
      descendants(pid)
        .filter(({ command }) => /\/(nodejs\/main\.cjs|python\/prewarmer\.py) /.test(command))
        .map((process) => process.pid),
    );

  test(
    'whose containers and pre-warmers are killed under load: what ran fails, all else is run, others are made ready',
    async () => {
      load = startTraffic([anyone, anyone, anyone, anyone], 'load', { ms: 50 });
      for (let times = 0; times < 5; times++) {
        await load.more(20);
        for (const pid of workers()) killNow(pid);
      }
      await load.more(20);
      const failed = await expectKept(await load.end());
      for (const { response } of failed) expect(response.result).toEqual(died);
      await allServe();
      await until('others are ready', () => workers().length > cluster.invokers.length, waitMs);
    },
    testMs,
  );

  test(
    'whose invoker is cut off: the other one runs all, and it goes on with what it has when it is back',
    async () => {
      await withstands([anyone, anyone], async () => {
        link('invoker-1').cut();
        for (const caller of callers) await until('it is not counted', () => isHealthy(caller, 1), waitMs);
        await load.more(40);
        link('invoker-1').mend();
        for (const caller of callers) await until('it is counted', () => isHealthy(caller, 2), waitMs);
        await load.more(20);
      });
    },
    testMs,
  );

  test(
    'whose controller is cut off: the other one serves alone, and it serves again by itself',
    async () => {
      const [stays, goes] = callers as [ApiClient, ApiClient];
      await withstands([stays, stays, goes, goes], async () => {
        link('controller-1').cut();
        await load.more(40);
        // Whichever decided about GPUs, somebody does.
        const onGpu = async (): Promise<boolean> => (await stays.invoke('onGpu')).status === 200;
        await until('functions run on GPUs', onGpu, waitMs);
        link('controller-1').mend();
      });
    },
    testMs,
  );

  test(
    'whose clocks step two hours on and back: nothing is held up, lost or run twice',
    async () => {
      await withstands([...callers, ...callers], async () => {
        for (const [controllerS, invokerS] of [
          [stepS, -stepS],
          [0, 0],
          [-stepS, stepS],
          [0, 0],
        ] as const) {
          clock('controller-0').setAhead(controllerS);
          clock('invoker-0').setAhead(invokerS);
          await load.more(40);
        }
      });
      expect([...load.statuses]).toEqual([202]);
    },
    testMs,
  );

  test(
    'whose invokers are slow refuses what it cannot keep with 429, and runs all that it accepted',
    async () => {
      const processes = pids();
      const before = await memoryMiB();
      slowed = cluster.invokers.map(({ pid }) => slowDown(pid));
      load = startTraffic(
        Array.from({ length: 16 }, (_, at) => callers[at % 2] as ApiClient),
        'load',
        {},
      );
      await until('it refuses', () => load.statuses.has(429), waitMs);
      const after = await memoryMiB();
      for (const [at, usedMiB] of after.entries()) expect(usedMiB - (before[at] ?? 0)).toBeLessThan(100);
      const accepted = await load.end();
      for (const stop of slowed.splice(0)) stop();
      expect(await expectKept(accepted)).toEqual([]);
      await allServe();
      expect(pids()).toEqual(processes);
    },
    testMs,
  );
});
