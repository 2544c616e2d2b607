// A cluster whose containers and pre-warmers are killed, whose links are cut, whose clocks step and whose invokers are
// slow. Functions report each run to a counter outside. Each accepted activation has one record and ran at most once.
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { missing, startCluster } from '../distributed/running-cluster.js';
import type { JsonObject } from '@gpuwhisk/common/json';
import { ApiClient } from '../support/api-client.js';
import type { ApiActivation } from '../support/api-client.js';
import { hasPython, networkLack } from '../support/machine.js';
import { until } from '../support/running-platform.js';
import { descendants } from '../support/process-traces.js';
import { beatingCode, countRuns, toldCode } from './counted-runs.js';
import type { CountedRuns } from './counted-runs.js';
import { namespacesLack, openNamespaces } from './linked-namespaces.js';
import type { LinkedNamespace, LinkedNamespaces } from './linked-namespaces.js';
import { sendRequest, startRegisterCalls } from './history-calls.js';
import type { Send } from './history-calls.js';
import { problemsOf, runsOneAfterTheOther } from './history-check.js';
import { hasCompiler, steppedClocks } from './stepped-clocks.js';
import type { SteppedClock } from './stepped-clocks.js';
import { startTraffic } from './traffic.js';
import type { Traffic } from './traffic.js';

const startMs = 240_000;
const testMs = 240_000;
const waitMs = 110_000;
const maxQueuedActivations = 200;
const stepS = 7200;
/** Number of records that are requested at once. */
const askedAtOnce = 16;
/**
 * Pause of a caller between submissions beside clock steps, ms. Four callers then fill `maxQueuedActivations` in 10 s.
 */
const steppedEveryMs = 200;
/** Number of characters of the cluster's output in the error of a failed test. */
const printedLength = 6000;
/** Duration of a partition, and the pause of a caller between submissions beside partitions, ms. */
const [partitionMs, partitionedEveryMs] = [5000, 100];
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
/** Result of an activation whose container was killed during start, init or run. */
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
    // The process has ended already.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Slows a process to a tenth of the time with SIGSTOP and SIGCONT. The function returned restores its full speed. */
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
    // A separate link to the counter: functions can report their runs while the invoker is cut off.
    for (const name of ['invoker-0', 'invoker-1']) namespaces.join(link(name), counter);
    const clockOf = steppedClocks(dir);
    for (const name of ['controller-0', 'invoker-0']) clocks.set(name, clockOf(name));
    cluster = await startCluster(2, 2, {
      engineHost: namespaces.host,
      placeOf: (name) => ({
        before: [...(links.get(name)?.before ?? []), ...(clocks.get(name)?.before ?? [])],
        host: links.get(name)?.address,
      }),
      set: [...[`apiHost=${counted.url}`, `maxQueuedActivations=${maxQueuedActivations}`], 'operators=["guest"]'],
      invokerSet: ['containers=mscontainer', 'stemCells=true'],
    });
    callers = cluster.controllers.map(({ url }) => new ApiClient(url, cluster.auth));
    anyone = new ApiClient(cluster.url, cluster.auth);
    // Other versions are downloaded, and the namespaces have no route to the internet.
    const kind = `nodejs:${process.versions.node.split('.')[0]}`;
    await anyone.putAction('load', toldCode, { kind, limits: { memory: 128 } });
    load = startTraffic([], 'load', {});
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

  /** Waits until each controller runs actions, GPU actions included, and counts all invokers as up. */
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

  /**
   * Expects one record for each accepted activation, at most one run of each, and one run of each that succeeded.
   * Returns the records of those that failed.
   */
  async function expectKept(accepted: readonly string[]): Promise<ApiActivation[]> {
    expect(accepted.length).toBeGreaterThan(0);
    const records: ApiActivation[] = [];
    for (let from = 0; from < accepted.length; from += askedAtOnce) {
      const ids = accepted.slice(from, from + askedAtOnce);
      records.push(...(await Promise.all(ids.map((id) => anyone.record(id, waitMs)))));
    }
    const times = new Map<string, number>();
    for (const { activationId } of counted.runs()) times.set(activationId, (times.get(activationId) ?? 0) + 1);
    for (const { activationId, response } of records) {
      const ran = times.get(activationId) ?? 0;
      expect([activationId, ran]).toEqual([activationId, response.success ? 1 : Math.min(ran, 1)]);
    }
    return records.filter(({ response }) => !response.success);
  }

  const pids = (): number[] => [...cluster.controllers, ...cluster.invokers].map(({ pid }) => pid);

  /**
   * Runs `happens` under load. Expects that all accepted activations succeed, no process ends, and each controller
   * serves afterwards.
   */
  async function withstands(from: readonly ApiClient[], happens: () => Promise<void>, everyMs = 0): Promise<void> {
    const processes = pids();
    load = startTraffic(from, 'load', { ms: 20 }, everyMs);
    try {
      await load.more(20);
      await happens();
      await allServe();
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${cluster.printed().slice(-printedLength)}`, { cause: error });
    }
    expect(await expectKept(await load.end())).toEqual([]);
    expect(pids()).toEqual(processes);
  }

  /** Processes that run functions or are ready to run one. */
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
        // The leader may have been the controller that was cut off: then the other one takes over.
        const onGpu = async (): Promise<boolean> => (await stays.invoke('onGpu')).status === 200;
        await until('functions run on GPUs', onGpu, waitMs);
        link('controller-1').mend();
      });
    },
    testMs,
  );

  test(
    'that partitions cut in turn: writes of entities are linearizable, and what was accepted is kept and ran at most once',
    async () => {
      const registers = ['register0', 'register1'];
      const urls = callers.map(({ url }) => url);
      load = startTraffic(callers, 'load', { ms: 20 }, partitionedEveryMs);
      const written = await startRegisterCalls(urls, cluster.auth, registers, 0);
      for (const names of [
        ['controller-1'],
        ['invoker-1'],
        ['controller-1', 'invoker-0'],
        ['invoker-0', 'invoker-1'],
      ]) {
        for (const name of names) link(name).cut();
        await pause(partitionMs);
        for (const name of names) link(name).mend();
        await pause(partitionMs / 4);
      }
      const calls = await written.end();
      const accepted = await load.end();
      const records = new Map<string, boolean>();
      for (const id of accepted) records.set(id, (await anyone.record(id, waitMs)).response.success);
      const history = { calls, accepted, runs: counted.runs().map(({ activationId }) => activationId), records };
      expect(accepted.length).toBeGreaterThan(50);
      expect(calls.filter(({ endedMs }) => endedMs < Infinity).length).toBeGreaterThan(200);
      expect(problemsOf(history, 0)).toEqual([]);

      // The check finds an answer to a write that was not sent.
      let count = 0;
      const forgetful: Send = async (url, init) => {
        if (init.method !== 'PUT' || ++count % 5 !== 0) return sendRequest(url, init);
        return { status: 200, body: {} };
      };
      const forgotten = await startRegisterCalls(urls, cluster.auth, registers, 0, forgetful);
      await pause(partitionMs / 2);
      expect(problemsOf({ ...history, calls: await forgotten.end() }, 0)).toContainEqual(
        expect.stringMatching(/ are not linearizable$/),
      );
      await allServe();
    },
    testMs,
  );

  (hasPython ? test : test.skip)(
    'whose leader is cut off while a training job goes on: the next leader carries it on, by one run after the other',
    async () => {
      interface Job extends JsonObject {
        id: string;
        state: string;
        attempts: { activationId: string }[] & JsonObject[];
      }
      const [stays, goes] = callers as [ApiClient, ApiClient];
      const gpu = { memoryMiB: 1024, mpsPercent: 50 };
      await anyone.putAction('beats', beatingCode, {
        ...{ kind: 'python:default', annotations: { gpu }, limits: { memory: 256 } },
      });
      // The controller that can be cut off becomes the leader, if it is not.
      const { pid } = cluster.controllers[0] as { pid: number };
      process.kill(pid, 'SIGSTOP');
      slowed.push(() => process.kill(pid, 'SIGCONT'));
      const order = { action: 'beats', parameters: { seconds: 5 }, restarts: 100 };
      let job = {} as Job;
      const begins = async (): Promise<boolean> => {
        const { status, body } = await goes.request<Job>('POST', '../gpu/jobs', order);
        job = body;
        return status === 200;
      };
      await until('it begins the job', begins, waitMs);
      for (const goOn of slowed.splice(0)) goOn();
      const runs = (): string[] => runsOneAfterTheOther(counted.beats());
      const shown = (): Promise<Job> => stays.request<Job>('GET', `../gpu/jobs/${job.id}`).then(({ body }) => body);
      const untilRuns = (count: number): Promise<unknown> =>
        until(`run ${count} has begun`, () => runs().length >= count, waitMs).catch(async (error: Error) => {
          throw new Error(`${error.message}: ${JSON.stringify(await shown())}`, { cause: error });
        });
      await untilRuns(1);
      link('controller-1').cut();
      // The first run dies; only the next leader can begin others.
      await untilRuns(3);
      link('controller-1').mend();
      await allServe();
      await untilRuns(runs().length + 1);
      const stops = async (): Promise<boolean> => {
        for (const caller of callers) await caller.request('DELETE', `../gpu/jobs/${job.id}?graceMs=5000`);
        return (await shown()).state === 'stopped';
      };
      await until('it is stopped', stops, waitMs);
      expect((await shown()).attempts.map(({ activationId }) => activationId)).toEqual(runs());
    },
    testMs,
  );

  test(
    'whose clocks step two hours on and back: nothing is held up, lost or run twice',
    async () => {
      await withstands(
        [...callers, ...callers],
        async () => {
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
        },
        steppedEveryMs,
      );
      // Another status would mean that activations were delayed until the queues were full.
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

  // These tests come last: a retired process cannot join the cluster again.
  describe('whose machine never comes back', () => {
    const admin = fileURLToPath(new URL('../../../cli/dist/wskadmin.js', import.meta.url));
    const retire = async (sort: string, name: string): Promise<string> => {
      const host = (callers[0] as ApiClient).url;
      const args = [admin, '--apihost', host, '--auth', cluster.auth, sort, 'retire', name];
      const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: waitMs }).catch(
        (error: unknown) => error as { stdout: string },
      );
      return stdout.trim();
    };
    const isGone = (pid: number): boolean => {
      try {
        process.kill(pid, 0);
        return false;
      } catch {
        return true;
      }
    };

    test(
      'an invoker is retired: its queue is run elsewhere, what it may have begun is recorded as stopped, nothing runs twice',
      async () => {
        const [first, second] = callers as [ApiClient, ApiClient];
        expect(await retire('invoker', 'invoker-1')).toMatch(/^Failed to retire invoker \(.* is alive: /);
        const { pid } = cluster.invokers[1] as { pid: number };
        // More activations than one invoker can run at once.
        const accepted = await Promise.all(
          Array.from({ length: 30 }, (_, n) => (n % 2 === 0 ? first : second).submit('load', { ms: 3000 })),
        );
        const begun = (): number => counted.runs().filter(({ activationId }) => accepted.includes(activationId)).length;
        await until('both have begun some', () => begun() > 10, waitMs);
        link('invoker-1').cut();
        // More activations than the other invoker can run: some go to the invoker that is cut off before its silence is
        // noticed.
        let isOver = false;
        const submitting = [first, second].map(async (caller) => {
          while (!isOver) {
            accepted.push(await caller.submit('load', { ms: 1000 }));
            await new Promise((resolve) => setTimeout(resolve, 100));
          }
        });
        for (const caller of callers) await until('it is not counted', () => isHealthy(caller, 1), waitMs);
        isOver = true;
        await Promise.all(submitting);
        // The invoker's last state may be slightly newer than its last ping, so a retirement is still refused for a
        // moment.
        let told = '';
        const isRetired = async (): Promise<boolean> => {
          told = await retire('invoker', 'invoker-1');
          return !told.includes(' is alive: ');
        };
        await until('it is retired', isRetired, waitMs);
        const counts = /moved (\d+), stopped (\d+)$/.exec(told);
        expect(counts).not.toBeNull();
        const [moved, stopped] = [Number(counts?.[1]), Number(counts?.[2])];
        const failed = await expectKept(accepted);
        expect(failed.map(({ response }) => response.result)).toEqual(
          Array(stopped).fill({ error: 'The invoker stopped while the action ran.' }),
        );
        expect(moved).toBeGreaterThan(0);
        expect(stopped).toBeGreaterThan(0);
        expect(await retire('invoker', 'invoker-1')).toMatch(/^Retired invoker invoker-1 /);
        link('invoker-1').mend();
        await until('the process that is back has ended', () => isGone(pid), waitMs);
        await until('its next life is refused', () => cluster.printed().includes('which was retired'), waitMs);
        // The process ran and recorded nothing more after its return.
        expect((await expectKept(accepted)).length).toBe(stopped);
      },
      testMs,
    );

    test(
      'a controller is retired: sequences that it had begun are recorded as stopped',
      async () => {
        const [stays, goes] = callers as [ApiClient, ApiClient];
        const components = ['/_/load', '/_/load'];
        const put = await stays.request('PUT', '_/actions/twice?overwrite=true', {
          exec: { kind: 'sequence', components },
        });
        expect(put.status).toBe(200);
        expect(await retire('controller', 'controller-1')).toMatch(/^Failed to retire controller \(.* is alive: /);
        load = startTraffic([stays], 'load', {});
        const id = await goes.submit('twice', { ms: 20_000 });
        link('controller-1').cut();
        const gone = /^Retired controller controller-1 \(number \d+\): moved 0, stopped 1$/;
        await until('it is retired', async () => gone.test(await retire('controller', 'controller-1')), waitMs);
        const { response } = await stays.record(id);
        expect(response.result).toEqual({ error: 'The controller stopped while the sequence ran.' });
      },
      testMs,
    );
  });
});
